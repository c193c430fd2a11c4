//! The time range of a query and its buckets (`docs/semantics/error-tracking.md`, "Timeseries").

use std::ops::{Range, RangeInclusive};

use shared::json_number::JsonNumber;
use shared::timestamp::Timestamp;

use crate::log::day::{Day, Hours, MINUTES_PER_DAY, minute_of, start_of_minute};
use crate::spike::Hour;

/// Minutes that events can be counted: 400 days.
pub const RETENTION_MINUTES: i64 = 400 * MINUTES_PER_DAY;
const DEFAULT_RANGE_MINUTES: i64 = 7 * MINUTES_PER_DAY;
/// A number below this (March 1973 in milliseconds since the Unix epoch) is read as seconds.
const MIN_MILLIS: i64 = 100_000_000_000;
const MILLIS_PER_MINUTE: i64 = 60_000;

/// The exact time that a client sent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WrittenTime {
    millis: JsonNumber,
}

impl WrittenTime {
    /// Returns the time of milliseconds since the Unix epoch. A number below 10^11 is read as
    /// seconds.
    pub fn new(written: JsonNumber) -> Self {
        let in_seconds = written < JsonNumber::from(MIN_MILLIS);
        Self { millis: if in_seconds { written.times_power_of_ten(3) } else { written } }
    }

    fn floor_to_minute(&self) -> i64 {
        self.millis.floor().div_euclid(MILLIS_PER_MINUTE)
    }

    fn ceil_to_minute(&self) -> i64 {
        ceil_div(self.millis.ceil(), MILLIS_PER_MINUTE)
    }
}

impl From<Timestamp> for WrittenTime {
    fn from(at: Timestamp) -> Self {
        Self { millis: JsonNumber::from(at.as_millis()) }
    }
}

/// The error of a range that does not end after its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`from` must come before `to`")]
pub struct NotARange;

/// The size of buckets: a divisor of a day, so no bucket spans two days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketSize {
    /// One minute.
    Minute,
    /// Five minutes.
    FiveMinutes,
    /// Thirty minutes.
    HalfHour,
    /// One hour.
    Hour,
    /// One day.
    Day,
}

impl BucketSize {
    /// Returns the size for a range of `minutes`.
    fn for_length(minutes: i64) -> Self {
        match minutes {
            ..=120 => Self::Minute,
            121..=720 => Self::FiveMinutes,
            721..=2_880 => Self::HalfHour,
            2_881..=20_160 => Self::Hour,
            _ => Self::Day,
        }
    }

    /// Returns the size in minutes.
    pub fn minutes(self) -> i64 {
        match self {
            Self::Minute => 1,
            Self::FiveMinutes => 5,
            Self::HalfHour => 30,
            Self::Hour => 60,
            Self::Day => MINUTES_PER_DAY,
        }
    }

    /// Returns the size in seconds, the unit of the response header.
    pub fn seconds(self) -> i64 {
        self.minutes() * 60
    }

    /// `true` if each bucket has whole hours.
    pub fn has_whole_hours(self) -> bool {
        matches!(self, Self::Hour | Self::Day)
    }
}

/// The time range of a query and its buckets. All minutes are counted from the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryRange {
    size: BucketSize,
    /// The rounded range, with `from` moved up to the retention.
    minutes: Range<i64>,
    /// The returned buckets, numbered from the Unix epoch in units of their size.
    buckets: Range<i64>,
}

impl QueryRange {
    /// Returns the range [`from`, `to`) of a query at `now`, with the newest `limit` buckets. `to`
    /// defaults to now, `from` to 7 days before `to`.
    pub fn new(
        from: Option<&WrittenTime>,
        to: Option<&WrittenTime>,
        limit: Option<u16>,
        now: Timestamp,
    ) -> Result<Self, NotARange> {
        let written_now = WrittenTime::from(now);
        let to = to.unwrap_or(&written_now);
        if from.is_some_and(|from| from >= to) {
            return Err(NotARange);
        }
        let to_minute = to.ceil_to_minute();
        let from_minute = match from {
            Some(from) => from.floor_to_minute(),
            // Count 7 days from `to` itself, not from the end of its minute.
            None => to.floor_to_minute().saturating_sub(DEFAULT_RANGE_MINUTES),
        };
        let range = Self::of_minutes(from_minute, to_minute, limit, minute_of(now));
        // Rounding can move a future start before now, and into a bucket that has begun.
        let is_to_come = from.is_some_and(|from| *from > written_now);
        Ok(if is_to_come { range.without_buckets() } else { range })
    }

