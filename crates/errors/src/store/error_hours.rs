//! Counts the events of each error by hour. Reads only the base columns of runs.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};

use notifications::domain_event::DomainEvent;
use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::events::EVENT_RETENTION;
use super::head::{LogHead, LogPosition};
use super::reading::{EARLIEST_RECEIPT, LoadedRun, PlannedRun, readable_rows, windows};
use crate::grouping::Fingerprint;
use crate::log::day::{Day, Hours};
use crate::log::manifest::Manifest;
use crate::log::run::{Base, ColumnName, Decoder};
use crate::log::tombstone::Tombstones;
use crate::query::day_plan::RunPlan;
use crate::query::errors::ErrorOutline;
use crate::query::search::SearchedError;
use crate::spike::{FEWEST_EVENTS, Hour, SpikeWindow, hours_of_day};
use crate::{ErrorId, ErrorRecord, ShownError};

/// A selection of a project's events to count by error and hour.
struct ErrorHours {
    /// The hours in which the events occurred.
    range: RangeInclusive<Hour>,
    /// The earliest receipt of unpacked events.
    received_from: Option<Timestamp>,
}

/// The events of a project that can still be listed, by error.
#[derive(Debug)]
pub struct EventCounts {
    counts: HashMap<Fingerprint, u64>,
    /// The time of the last unpacked event of each error.
    pub(super) unpacked: HashMap<Fingerprint, Timestamp>,
    tombstones: Tombstones,
}

