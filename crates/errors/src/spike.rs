//! Spikes: hours in which an error occurs far more often than before
//! (`docs/semantics/error-tracking.md`, "Spikes").

use std::ops::RangeInclusive;

use notifications::domain_event::{DomainEvent, DomainEventKind};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::log::day::{Day, minute_of, start_of_minute};
use super::{ErrorRecord, ErrorStatus};

/// Minimum events of an hour with a spike.
pub const FEWEST_EVENTS: u64 = 20;
/// A spike has more than this multiple of the mean hour in the preceding week.
const FACTOR: u64 = 5;
/// Hours of a week.
const WEEK: i64 = 7 * 24;
/// Hours of a [`window`]: a week before the previous hour, and both hours.
const WINDOW_HOURS: usize = 7 * 24 + 2;

/// An hour of the clock, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hour(i64);

impl Hour {
    /// Returns the hour of `at`.
    pub fn of(at: Timestamp) -> Self {
        Self(minute_of(at).div_euclid(60))
    }

    /// Returns an hour of a day, counted from 0.
    pub fn of_day(day: Day, hour: u8) -> Self {
        Self(day.first_minute() / 60 + i64::from(hour))
    }

    /// Returns the hour that is this number of hours earlier.
    #[must_use]
    pub fn minus(self, hours: i64) -> Self {
        Self(self.0.saturating_sub(hours))
    }

    /// Returns its first moment.
    pub fn start(self) -> Timestamp {
        start_of_minute(self.0.saturating_mul(60))
    }

    /// Returns its number since the Unix epoch.
    pub fn number(self) -> u64 {
        u64::try_from(self.0).unwrap_or_default()
    }
}

/// Returns the hours that decide on a spike in an hour.
pub fn window(hour: Hour) -> RangeInclusive<Hour> {
    hour.minus(WEEK + 1)..=hour
}

/// `true` if a spike begins in the last hour of a [`window`] with these events by hour. Hours after
/// the last event can be missing. A spike that continues does not begin again.
pub fn begins(events: &[u64]) -> bool {
    let sum = |hours: &[u64]| hours.iter().fold(0_u64, |sum, events| sum.saturating_add(*events));
    let [before @ .., hour] = events else { return false };
    let [_, week @ ..] = before else { return false };
    let [earlier @ .., hour_before] = before else { return false };
    before.len() == WINDOW_HOURS - 1
        && !is_spike(*hour_before, sum(earlier))
        && is_spike(*hour, sum(week))
}

/// `true` if an hour with `events` events is a spike, after a week with `week` events.
fn is_spike(events: u64, week: u64) -> bool {
    let hours = WEEK.unsigned_abs();
    events >= FEWEST_EVENTS && events.saturating_mul(hours) > week.saturating_mul(FACTOR)
}

impl ErrorRecord {
    /// `true` if a spike in an hour is announced: the error is open, and was announced as new
    /// earlier.
    pub fn may_spike(&self, hour: Hour) -> bool {
        self.status == ErrorStatus::Open && self.first_seen < hour.minus(1).start()
    }

    /// Returns the domain event of a spike of `events` events in an hour, detected at `now`.
    pub fn spike(
        &self,
        project: ProjectId,
        hour: Hour,
        events: u64,
        now: Timestamp,
    ) -> DomainEvent {
        let domain_event = self.domain_event(DomainEventKind::ErrorSpiked, project, now);
        domain_event.at_instance(hour.number()).with_event_count(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `true` if a spike begins in an hour, with these event counts by hours ago.
    fn begins_after(events: &[(usize, u64)]) -> bool {
        let mut hours = [0; WINDOW_HOURS];
        for (ago, events) in events {
            hours[WINDOW_HOURS - 1 - ago] = *events;
        }
        begins(&hours)
    }

    #[test]
    fn spikes_exceed_20_events_and_5_times_mean() {
        assert!(!begins_after(&[(0, 19)]));
        assert!(begins_after(&[(0, 20)]), "no earlier events");
        // 672 events in a week are 4 an hour.
        assert!(!begins_after(&[(0, 20), (100, 672)]));
        assert!(begins_after(&[(0, 21), (100, 672)]));
        assert!(begins_after(&[(0, 20), (100, 671)]));
        assert!(!begins_after(&[(0, 20), (1, 4), (168, 668)]), "both ends of the week count");
        assert!(begins_after(&[(0, 20), (169, 672)]));
    }

    #[test]
    fn continued_spikes_do_not_begin_again() {
        assert!(!begins_after(&[(0, 500), (1, 500)]));
        assert!(begins_after(&[(0, 500), (1, 19)]));
        // An hour that was no spike, since its preceding week was as busy, can precede one.
        assert!(begins_after(&[(0, 30), (1, 20), (169, 672)]));
        assert!(!begins_after(&[(0, 30), (1, 21), (169, 672)]));
        assert!(!begins_after(&[(0, u64::MAX), (1, u64::MAX)]));
    }

    #[test]
    fn hours_map_to_their_days() {
        let at = Timestamp::parse_rfc3339("2026-11-21T04:16:00Z").unwrap();
        let hour = Hour::of(at);
        assert_eq!(hour.start().to_string(), "2026-11-21T04:00:00.000Z");
        assert_eq!(Hour::of_day(Day::of(at), 4), hour);
        assert_eq!(window(hour).start().start().to_string(), "2026-11-14T03:00:00.000Z");
    }
}
