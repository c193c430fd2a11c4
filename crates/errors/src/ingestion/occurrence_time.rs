//! The time of an event, by our clock (`docs/semantics/error-tracking.md`, "Occurrence time").

use std::borrow::Cow;

use shared::json::Json;
use shared::timestamp::Timestamp;

const MINUTE_MILLIS: i64 = 60_000;
const DAY_MILLIS: i64 = 24 * 60 * MINUTE_MILLIS;
/// Minimum difference of the clocks that is corrected. A smaller one can be the time that sending
/// took.
const LEAST_DRIFT_MILLIS: i64 = 55 * MINUTE_MILLIS;
const MOST_AHEAD_MILLIS: i64 = MINUTE_MILLIS;
const MOST_BEHIND_MILLIS: i64 = 30 * DAY_MILLIS;

/// Returns the event's own time, corrected by the drift of the sender's clock. Returns the time of
/// receipt if the event has none, or one too far ahead or behind.
pub fn occurrence_time(
    claimed: Option<Timestamp>,
    sent_at: Option<Timestamp>,
    received_at: Timestamp,
) -> Timestamp {
    let received = received_at.as_millis();
    let Some(claimed) = claimed else { return received_at };
    let drift = sent_at.map_or(0, |sent_at| received.saturating_sub(sent_at.as_millis()));
    let correction = if drift.saturating_abs() >= LEAST_DRIFT_MILLIS { drift } else { 0 };
    let corrected = claimed.as_millis().saturating_add(correction);
    let age = received.saturating_sub(corrected);
    let is_plausible = (-MOST_AHEAD_MILLIS..=MOST_BEHIND_MILLIS).contains(&age);
    if is_plausible { Timestamp::from_millis(corrected) } else { received_at }
}

/// Parses RFC 3339, or seconds since the Unix epoch as a number or as text. A space can replace the
/// `T`, and a missing zone means UTC (old Python). A time outside the range of RFC 3339 becomes the
/// nearest one inside.
pub(super) fn parse_timestamp(json: &Json<'_>) -> Option<Timestamp> {
    match json {
        Json::Number(written) => parse_seconds(written),
        Json::String(text) => parse_date_time(text.trim()).or_else(|| parse_seconds(text.trim())),
        _ => None,
    }
}

fn parse_seconds(text: &str) -> Option<Timestamp> {
    let millis = text.parse::<f64>().ok()? * 1_000.0;
    // The cast saturates.
    #[allow(clippy::cast_possible_truncation)]
    (!millis.is_nan()).then(|| Timestamp::from_millis(millis.round() as i64))
}

fn parse_date_time(text: &str) -> Option<Timestamp> {
    let separated = match text.as_bytes().get(10) {
        Some(b' ') => Cow::Owned(text.replacen(' ', "T", 1)),
        _ => Cow::Borrowed(text),
    };
    Timestamp::parse_rfc3339(&separated)
        .or_else(|_| Timestamp::parse_rfc3339(&format!("{separated}Z")))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_258_800_000;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn time(claimed: i64, sent_at: Option<i64>) -> i64 {
        occurrence_time(Some(at(claimed)), sent_at.map(at), at(NOW)).as_millis()
    }

    #[test]
    fn corrects_clock_drift_from_55_minutes_on() {
        let drift = 55 * MINUTE_MILLIS;
        for sign in [1, -1] {
            let behind = NOW - sign * drift;
            assert_eq!(time(behind - 1_000, Some(behind)), NOW - 1_000);
        }
        let nearly = NOW - (drift - 1);
        assert_eq!(time(nearly - 1_000, Some(nearly)), nearly - 1_000);
        assert_eq!(time(NOW - 9_000, None), NOW - 9_000);
    }

    #[test]
    fn implausible_times_become_the_time_of_receipt() {
        assert_eq!(time(NOW + 60_000, None), NOW + 60_000);
        assert_eq!(time(NOW + 60_001, None), NOW);
        assert_eq!(time(NOW - 30 * DAY_MILLIS, None), NOW - 30 * DAY_MILLIS);
        assert_eq!(time(NOW - 30 * DAY_MILLIS - 1, None), NOW);
        assert_eq!(time(Timestamp::MIN_MILLIS, Some(Timestamp::MAX_MILLIS)), NOW);
        assert_eq!(occurrence_time(None, None, at(NOW)), at(NOW));
    }

    #[test]
    fn reads_all_forms_of_timestamps() {
        for json in [
            Json::String("2026-11-21T11:00:00.25Z".into()),
            Json::String("2026-11-21T12:00:00.250+01:00".into()),
            Json::String("2026-11-21T11:00:00.250000".into()),
            Json::String("2026-11-21 11:00:00.25".into()),
            Json::String("1795258800.25".into()),
            Json::Number("1795258800.25"),
            Json::Number("1.79525880025e9"),
        ] {
            assert_eq!(parse_timestamp(&json), Some(at(NOW + 250)), "{json:?}");
        }
        for json in [
            Json::Null,
            Json::Bool(true),
            Json::String("yesterday".into()),
            Json::String("NaN".into()),
            Json::String("é é é é é é é".into()),
        ] {
            assert_eq!(parse_timestamp(&json), None, "{json:?}");
        }
        for (json, nearest) in [
            (Json::Number("1e15"), Timestamp::MAX_MILLIS),
            (Json::Number("1e300"), Timestamp::MAX_MILLIS),
            (Json::String("-1e999".into()), Timestamp::MIN_MILLIS),
            (Json::String("9999-12-31T23:59:59-23:59".into()), Timestamp::MAX_MILLIS),
            (Json::String("0000-01-01T00:00:00+23:59".into()), Timestamp::MIN_MILLIS),
        ] {
            assert_eq!(parse_timestamp(&json), Some(at(nearest)), "{json:?}");
        }
    }
}