    /// Returns the range of the last `minutes` before `now`.
    pub fn until(now: Timestamp, minutes: i64) -> Self {
        let (from, to) = (minute_of(now).saturating_sub(minutes), minute_of(now) + 1);
        Self::of_minutes(from, to, None, minute_of(now))
    }

    /// Returns the range of the last `minutes` minutes, with a bucket for each.
    pub fn by_minute(now: Timestamp, minutes: u16) -> Self {
        let to = minute_of(now) + 1;
        let minutes = to - i64::from(minutes)..to;
        Self { size: BucketSize::Minute, buckets: minutes.clone(), minutes }
    }

    /// Returns the range of these hours, which can be in the future.
    pub fn of_hours(hours: &RangeInclusive<Hour>) -> Self {
        let [from, to] = [*hours.start(), hours.end().minus(-1)].map(|it| minute_of(it.start()));
        Self::of_minutes(from, to, None, to)
    }

    fn of_minutes(from: i64, to: i64, limit: Option<u16>, now: i64) -> Self {
        // Choose the size before the retention moves `from`, so it depends only on the request.
        let size = BucketSize::for_length(to.saturating_sub(from));
        let oldest = now.saturating_sub(RETENTION_MINUTES);
        let to = to.min(LAST_MINUTE);
        let from = from.max(oldest).min(to.max(FIRST_MINUTE));
        let first = from.div_euclid(size.minutes());
        let end = ceil_div(to, size.minutes()).min(now.div_euclid(size.minutes()) + 1);
        let end = if from < to { end.max(first) } else { first };
        let first = limit.map_or(first, |limit| first.max(end - i64::from(limit)));
        Self { size, minutes: from..to.max(from), buckets: first..end }
    }

    fn without_buckets(self) -> Self {
        let Range { start, .. } = self.buckets;
        Self { buckets: start..start, ..self }
    }

    /// Returns the size of the buckets.
    pub fn bucket_size(&self) -> BucketSize {
        self.size
    }

    /// Returns the start of the range, rounded down to the minute and moved up to the retention.
    pub fn from(&self) -> Timestamp {
        start_of_minute(self.minutes.start)
    }

    /// Returns the end of the range, rounded up to the minute.
    pub fn to(&self) -> Timestamp {
        start_of_minute(self.minutes.end)
    }

    /// Returns the number of returned buckets.
    pub fn bucket_count(&self) -> usize {
        usize::try_from(self.buckets.end - self.buckets.start).unwrap_or(0)
    }

    /// Returns the starts of the buckets, oldest first.
    pub fn bucket_starts(&self) -> impl Iterator<Item = Timestamp> {
        let minutes = self.size.minutes();
        self.buckets.clone().map(move |bucket| start_of_minute(bucket * minutes))
    }

    /// Returns the index of the bucket that counts a minute. `None` if no bucket counts it.
    pub fn bucket_of(&self, minute: i64) -> Option<usize> {
        if !self.counted_minutes().contains(&minute) {
            return None;
        }
        usize::try_from(minute.div_euclid(self.size.minutes()) - self.buckets.start).ok()
    }

    /// Returns the days with counted minutes.
    pub fn days(&self) -> impl Iterator<Item = Day> {
        let Range { start, end } = self.counted_minutes();
        let first = (start < end).then(|| Day::of_minute(start));
        std::iter::successors(first, |day| Some(day.next()))
            .take_while(move |day| day.first_minute() < end)
    }

    /// Returns the hours of a day with at least one counted minute.
    pub fn hours_of(&self, day: Day) -> Hours {
        let counted = self.counted_minutes();
        hours_where(day, |hour| hour.start < counted.end && counted.start < hour.end)
    }

