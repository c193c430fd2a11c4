//! Spikes: hours in which an error occurs far more often than before
//! (`docs/semantics/error-tracking.md`, "Spikes").

use std::ops::RangeInclusive;

use notifications::domain_event::{DomainEvent, DomainEventKind};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::log::day::{Day, Hours, minute_of, start_of_minute};
use super::{ErrorRecord, ErrorStatus};

/// How many events an hour has at least that is a spike.
pub const FEWEST_EVENTS: u64 = 20;
/// How many times the mean hour of the week before it has more than.
const FACTOR: u64 = 5;
/// The hours of a week.
const WEEK: i64 = 7 * 24;

/// An hour of the clock, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hour(i64);

impl Hour {
    /// The hour in which `at` lies.
    pub fn of(at: Timestamp) -> Self {
        Self(minute_of(at).div_euclid(60))
    }

    /// An hour of a day, counted from 0.
    pub fn of_day(day: Day, hour: u8) -> Self {
        Self(day.first_minute() / 60 + i64::from(hour))
    }

    /// The hour so many hours before it.
    #[must_use]
    pub fn minus(self, hours: i64) -> Self {
        Self(self.0.saturating_sub(hours))
    }

    /// Its first moment.
    pub fn start(self) -> Timestamp {
        start_of_minute(self.0.saturating_mul(60))
    }

    /// The day in which it lies.
    pub fn day(self) -> Day {
        Day::of(self.start())
    }

    /// Which hour of its day it is.
    pub fn in_day(self) -> u8 {
        u8::try_from(self.0.rem_euclid(24)).unwrap_or_default()
    }

    /// Its number since the Unix epoch.
    pub fn number(self) -> u64 {
        u64::try_from(self.0).unwrap_or_default()
    }
}

/// The hours of a day that lie in a range.
pub fn hours_of_day(range: &RangeInclusive<Hour>, day: Day) -> Hours {
    (0..24).filter(|hour| range.contains(&Hour::of_day(day, *hour))).collect()
}

/// The events of an error in an hour, and in the time by which it is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpikeWindow {
    hour: Hour,
    /// Its own.
    in_hour: u64,
    /// Those of the hour before.
    hour_before: u64,
    /// Those of the 167 hours before that.
    between: u64,
    /// Those of the hour before these.
    earliest: u64,
}

impl SpikeWindow {
    /// None yet.
    pub fn new(hour: Hour) -> Self {
        Self { hour, in_hour: 0, hour_before: 0, between: 0, earliest: 0 }
    }

    /// The hours that matter.
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

    /// How many events the hour has.
    pub fn in_hour(&self) -> u64 {
        self.in_hour
    }

    /// Whether a spike begins in the hour: one that goes on is no other.
    pub fn begins_spike(&self) -> bool {
        let Self { in_hour, hour_before, between, earliest, .. } = *self;
        let goes_on = is_spike(hour_before, between.saturating_add(earliest));
        !goes_on && is_spike(in_hour, between.saturating_add(hour_before))
    }
}

/// Whether an hour is a spike that has so many events, after a week that had so many.
fn is_spike(events: u64, week: u64) -> bool {
    let hours = WEEK.unsigned_abs();
    events >= FEWEST_EVENTS && events.saturating_mul(hours) > week.saturating_mul(FACTOR)
}

impl ErrorRecord {
    /// Whether a spike of it in an hour is worth telling: it is open, and was told to be new before.
    pub fn may_spike(&self, hour: Hour) -> bool {
        self.status == ErrorStatus::Open && self.first_seen < hour.minus(1).start()
    }

    /// That a spike of it was seen at `now`.
    pub fn spike(&self, project: ProjectId, events: &SpikeWindow, now: Timestamp) -> DomainEvent {
        let domain_event = self.domain_event(DomainEventKind::ErrorSpiked, project, now);
        domain_event.at_occasion(events.hour.number()).with_event_count(events.in_hour)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Hour = Hour(1_000);

    /// Events by how many hours ago they were.
    fn around(events: &[(i64, u64)]) -> SpikeWindow {
        let mut around = SpikeWindow::new(HOUR);
        for (ago, events) in events {
            around.add(HOUR.minus(*ago), *events);
        }
        around
    }

    #[test]
    fn a_spike_has_twenty_events_and_more_than_five_times_the_mean() {
        assert!(!around(&[(0, 19)]).begins_spike());
        assert!(around(&[(0, 20)]).begins_spike(), "nothing was before");
        // 672 events in a week are 4 an hour.
        assert!(!around(&[(0, 20), (100, 672)]).begins_spike());
        assert!(around(&[(0, 21), (100, 672)]).begins_spike());
        assert!(around(&[(0, 20), (100, 671)]).begins_spike());
        assert!(!around(&[(0, 20), (1, 4), (168, 668)]).begins_spike(), "the week has both ends");
        assert!(around(&[(0, 20), (169, 672), (170, 672), (-1, 672)]).begins_spike());
    }

    #[test]
    fn a_spike_that_goes_on_is_no_other() {
        assert!(!around(&[(0, 500), (1, 500)]).begins_spike());
        assert!(around(&[(0, 500), (1, 19)]).begins_spike());
        // What was no spike, since the week before it was as busy, may be followed by one.
        assert!(around(&[(0, 30), (1, 20), (169, 672)]).begins_spike());
        assert!(!around(&[(0, 30), (1, 21), (169, 672)]).begins_spike());
        assert!(!around(&[(0, u64::MAX), (1, u64::MAX)]).begins_spike());
    }

    #[test]
    fn an_hour_is_one_of_its_day() {
        let at = Timestamp::parse_rfc3339("2026-11-21T04:16:00Z").unwrap();
        let hour = Hour::of(at);
        assert_eq!(hour.start().to_string(), "2026-11-21T04:00:00.000Z");
        assert_eq!((hour.in_day(), Hour::of_day(hour.day(), 4)), (4, hour));
        let range = hour.minus(5)..=hour;
        assert_eq!(hours_of_day(&range, hour.day()), Hours::between(0, 5));
        assert_eq!(hours_of_day(&range, hour.minus(5).day()), Hours::between(23, 24));
    }
}
