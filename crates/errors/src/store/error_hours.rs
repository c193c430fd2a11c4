//! Counts the events of each error in a range of hours. Reads only the base columns of runs.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use notifications::domain_event::DomainEvent;
use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::events::EVENT_RETENTION;
use super::reading::CountedProject;
use crate::grouping::Fingerprint;
use crate::log::day::Day;
use crate::query::counted_run::Accumulator;
use crate::query::errors::ErrorCounts;
use crate::query::event_query::EventQuery;
use crate::query::time_bucket::QueryRange;
use crate::spike::{FEWEST_EVENTS, Hour, begins, window};
use crate::{ErrorId, ErrorRecord};

/// The events of each error of a project in a time range.
#[derive(Debug)]
pub struct EventCounts {
    counts: ErrorCounts,
    project: CountedProject,
}

impl EventCounts {
    /// Returns an error with its last unpacked event, and its number of events.
    pub fn of(&self, error: ErrorRecord) -> (ErrorRecord, u64) {
        let fingerprint = error.description.fingerprint;
        let number = self.project.errors.known_number(fingerprint);
        let count = number.map_or(0, |number| self.counts.events_of(number));
        (error.with_unpacked(self.project.last_unpacked.get(&fingerprint).copied()), count)
    }

    /// Returns the events of each error that has some.
    fn iter(&self) -> impl Iterator<Item = (Fingerprint, u64)> {
        let errors = self.project.errors.iter();
        let counted = errors.map(|(it, number)| (it, self.counts.events_of(number)));
        counted.filter(|(_, events)| *events > 0)
    }
}

/// Returns the range of the events whose numbers lists of errors show.
pub(super) fn listed_range(now: Timestamp) -> QueryRange {
    let first = Hour::of_day(Day::of(now.minus(EVENT_RETENTION)), 0);
    let last = Hour::of_day(Day::of(now).next(), 23);
    QueryRange::of_hours(&(first..=last))
}

/// The events and new errors of a project in a time range.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorSummary {
    /// The number of events.
    pub events: u64,
    /// The number of errors that occurred for the first time.
    pub new_errors: u64,
    /// The new errors with the most events, and their number of events.
    pub most_frequent: Vec<(ErrorRecord, u64)>,
}