    /// Returns the hours of a day whose minutes are all counted.
    pub fn whole_hours_of(&self, day: Day) -> Hours {
        let counted = self.counted_minutes();
        hours_where(day, |hour| counted.start <= hour.start && hour.end <= counted.end)
    }

    /// `true` if counting these hours of a day, perhaps by bucket, needs the minute of each event: a
    /// bucket has a part of an hour, or an hour is only partly counted.
    pub fn needs_minutes(&self, day: Day, hours: Hours, by_bucket: bool) -> bool {
        let counted = hours.common_with(self.hours_of(day));
        let is_divided = by_bucket && !self.size.has_whole_hours() && !counted.is_empty();
        is_divided || !counted.is_within(self.whole_hours_of(day))
    }

    /// Returns the minutes of the range that are in returned buckets.
    fn counted_minutes(&self) -> Range<i64> {
        let size = self.size.minutes();
        let start = self.minutes.start.max(self.buckets.start * size);
        start..self.minutes.end.min(self.buckets.end * size).max(start)
    }
}

/// The first minute that a timestamp can express. [`LAST_MINUTE`] is the last.
const FIRST_MINUTE: i64 = Timestamp::MIN_MILLIS / MILLIS_PER_MINUTE;
const LAST_MINUTE: i64 = Timestamp::MAX_MILLIS / MILLIS_PER_MINUTE;

fn hours_where(day: Day, condition: impl Fn(Range<i64>) -> bool) -> Hours {
    let start_of = |hour: u8| day.first_minute().saturating_add(i64::from(hour) * 60);
    (0..24).filter(|hour| condition(start_of(*hour)..start_of(hour + 1))).collect()
}

