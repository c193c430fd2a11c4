//! Days and their hours, the units in which errors are stored.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use shared::timestamp::Timestamp;

/// Minutes of a day. Unix time has no leap seconds.
pub const MINUTES_PER_DAY: i64 = 24 * 60;
const MILLIS_PER_MINUTE: i64 = 60_000;
/// Retention of counts after the day of their events, and of errors after their last event: 400
/// days.
pub const COUNT_RETENTION: Duration = Duration::from_hours(24 * 400);

/// Returns the minute of `at`, counted from the Unix epoch.
pub fn minute_of(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(MILLIS_PER_MINUTE)
}

/// Returns the start of a minute, which is counted from the Unix epoch.
pub fn start_of_minute(minute: i64) -> Timestamp {
    Timestamp::from_millis(minute.saturating_mul(MILLIS_PER_MINUTE))
}

/// A calendar day in UTC. Displays as `2026-11-21`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

impl Day {
    /// Returns the day of `at`.
    pub fn of(at: Timestamp) -> Self {
        Self::of_minute(minute_of(at))
    }

    /// Returns the day of a minute, which is counted from the Unix epoch.
    pub fn of_minute(minute: i64) -> Self {
        Self(minute.div_euclid(MINUTES_PER_DAY))
    }

    /// Returns the first minute of the day, counted from the Unix epoch.
    pub fn first_minute(self) -> i64 {
        self.0.saturating_mul(MINUTES_PER_DAY)
    }

    /// Returns the start of the day.
    pub fn start(self) -> Timestamp {
        start_of_minute(self.first_minute())
    }

    /// Returns the next day.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.start().to_string();
        formatter.write_str(start.split('T').next().unwrap_or_default())
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A set of hours of a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Hours(u32);

impl Hours {
    /// Every hour of a day.
    pub const ALL: Self = Self((1 << 24) - 1);
    /// No hour.
    pub const NONE: Self = Self(0);

    /// Returns the hours of a day from `from` up to, but not including, `to`.
    pub fn between(from: u8, to: u8) -> Self {
        let before = |hour: u8| (1_u32 << hour.min(24)) - 1;
        Self(before(to) & !before(from))
    }

    /// Returns the hours whose bits are set. The lowest bit is hour 0. `None` if a bit is not an
    /// hour of a day.
    pub fn from_bits(bits: u32) -> Option<Self> {
        (bits <= Self::ALL.0).then_some(Self(bits))
    }

    /// Returns one bit for each hour. The lowest bit is hour 0.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// `true` if the set contains `hour`.
    pub fn contains(self, hour: u8) -> bool {
        hour < 24 && self.0 >> hour & 1 == 1
    }

    /// `true` if `others` contains every hour of this set.
    pub fn is_within(self, others: Self) -> bool {
        self.0 & !others.0 == 0
    }

    /// `true` if the set contains no hour.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the hours that are in this set, in `others`, or in both.
    #[must_use]
    pub fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns the hours that are in both sets.
    #[must_use]
    pub fn common_with(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// Returns the hours of this set that are not in `others`.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Returns the hours in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let hour = u8::try_from(left.trailing_zeros()).ok().filter(|hour| *hour < 24)?;
            left &= left - 1;
            Some(hour)
        })
    }
}

impl FromIterator<u8> for Hours {
    fn from_iter<I: IntoIterator<Item = u8>>(hours: I) -> Self {
        let hours = hours.into_iter().map(|hour| Self::between(hour, hour.saturating_add(1)));
        hours.fold(Self::NONE, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        Day::of(Timestamp::parse_date_or_date_time(text).unwrap())
    }

    #[test]
    fn a_day_lasts_from_midnight_to_midnight() {
        let leap_day = day("2028-02-29");
        assert_eq!(leap_day, day("2028-02-29T23:59:59.999Z"));
        assert_eq!(leap_day.next(), day("2028-03-01T00:00:00Z"));
        assert_eq!(day("2027-02-28").next().to_string(), "2027-03-01");
        assert_eq!(day("2026-12-31").next().to_string(), "2027-01-01");
        assert_eq!(day("1969-12-31T23:59:00Z").to_string(), "1969-12-31");
        assert_eq!(leap_day.start().to_string(), "2028-02-29T00:00:00.000Z");
        assert_eq!(Day::of_minute(leap_day.first_minute() + 1_439), leap_day);
        assert_eq!(Day::of_minute(leap_day.first_minute() + 1_440), leap_day.next());
    }

    #[test]
    fn minutes_start_at_or_before_their_times() {
        for millis in [-60_001, -60_000, -1, 0, 59_999, 60_000] {
            let start = start_of_minute(minute_of(Timestamp::from_millis(millis))).as_millis();
            assert!((start..start + 60_000).contains(&millis), "{millis}");
        }
    }

    #[test]
    fn hours_are_half_open_within_a_day() {
        let listed = |hours: Hours| hours.iter().collect::<Vec<u8>>();
        assert_eq!(listed(Hours::between(3, 6)), [3, 4, 5]);
        assert_eq!(listed(Hours::between(22, 255)), [22, 23]);
        assert_eq!(listed(Hours::between(6, 3)), [0; 0]);
        assert_eq!(Hours::between(0, 24), Hours::ALL);
        assert_eq!([24, 255].into_iter().collect::<Hours>(), Hours::NONE);
        assert_eq!(Hours::from_bits(1 << 24), None);
        assert_eq!(Hours::from_bits(0b101), Some([0, 2].into_iter().collect()));
    }

    #[test]
    fn hours_are_a_set() {
        let (early, middle) = (Hours::between(0, 12), Hours::between(6, 18));
        assert_eq!(early.with(middle), Hours::between(0, 18));
        assert_eq!(early.common_with(middle), Hours::between(6, 12));
        assert_eq!(early.without(middle), Hours::between(0, 6));
        assert!(Hours::between(6, 12).is_within(early) && !middle.is_within(early));
    }
}
