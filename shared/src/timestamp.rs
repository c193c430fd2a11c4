//! Times.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A time in milliseconds, between the years 0 and 9999, the range of RFC 3339. Displays as RFC
/// 3339 in UTC: `2026-11-21T04:16:00.000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(OffsetDateTime);

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let elapsed = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self::from_millis(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A text that is not a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an RFC 3339 date-time with a time zone, such as 2026-11-21T04:16:00Z")]
pub struct NotATimestamp;

impl Timestamp {
    /// The earliest time: the start of the year 0.
    pub const MIN_MILLIS: i64 = -62_167_219_200_000;
    /// The latest time: the end of the year 9999.
    pub const MAX_MILLIS: i64 = 253_402_300_799_999;

    /// Returns the time `millis` milliseconds after the Unix epoch. Clamps it to the years 0 to
    /// 9999.
    pub fn from_millis(millis: i64) -> Self {
        let nanos = i128::from(millis.clamp(Self::MIN_MILLIS, Self::MAX_MILLIS)) * 1_000_000;
        Self(OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap_or(OffsetDateTime::UNIX_EPOCH))
    }

    /// Returns the milliseconds since the Unix epoch.
    pub fn as_millis(self) -> i64 {
        self.0.unix_timestamp() * 1_000 + i64::from(self.0.millisecond())
    }

    /// Returns the whole seconds since the Unix epoch, the unit of DynamoDB's time to live.
    pub fn as_seconds(self) -> i64 {
        self.0.unix_timestamp()
    }

    /// Returns the time that is `duration` later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.as_millis().saturating_add(millis))
    }

    /// Returns the time that is `duration` earlier.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.as_millis().saturating_sub(millis))
    }

    /// Returns the duration from this time to a later one, or zero if that one is earlier.
    pub fn until(self, later: Self) -> Duration {
        let millis = later.as_millis().saturating_sub(self.as_millis());
        Duration::from_millis(u64::try_from(millis).unwrap_or_default())
    }

    /// Parses an RFC 3339 date-time with any zone, `T` and `Z` in either case, and a fraction of
    /// any length, of which milliseconds are kept. Second 60 is rejected, since it cannot be
    /// compared.
    pub fn parse_rfc3339(text: &str) -> Result<Self, NotATimestamp> {
        let bytes = text.as_bytes();
        // The library accepts any separator, and converts a leap second to the second before it.
        let separated_by_t = matches!(bytes.get(10), Some(b'T' | b't'));
        let leap_second = bytes.get(17) == Some(&b'6');
        if !separated_by_t || leap_second {
            return Err(NotATimestamp);
        }
        let parsed = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| NotATimestamp)?;
        let millis = parsed.unix_timestamp_nanos().div_euclid(1_000_000);
        i64::try_from(millis).map(Self::from_millis).map_err(|_| NotATimestamp)
    }

    /// Parses an RFC 3339 date-time, or a full date, which means its first moment in UTC.
    pub fn parse_date_or_date_time(text: &str) -> Result<Self, NotATimestamp> {
        Self::parse_rfc3339(text)
            .or_else(|_| Self::parse_rfc3339(&format!("{text}T00:00:00Z")))
            .map_err(|_| NotATimestamp)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.0.to_calendar_date();
        let (hour, minute, second, milli) = self.0.to_hms_milli();
        write!(
            formatter,
            "{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z",
            u8::from(month)
        )
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse_rfc3339(&text).map_err(D::Error::custom)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displays_milliseconds_in_utc() {
        let at = Timestamp::from_millis(1_795_234_560_007);
        assert_eq!(at.to_string(), "2026-11-21T04:16:00.007Z");
        assert_eq!(Timestamp::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::from_millis(-1).to_string(), "1969-12-31T23:59:59.999Z");
        assert_eq!(Timestamp::from_millis(i64::MIN).to_string(), "0000-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::from_millis(i64::MAX).to_string(), "9999-12-31T23:59:59.999Z");
        for millis in [-1, -1_001, 0, 999, Timestamp::MIN_MILLIS, Timestamp::MAX_MILLIS] {
            assert_eq!(Timestamp::from_millis(millis).as_millis(), millis);
        }
    }

    #[test]
    fn rfc_3339_times_are_parsed() {
        for text in ["2026-11-21T05:16:00.0079+01:00", "2026-11-21t04:16:00.007z"] {
            let parsed = Timestamp::parse_rfc3339(text).map(Timestamp::as_millis);
            assert_eq!(parsed, Ok(1_795_234_560_007), "{text}");
        }
    }

    #[test]
    fn other_times_are_rejected() {
        for text in [
            "2026-11-21",
            "2026-11-21T04:16:00",
            "2026-11-21 04:16:00Z",
            "2026-02-29T00:00:00Z",
            "2016-12-31T23:59:60Z",
            "2026-11-21T24:00:00Z",
            "2026-11-21T04:16:00+25:00",
            "2026-11-21T04:16:00+00:60",
            "2026-11-21T04:16:00.Z",
            "1795234560007",
            "",
            "T",
            " 2026-11-21T04:16:00Z",
            "2026-11-21T04:16:00Z ",
        ] {
            assert_eq!(Timestamp::parse_rfc3339(text), Err(NotATimestamp), "{text:?}");
        }
    }

    #[test]
    fn dates_mean_their_first_moment() {
        let parsed = Timestamp::parse_date_or_date_time("2027-01-01").map(|at| at.to_string());
        assert_eq!(parsed, Ok("2027-01-01T00:00:00.000Z".to_owned()));
        assert!(Timestamp::parse_date_or_date_time("tomorrow").is_err());
    }
}