fn ceil_div(dividend: i64, divisor: i64) -> i64 {
    dividend.div_euclid(divisor) + i64::from(dividend.rem_euclid(divisor) > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: &str = "2026-11-21T04:16:30.500Z";

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_date_or_date_time(text).unwrap()
    }

    fn written(number: &str) -> WrittenTime {
        WrittenTime::new(JsonNumber::parse(number).unwrap())
    }

    /// Returns a range. `from` and `to` are numbers or dates, or empty if absent.
    fn range_at(from: &str, to: &str, limit: Option<u16>, now: &str) -> QueryRange {
        let time = |text: &str| match text {
            "" => None,
            _ => Some(
                Timestamp::parse_date_or_date_time(text)
                    .map_or_else(|_| written(text), WrittenTime::from),
            ),
        };
        QueryRange::new(time(from).as_ref(), time(to).as_ref(), limit, at(now)).unwrap()
    }

    fn range(from: &str, to: &str) -> QueryRange {
        range_at(from, to, None, NOW)
    }

    fn starts(range: &QueryRange) -> Vec<String> {
        range.bucket_starts().map(|start| start.to_string()).collect()
    }

    fn bounds(range: &QueryRange) -> [String; 2] {
        [range.from().to_string(), range.to().to_string()]
    }

    #[test]
    fn numbers_below_1e11_are_seconds() {
        let second = range("1795234560", "1795234620");
        assert_eq!(second, range("1795234560000", "1795234620000"));
        assert_eq!(bounds(&second), ["2026-11-21T04:16:00.000Z", "2026-11-21T04:17:00.000Z"]);
        let largest_seconds = written("99999999999.999");
        assert_eq!(largest_seconds.millis, JsonNumber::from(99_999_999_999_999));
        assert_eq!(written("1e11").millis, JsonNumber::from(MIN_MILLIS));
        assert_eq!(written("-1e12").millis, JsonNumber::from(-1_000_000_000_000_000));
    }

    #[test]
    fn ranges_are_widened_to_whole_minutes() {
        let rounded = range("1795234559999.999", "1795234560000.001");
        assert_eq!(bounds(&rounded), ["2026-11-21T04:15:00.000Z", "2026-11-21T04:17:00.000Z"]);
        assert_eq!(rounded.bucket_count(), 2);
        let exact = range("1795234500000", "1795234560000");
        assert_eq!(bounds(&exact), ["2026-11-21T04:15:00.000Z", "2026-11-21T04:16:00.000Z"]);
    }

    #[test]
    fn ranges_default_to_the_last_seven_days() {
        let default = range("", "");
        assert_eq!(bounds(&default), ["2026-11-14T04:16:00.000Z", "2026-11-21T04:17:00.000Z"]);
        assert_eq!(default.bucket_size(), BucketSize::Hour);
        assert_eq!(default.bucket_count(), 7 * 24 + 1);
        let before = range("", "2026-03-01");
        assert_eq!(bounds(&before), ["2026-02-22T00:00:00.000Z", "2026-03-01T00:00:00.000Z"]);
        assert_eq!(before.bucket_count(), 7 * 24);
    }

    #[test]
    fn from_must_come_before_to() {
        let rejected = |from: &str, to: Option<&str>| {
            let to = to.map(written);
            QueryRange::new(Some(&written(from)), to.as_ref(), None, at(NOW)).is_err()
        };
        assert!(rejected("1795234560000", Some("1795234560000")));
        assert!(rejected("1795234560001", Some("1795234560000")));
        // Seconds and milliseconds of one point in time.
        assert!(rejected("1795234560", Some("1795234560000")));
        assert!(rejected("1e401", Some("1e400")));
        // Without `to`, the range ends now, so `from` must be earlier.
        assert!(rejected("1795234590500", None));
        assert!(!rejected("1795234590499", None));
        assert!(!rejected("1795234560000", Some("1795234560000.0001")));
        assert!(!rejected("-1e401", Some("-1e400")));
        assert!(!rejected("1e400", Some("1e401")));
    }

    #[test]
    fn bucket_size_depends_on_the_rounded_length() {
        let minute = 60_000_i64;
        let end = at("2026-11-21").as_millis();
        let size_of = |minutes: i64, more_millis: i64| {
            let from = (end - minutes * minute - more_millis).to_string();
            range(&from, &end.to_string()).bucket_size()
        };
        let cases = [
            (2 * 60, BucketSize::Minute, BucketSize::FiveMinutes),
            (12 * 60, BucketSize::FiveMinutes, BucketSize::HalfHour),
            (48 * 60, BucketSize::HalfHour, BucketSize::Hour),
            (14 * 24 * 60, BucketSize::Hour, BucketSize::Day),
        ];
        for (minutes, size, next) in cases {
            assert_eq!((size_of(minutes, 0), size_of(minutes, 1)), (size, next), "{minutes}");
        }
        assert_eq!(size_of(500 * 24 * 60, 0), BucketSize::Day);
        assert_eq!(BucketSize::FiveMinutes.seconds(), 300);
    }

    #[test]
    fn buckets_are_aligned_to_utc() {
        let five = range("2026-11-20T10:03:00Z", "2026-11-20T14:01:00Z");
        let shown = starts(&five);
        assert_eq!(shown[0], "2026-11-20T10:00:00.000Z");
        assert_eq!(shown[1], "2026-11-20T10:05:00.000Z");
        assert_eq!(shown.last().unwrap(), "2026-11-20T14:00:00.000Z");
        let days = range("2026-10-01T17:00:00Z", "2026-11-01T03:00:00Z");
        assert_eq!(starts(&days)[0], "2026-10-01T00:00:00.000Z");
        assert_eq!(days.bucket_count(), 32);
    }

    #[test]
    fn outer_buckets_count_only_minutes_of_the_range() {
        let days = range("2026-10-01T17:00:00Z", "2026-11-01T03:00:00Z");
        let bucket_of = |text: &str| days.bucket_of(minute_of(at(text)));
        assert_eq!(bucket_of("2026-10-01T16:59:00Z"), None);
        assert_eq!(bucket_of("2026-10-01T17:00:00Z"), Some(0));
        assert_eq!(bucket_of("2026-10-02T00:00:00Z"), Some(1));
        assert_eq!(bucket_of("2026-11-01T02:59:59Z"), Some(31));
        assert_eq!(bucket_of("2026-11-01T03:00:00Z"), None);
    }

    #[test]
    fn no_bucket_starts_after_now() {
        let open = range("2026-11-21T03:10:00Z", "2026-11-21T05:10:00Z");
        assert_eq!(starts(&open).last().unwrap(), "2026-11-21T04:16:00.000Z");
        assert_eq!(open.to(), at("2026-11-21T05:10:00Z"));
        assert_eq!(open.bucket_of(minute_of(at("2026-11-21T04:17:00Z"))), None);
        // A bucket that starts exactly now is returned.
        let whole =
            range_at("2026-11-21T03:00:00Z", "2026-11-21T05:00:00Z", None, "2026-11-21T04:00:00Z");
        assert_eq!(starts(&whole).last().unwrap(), "2026-11-21T04:00:00.000Z");
        // The current bucket is returned, including its future minutes.
        let days = range("2026-11-01", "2027-11-01");
        assert_eq!(starts(&days).last().unwrap(), "2026-11-21T00:00:00.000Z");
        assert_eq!(days.bucket_of(minute_of(at("2026-11-21T23:59:00Z"))), Some(20));
    }

    #[test]
    fn future_ranges_have_no_buckets() {
        let futures = [
            ("2026-11-21T04:17:00Z", "2026-11-21T04:18:00Z"),
            ("1e400", "1e401"),
            // Starts later in the current bucket of a minute, five minutes and a day.
            ("2026-11-21T04:16:30.501Z", "2026-11-21T05:16:00Z"),
            ("2026-11-21T04:17:00Z", "2026-11-21T09:17:00Z"),
            ("2026-11-21T05:00:00Z", "2027-11-21T00:00:00Z"),
        ];
        for (from, to) in futures {
            let future = range(from, to);
            assert_eq!((future.bucket_count(), future.days().count()), (0, 0), "{from}");
        }
        // A range that starts exactly now has the current bucket.
        assert_eq!(range("2026-11-21T04:16:30.500Z", "2026-11-21T05:16:00Z").bucket_count(), 1);
    }

    #[test]
    fn ranges_until_now_have_the_current_bucket() {
        let last_hour = range("1795230990500", "");
        assert_eq!(bounds(&last_hour), ["2026-11-21T03:16:00.000Z", "2026-11-21T04:17:00.000Z"]);
        assert_eq!(last_hour.bucket_count(), 61);
        assert_eq!(starts(&last_hour)[60], "2026-11-21T04:16:00.000Z");
    }

    #[test]
    fn old_ranges_start_at_the_retention() {
        let all = range("0", "");
        assert_eq!(bounds(&all), ["2025-10-17T04:16:00.000Z", "2026-11-21T04:17:00.000Z"]);
        assert_eq!(all.bucket_count(), 401);
        let hostile = range("-1e999999999999999999999", "");
        assert_eq!((starts(&hostile), bounds(&hostile)), (starts(&all), bounds(&all)));
        // The bucket size depends on the requested range.
        let nearly_gone = range("2025-09-01", "2025-10-17T05:00:00Z");
        assert_eq!(nearly_gone.bucket_size(), BucketSize::Day);
        assert_eq!(starts(&nearly_gone), ["2025-10-17T00:00:00.000Z"]);
        assert_eq!(nearly_gone.bucket_of(minute_of(at("2025-10-17T04:15:00Z"))), None);
        assert_eq!(nearly_gone.bucket_of(minute_of(at("2025-10-17T04:16:00Z"))), Some(0));
    }

    #[test]
    fn ranges_before_the_retention_have_no_buckets() {
        for (from, to) in [("2025-01-01", "2025-10-17T04:16:00Z"), ("0", "1"), ("-1e401", "-1e400")]
        {
            let gone = range(from, to);
            assert_eq!((gone.bucket_count(), gone.days().count()), (0, 0), "{from}");
        }
        assert_eq!(range("2025-10-17", "2025-10-17T04:16:01Z").bucket_count(), 1);
    }

    #[test]
    fn limit_keeps_the_newest_buckets() {
        let (from, to) = ("2026-10-01T17:00:00Z", "2026-11-01T03:00:00Z");
        let unlimited = starts(&range(from, to));
        for (limit, kept) in [(1, 1), (5, 5), (32, 32), (1_000, 32)] {
            let limited = range_at(from, to, Some(limit), NOW);
            assert_eq!(starts(&limited), unlimited[32 - kept..]);
            // The range itself does not depend on the limit.
            assert_eq!(bounds(&limited), bounds(&range(from, to)));
        }
        let two = range_at(from, to, Some(2), NOW);
        let days: Vec<String> = two.days().map(|day| day.to_string()).collect();
        assert_eq!(days, ["2026-10-31", "2026-11-01"]);
    }

    #[test]
    fn leap_days_and_new_year_are_ordinary_days() {
        let now = "2028-03-05T00:00:00Z";
        let leap = range_at("2028-02-20", "2028-03-06", None, now);
        assert_eq!(starts(&leap)[9..11], ["2028-02-29T00:00:00.000Z", "2028-03-01T00:00:00.000Z"]);
        let new_year = range_at("2027-12-31T23:00:00Z", "2028-01-01T01:00:00Z", None, now);
        assert_eq!(
            starts(&new_year)[59..61],
            ["2027-12-31T23:59:00.000Z", "2028-01-01T00:00:00.000Z"]
        );
        let days: Vec<String> = new_year.days().map(|day| day.to_string()).collect();
        assert_eq!(days, ["2027-12-31", "2028-01-01"]);
    }

    #[test]
    fn ranges_report_the_counted_hours() {
        let days = range("2026-10-01T17:30:00Z", "2026-11-01T03:00:00Z");
        let first = Day::of(at("2026-10-01"));
        assert_eq!(days.hours_of(first), Hours::between(17, 24));
        assert_eq!(days.whole_hours_of(first), Hours::between(18, 24));
        assert_eq!(days.hours_of(Day::of(at("2026-10-15"))), Hours::ALL);
        assert_eq!(days.hours_of(Day::of(at("2026-11-01"))), Hours::between(0, 3));
        assert_eq!(days.hours_of(Day::of(at("2026-11-02"))), Hours::NONE);
        assert!(days.needs_minutes(first, Hours::between(16, 18), true));
        assert!(!days.needs_minutes(first, Hours::between(18, 24), true));
        assert!(!days.needs_minutes(first, Hours::between(0, 17), true));
        let half_hours = range("2026-10-01", "2026-10-03");
        assert!(half_hours.needs_minutes(first, Hours::ALL, true));
        assert!(!half_hours.needs_minutes(first, Hours::ALL, false));
    }

    fn numbers() -> impl Strategy<Value = String> {
        let around_now = (-450_i64 * 86_400_000..10 * 86_400_000).prop_map(|offset| {
            (Timestamp::parse_rfc3339(NOW).unwrap().as_millis() + offset).to_string()
        });
        prop_oneof![4 => around_now, 1 => "-?[0-9]{1,15}(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,25})?"]
    }

    proptest! {
        #[test]
        fn any_range_has_few_consistent_buckets(
            from in proptest::option::of(numbers()),
            to in proptest::option::of(numbers()),
            limit in proptest::option::of(1_u16..=1_000),
        ) {
            let (from, to) = (from.map(|n| written(&n)), to.map(|n| written(&n)));
            let Ok(range) = QueryRange::new(from.as_ref(), to.as_ref(), limit, at(NOW)) else {
                return Ok(());
            };
            let starts: Vec<i64> = range.bucket_starts().map(minute_of).collect();
            prop_assert!(starts.len() <= usize::from(limit.unwrap_or(1_000)).min(402));
            let size = range.bucket_size().minutes();
            prop_assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == size));
            prop_assert!(starts.iter().all(|start| start % size == 0 && *start <= minute_of(at(NOW))));
            for (index, start) in starts.iter().enumerate() {
                let inside = |minute: i64| {
                    minute >= minute_of(range.from()) && minute < minute_of(range.to())
                };
                for minute in [*start, start + size / 2, start + size - 1] {
                    prop_assert_eq!(range.bucket_of(minute), inside(minute).then_some(index));
                    prop_assert_eq!(range.days().any(|day| day == Day::of_minute(minute)) , {
                        let day = Day::of_minute(minute);
                        !range.hours_of(day).is_empty()
                    });
                }
            }
        }
    }
}