impl EventCounts {
    /// Returns an error as responses show it, with its events.
    pub fn show<'e>(&self, error: &'e ErrorRecord) -> ShownError<'e> {
        let fingerprint = error.description.fingerprint;
        let count = self.counts.get(&fingerprint).copied().unwrap_or_default();
        error.shown(count, self.last_unpacked(fingerprint))
    }

    /// Returns when the last unpacked event of an error occurred, if it has one.
    pub(super) fn last_unpacked(&self, fingerprint: Fingerprint) -> Option<Timestamp> {
        self.unpacked.get(&fingerprint).copied()
    }

    /// `true` if an error is deleted. A list that was read before can still have it.
    pub(super) fn is_deleted(&self, error: ErrorId) -> bool {
        self.tombstones.have(error)
    }
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
        let first = Hour::of_day(Day::of(now.minus(EVENT_RETENTION)), 0);
        let last = Hour::of_day(Day::of(now).next(), 23);
        let selected = ErrorHours { range: first..=last, received_from: None };
        let add = |(counts, unpacked): &mut (HashMap<_, u64>, HashMap<_, Timestamp>),
                   fingerprint,
                   of: Occurrence,
                   events| {
            *counts.entry(fingerprint).or_default() += events;
            if let Occurrence::Row(at) = of {
                let last = unpacked.entry(fingerprint).or_insert(at);
                *last = at.max(*last);
            }
        };
        let (counted, tombstones) = self.count_error_hours(project, &selected, add, now).await?;
        let (counts, unpacked) = counted;
        Ok(EventCounts { counts, unpacked, tombstones })
    }

    /// Returns the spikes that begin in an hour, of open errors that were known before. For most
    /// projects, the totals of runs and the number of rows already rule out a spike.
    pub async fn find_spikes(
        self,
        project: ProjectId,
        hour: Hour,
        now: Timestamp,
    ) -> Result<Vec<DomainEvent>, StoreError> {
        // Events are received after they occur, except if clocks differ.
        let received_from = Some(hour.start().minus(EARLIEST_RECEIPT));
        if self.events_at_most(project, hour, received_from, now).await? < FEWEST_EVENTS {
            return Ok(Vec::new());
        }
        let selected = ErrorHours { range: hour..=hour, received_from };
        let mut frequent = self.count_events_of(project, &selected, now).await?;
        frequent.retain(|_, events| *events >= FEWEST_EVENTS);
        if frequent.is_empty() {
            return Ok(Vec::new());
        }
        let selected = ErrorHours { range: SpikeWindow::range(hour), received_from: None };
        let add = |around: &mut HashMap<Fingerprint, SpikeWindow>,
                   fingerprint,
                   of: Occurrence,
                   events| {
            if frequent.contains_key(&fingerprint) {
                let error = around.entry(fingerprint).or_insert_with(|| SpikeWindow::new(hour));
                error.add(of.hour(), events);
            }
        };
        let (mut around, _) = self.count_error_hours(project, &selected, add, now).await?;
        around.retain(|_, events| events.begins_spike());
        let errors = self.find_errors_of(project, around.keys().copied(), now).await?;
        let spiking = errors.into_iter().filter(|(_, error)| error.may_spike(hour));
        Ok(spiking
            .filter_map(|(fingerprint, error)| {
                Some(error.spike(project, around.get(&fingerprint)?, now))
            })
            .collect())
    }

    /// Returns the number of events and new errors in these hours, and up to `most` new errors.
    pub async fn sum_up_errors(
        self,
        project: ProjectId,
        range: &RangeInclusive<Hour>,
        most: usize,
        now: Timestamp,
    ) -> Result<ErrorSummary, StoreError> {
        let selected = ErrorHours { range: range.clone(), received_from: None };
        let counts = self.count_events_of(project, &selected, now).await?;
        if counts.is_empty() {
            return Ok(ErrorSummary::default());
        }
        let is_new = |error: &ErrorOutline, _: &SearchedError<'_>| {
            range.contains(&Hour::of(error.first_seen))
        };
        let new = self.find_errors_where(project, false, is_new, now).await?;
        let count = |error: &ErrorOutline| counts.get(&error.fingerprint).copied();
        let mut ranked: Vec<(u64, ErrorId)> =
            new.iter().map(|error| (count(error).unwrap_or_default(), error.id)).collect();
        ranked.sort_unstable_by(|one, other| other.cmp(one));
        ranked.truncate(most);
        let ids = ranked.iter().map(|(_, id)| *id);
        let mut records = self.find_errors(project, ids, now).await?;
        let shown = ranked.iter().filter_map(|(events, id)| Some((records.remove(id)?, *events)));
        Ok(ErrorSummary {
            events: counts.values().sum(),
            new_errors: u64::try_from(new.len()).unwrap_or(u64::MAX),
            most_frequent: shown.collect(),
        })
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
        let received_from = Some(since.start().minus(EARLIEST_RECEIPT));
        let counts =
            self.count_events_of(project, &ErrorHours { range, received_from }, now).await?;
        let mut ranked: Vec<(u64, Fingerprint)> =
            counts.into_iter().map(|(fingerprint, events)| (events, fingerprint)).collect();
        ranked.sort_unstable_by(|one, other| other.cmp(one));
        ranked.truncate(most);
        let fingerprints = ranked.iter().map(|(_, fingerprint)| *fingerprint);
        let errors = self.find_errors_of(project, fingerprints, now).await?;
        let counted = ranked.iter().filter_map(|(events, it)| Some((errors.get(it)?.id, *events)));
        Ok(counted.collect())
    }

    /// Returns the number of events of each error in the selected hours.
    async fn count_events_of(
        self,
        project: ProjectId,
        selected: &ErrorHours,
        now: Timestamp,
    ) -> Result<HashMap<Fingerprint, u64>, StoreError> {
        let add = |counts: &mut HashMap<Fingerprint, u64>, fingerprint, of: Occurrence, events| {
            if selected.range.contains(&of.hour()) {
                *counts.entry(fingerprint).or_default() += events;
            }
        };
        Ok(self.count_error_hours(project, selected, add, now).await?.0)
    }

    /// Returns an upper bound of the events of an hour, by the totals of runs and the number of
    /// rows. Stops reading rows once there are enough for a spike. The number is exact if it is
    /// small and no event is deleted.
    async fn events_at_most(
        self,
        project: ProjectId,
        hour: Hour,
        received_from: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let read_rows = |head: Arc<LogHead>| async move {
            let from = rows_from(&head, received_from);
            let range = readable_rows(project, &head, &from, &[], now);
            let mut pages = Box::pin(self.row_pages(&range));
            let mut events = 0;
            while events < FEWEST_EVENTS
                && let Some(rows) = pages.try_next().await?
            {
                let of_hour = rows.iter().filter(|row| Hour::of(row.row.occurred_at) == hour);
                events += u64::try_from(of_hour.count()).unwrap_or(u64::MAX);
            }
            Ok::<u64, StoreError>(events)
        };
        let day = hour.day();
        let (_, manifests, rows) = self.read_log(project, None, day..=day, read_rows).await?;
        let runs = manifests.iter().flat_map(|manifest| &manifest.runs);
        let packed = runs.map(|run| u64::from(run.totals.hour(hour.in_day()).events));
        Ok(rows + packed.sum::<u64>())
    }

    /// Passes the selected events to `add`, by fingerprint and time. Also passes rows of other
    /// hours. Returns the counts and the deleted errors.
    async fn count_error_hours<C: Default>(
        self,
        project: ProjectId,
        selected: &ErrorHours,
        add: impl Fn(&mut C, Fingerprint, Occurrence, u64),
        now: Timestamp,
    ) -> Result<(C, Tombstones), StoreError> {
        let (first, last) = (selected.range.start().day(), selected.range.end().day());
        let add = &add;
        let read_rows = |head: Arc<LogHead>| async move {
            let mut counts = C::default();
            let from = rows_from(&head, selected.received_from);
            let range = readable_rows(project, &head, &from, &[], now);
            let mut pages = Box::pin(self.row_pages(&range));
            while let Some(rows) = pages.try_next().await? {
                for row in rows {
                    let received_at = row.received_at().unwrap_or(now);
                    let fingerprint = row.row.fingerprint;
                    if !head.tombstones.hide_event(fingerprint, received_at) {
                        add(&mut counts, fingerprint, Occurrence::Row(row.row.occurred_at), 1);
                    }
                }
            }
            Ok::<C, StoreError>(counts)
        };
        let (head, manifests, mut counts) =
            self.read_log(project, None, first..=last, read_rows).await?;
        let planned = planned_runs(manifests, &selected.range);
        let reads: Vec<_> =
            windows(planned).into_iter().map(|window| self.load(project, window)).collect();
        let mut reads = stream::iter(reads).buffered(2);
        let mut decoder = Decoder::new();
        while let Some(window) = reads.try_next().await? {
            for LoadedRun { planned, columns } in window {
                let base = columns.get(ColumnName::Base);
                let Ok(base) = base.and_then(|base| Base::decode(&mut decoder, base)) else {
                    self.report_damaged_run(project, planned.day, &planned.run);
                    continue;
                };
                for (fingerprint, hour, events) in base.events_by_hour(planned.plan.columns) {
                    if !head.tombstones.hide_in_run(fingerprint, &planned.run) {
                        let hour = Hour::of_day(planned.day, hour);
                        add(&mut counts, fingerprint, Occurrence::Packed(hour), events);
                    }
                }
            }
        }
        Ok((counts, head.tombstones.clone()))
    }
}

