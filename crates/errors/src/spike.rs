//! Spikes: hours in which an error occurs far more often than before
//! (`docs/semantics/error-tracking.md`, "Spikes").

use std::ops::RangeInclusive;

use notifications::domain_event::{DomainEvent, DomainEventKind};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::log::day::{Day, Hours, minute_of, start_of_minute};
use super::{ErrorRecord, ErrorStatus};

/// Minimum events of an hour with a spike.
pub const FEWEST_EVENTS: u64 = 20;
/// A spike has more than this multiple of the mean hour in the preceding week.
const FACTOR: u64 = 5;
/// Hours of a week.
const WEEK: i64 = 7 * 24;

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

    /// Returns its day.
    pub fn day(self) -> Day {
        Day::of(self.start())
    }

    /// Returns its index in its day.
    pub fn in_day(self) -> u8 {
        u8::try_from(self.0.rem_euclid(24)).unwrap_or_default()
    }

    /// Returns its number since the Unix epoch.
    pub fn number(self) -> u64 {
        u64::try_from(self.0).unwrap_or_default()
    }
}

/// Returns the hours of a day that are in a range.
pub fn hours_of_day(range: &RangeInclusive<Hour>, day: Day) -> Hours {
    (0..24).filter(|hour| range.contains(&Hour::of_day(day, *hour))).collect()
}

/// Event counts of an error in an hour, and in the preceding time that decides on a spike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpikeWindow {
    hour: Hour,
    /// Events of the hour.
    in_hour: u64,
    /// Events of the previous hour.
    hour_before: u64,
    /// Events of the 167 hours before the previous hour.
    between: u64,
    /// Events of the hour before those.
    earliest: u64,
}

impl SpikeWindow {
    /// Creates a window without events.
    pub fn new(hour: Hour) -> Self {
        Self { hour, in_hour: 0, hour_before: 0, between: 0, earliest: 0 }
    }

    /// Returns the hours that decide on a spike.
    pub fn range(hour: Hour) -> RangeInclusive<Hour> {
        hour.minus(WEEK + 1)..=hour
    }

    /// Adds events of an hour.
    pub fn add(&mut self, hour: Hour, events: u64) {
        let counted = match self.hour.0 - hour.0 {
            0 => &mut self.in_hour,
            1 => &mut self.hour_before,
            ago if (2..=WEEK).contains(&ago) => &mut self.between,
            ago if ago == WEEK + 1 => &mut self.earliest,
            _ => return,
        };
        *counted = counted.saturating_add(events);
    }

    /// Returns the number of events in the hour.
    pub fn in_hour(&self) -> u64 {
        self.in_hour
    }

    /// `true` if a spike begins in the hour. A spike that continues does not begin again.
    pub fn begins_spike(&self) -> bool {
        let Self { in_hour, hour_before, between, earliest, .. } = *self;
        let continues = is_spike(hour_before, between.saturating_add(earliest));
        !continues && is_spike(in_hour, between.saturating_add(hour_before))
    }
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

    /// Returns the domain event of a spike that was detected at `now`.
    pub fn spike(&self, project: ProjectId, events: &SpikeWindow, now: Timestamp) -> DomainEvent {
        let domain_event = self.domain_event(DomainEventKind::ErrorSpiked, project, now);
        domain_event.at_instance(events.hour.number()).with_event_count(events.in_hour)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Hour = Hour(1_000);

    /// Creates a window from event counts, by hours ago.
    fn around(events: &[(i64, u64)]) -> SpikeWindow {
        let mut around = SpikeWindow::new(HOUR);
        for (ago, events) in events {
            around.add(HOUR.minus(*ago), *events);
        }
        around
    }

    #[test]
    fn spikes_exceed_20_events_and_5_times_mean() {
        assert!(!around(&[(0, 19)]).begins_spike());
        assert!(around(&[(0, 20)]).begins_spike(), "no earlier events");
        // 672 events in a week are 4 an hour.
        assert!(!around(&[(0, 20), (100, 672)]).begins_spike());
        assert!(around(&[(0, 21), (100, 672)]).begins_spike());
        assert!(around(&[(0, 20), (100, 671)]).begins_spike());
        assert!(
            !around(&[(0, 20), (1, 4), (168, 668)]).begins_spike(),
            "both ends of the week count"
        );
        assert!(around(&[(0, 20), (169, 672), (170, 672), (-1, 672)]).begins_spike());
    }

    #[test]
    fn continued_spikes_do_not_begin_again() {
        assert!(!around(&[(0, 500), (1, 500)]).begins_spike());
        assert!(around(&[(0, 500), (1, 19)]).begins_spike());
        // An hour that was no spike, since its preceding week was as busy, can precede one.
        assert!(around(&[(0, 30), (1, 20), (169, 672)]).begins_spike());
        assert!(!around(&[(0, 30), (1, 21), (169, 672)]).begins_spike());
        assert!(!around(&[(0, u64::MAX), (1, u64::MAX)]).begins_spike());
    }

    #[test]
    fn hours_map_to_their_days() {
        let at = Timestamp::parse_rfc3339("2026-11-21T04:16:00Z").unwrap();
        let hour = Hour::of(at);
        assert_eq!(hour.start().to_string(), "2026-11-21T04:00:00.000Z");
        assert_eq!((hour.in_day(), Hour::of_day(hour.day(), 4)), (4, hour));
        let range = hour.minus(5)..=hour;
        assert_eq!(hours_of_day(&range, hour.day()), Hours::between(0, 5));
        assert_eq!(hours_of_day(&range, hour.minus(5).day()), Hours::between(23, 24));
    }
}