impl ErrorStore<'_> {
    /// Counts the events of each error of a project that can still be listed.
    pub async fn count_events_by_error(
        self,
        project: ProjectId,
        now: Timestamp,
    ) -> Result<EventCounts, StoreError> {
        self.count_range(project, listed_range(now), now).await
    }

    /// Returns the spikes that begin in an hour, of open errors that were known before. For most
    /// projects, the totals of runs and the number of rows already rule out a spike.
    pub async fn find_spikes(
        self,
        project: ProjectId,
        hour: Hour,
        now: Timestamp,
    ) -> Result<Vec<DomainEvent>, StoreError> {
        let query = EventQuery::all(QueryRange::of_hours(&(hour..=hour)));
        let mut counts = ErrorCounts::of_events(false);
        let read = self.read_project(project, None, &query, counts.counted(), now).await?;
        if read.at_most() < FEWEST_EVENTS {
            return Ok(Vec::new());
        }
        let counted = self.count_read(read, &mut counts).await?;
        let is_frequent = |number| counts.events_of(number) >= FEWEST_EVENTS;
        let frequent = counted.errors.iter().filter(|(_, number)| is_frequent(*number));
        let frequent: Vec<Fingerprint> = frequent.map(|(fingerprint, _)| fingerprint).collect();
        if frequent.is_empty() {
            return Ok(Vec::new());
        }
        let query = EventQuery::all(QueryRange::of_hours(&window(hour)));
        let mut counts = ErrorCounts::of_events(true);
        let counted = self.count_project(project, &query, &mut counts, now).await?;
        let events = |fingerprint| match counted.errors.known_number(fingerprint) {
            Some(number) => counts.series_of(number),
            None => &[],
        };
        let begins = frequent.into_iter().filter(|fingerprint| begins(events(*fingerprint)));
        let errors = self.find_errors_of(project, begins, now).await?;
        let spiking = errors.into_iter().filter(|(_, error)| error.may_spike(hour));
        let spike = |(fingerprint, error): (_, ErrorRecord)| {
            let in_hour = events(fingerprint).last().copied().unwrap_or_default();
            error.spike(project, hour, in_hour, now)
        };
        Ok(spiking.map(spike).collect())
    }

    /// Returns the number of events and new errors in these hours, and up to `most` new errors.
    pub async fn sum_up_errors(
        self,
        project: ProjectId,
        range: &RangeInclusive<Hour>,
        most: usize,
        now: Timestamp,
    ) -> Result<ErrorSummary, StoreError> {
        let counts: HashMap<Fingerprint, u64> =
            self.count_range(project, QueryRange::of_hours(range), now).await?.iter().collect();
        if counts.is_empty() {
            return Ok(ErrorSummary::default());
        }
        let is_new = |error: &ErrorRecord| range.contains(&Hour::of(error.first_seen));
        let new = self.find_errors_where(project, is_new, now).await?;
        let new_errors = u64::try_from(new.len()).unwrap_or(u64::MAX);
        let count = |error: &ErrorRecord| counts.get(&error.description.fingerprint).copied();
        let mut most_frequent: Vec<(ErrorRecord, u64)> = new
            .into_iter()
            .map(|error| {
                let events = count(&error).unwrap_or_default();
                (error, events)
            })
            .collect();
        most_frequent.sort_unstable_by_key(|(error, events)| Reverse((*events, error.id)));
        most_frequent.truncate(most);
        Ok(ErrorSummary { events: counts.values().sum(), new_errors, most_frequent })
    }

    /// Returns up to `most` errors of a project with the most events since the start of an hour,
    /// and their number of events.
    pub async fn most_frequent_errors(
        self,
        project: ProjectId,
        since: Hour,
        most: usize,
        now: Timestamp,
    ) -> Result<HashMap<ErrorId, u64>, StoreError> {
        // Clocks of senders can be ahead.
        let range = since..=Hour::of(now.plus(Duration::from_hours(1)));
        let counts = self.count_range(project, QueryRange::of_hours(&range), now).await?;
        let mut ranked: Vec<(u64, Fingerprint)> =
            counts.iter().map(|(fingerprint, events)| (events, fingerprint)).collect();
        ranked.sort_unstable_by(|one, other| other.cmp(one));
        ranked.truncate(most);
        let fingerprints = ranked.iter().map(|(_, fingerprint)| *fingerprint);
        let errors = self.find_errors_of(project, fingerprints, now).await?;
        let counted = ranked.iter().filter_map(|(events, it)| Some((errors.get(it)?.id, *events)));
        Ok(counted.collect())
    }

    /// Returns the events of an error in each of the `hours` hours before `now`, the earliest hour
    /// first. `None` if the error does not exist.
    pub async fn latest_events_by_hour(
        self,
        project: ProjectId,
        error: ErrorId,
        hours: u16,
        now: Timestamp,
    ) -> Result<Option<Vec<u64>>, StoreError> {
        let query = EventQuery::all(QueryRange::by_minute(now, hours * 60)).of_error(error);
        let mut counts = ErrorCounts::of_events(true);
        let counted = self.count_project(project, &query, &mut counts, now).await?;
        if counted.stored.is_empty() {
            return Ok(None);
        }
        let mut by_hour = vec![0; usize::from(hours)];
        for (events, minutes) in by_hour.iter_mut().zip(counts.series_of(0).chunks(60)) {
            *events = minutes.iter().sum();
        }
        Ok(Some(by_hour))
    }

    /// Counts the events of each error in a range.
    async fn count_range(
        self,
        project: ProjectId,
        range: QueryRange,
        now: Timestamp,
    ) -> Result<EventCounts, StoreError> {
        let query = EventQuery::all(range);
        let mut counts = ErrorCounts::of_events(false);
        let project = self.count_project(project, &query, &mut counts, now).await?;
        Ok(EventCounts { counts, project })
    }
}