/// The time of events.
#[derive(Debug, Clone, Copy)]
enum Occurrence {
    /// The time of an unpacked event.
    Row(Timestamp),
    /// The hour of packed events.
    Packed(Hour),
}

impl Occurrence {
    fn hour(self) -> Hour {
        match self {
            Self::Row(at) => Hour::of(at),
            Self::Packed(hour) => hour,
        }
    }
}

/// Returns the position from which rows are read.
fn rows_from(head: &LogHead, received_from: Option<Timestamp>) -> LogPosition {
    let from = received_from.map_or_else(LogPosition::start, LogPosition::before);
    from.max(head.readable.clone())
}

/// Returns the runs that have events in these hours.
fn planned_runs(manifests: Vec<Manifest>, range: &RangeInclusive<Hour>) -> Vec<PlannedRun> {
    let mut planned = Vec::new();
    for Manifest { day, runs, .. } in manifests {
        let selected = hours_of_day(range, day);
        planned.extend(runs.into_iter().filter_map(|run| {
            let columns = selected.common_with(run.totals.hours());
            let plan = RunPlan { totals: Hours::NONE, columns };
            (!columns.is_empty()).then(|| PlannedRun {
                day,
                run,
                plan,
                names: vec![ColumnName::Base],
            })
        }));
    }
    planned
}
