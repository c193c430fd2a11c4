//! Numbers and points in time, compared with other implementations.

use std::cmp::Ordering;

use shared::json_number::JsonNumber;
use shared::timestamp::Timestamp;

/// Compares the numbers and points in time of each line.
pub(crate) fn numbers(bytes: &[u8]) {
    let Ok(written) = std::str::from_utf8(bytes) else { return };
    let lines: Vec<&str> = written.lines().take(16).collect();
    let is_number = |line: &&&str| {
        serde_json::from_str::<&serde_json::value::RawValue>(line).is_ok()
            && line.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
    };
    let numbers: Vec<(&str, JsonNumber)> = lines
        .iter()
        .filter(is_number)
        .map(|line| (line.trim(), JsonNumber::parse(line.trim()).expect("the line is a number")))
        .collect();
    for (text, number) in &numbers {
        check_number(text, number);
        for (other_text, other) in &numbers {
            let order = number.cmp(other);
            assert_eq!(order, other.cmp(number).reverse(), "{text} and {other_text}");
            assert_eq!(order == Ordering::Equal, number == other);
            // Floats lose digits, so different numbers can become equal.
            if let (Ok(one), Ok(two)) = (text.parse::<f64>(), other_text.parse::<f64>())
                && let Some(of_floats) = one.partial_cmp(&two)
                && of_floats != Ordering::Equal
            {
                assert_eq!(order, of_floats, "{text} and {other_text}");
            }
        }
    }
    for line in lines {
        check_time(line);
    }
}

fn check_number(text: &str, number: &JsonNumber) {
    let (floor, ceil) = (number.floor(), number.ceil());
    assert!(floor <= ceil && ceil.saturating_sub(floor) <= 1, "{text}");
    if let Some(integer) = number.as_integer() {
        assert_eq!((floor, ceil), (integer, integer), "{text}");
        assert_eq!(JsonNumber::from(integer).cmp(number), Ordering::Equal, "{text}");
    }
    if let Ok(integer) = text.parse::<i64>()
        && integer.unsigned_abs() < 1_000_000_000_000_000_000
    {
        assert_eq!(number.as_integer(), Some(integer), "{text}");
    }
}

fn check_time(text: &str) {
    let Ok(time) = Timestamp::parse_rfc3339(text) else { return };
    let shown = time.to_string();
    assert_eq!(Timestamp::parse_rfc3339(&shown), Ok(time), "{text}");
    assert_eq!(Timestamp::from_millis(time.as_millis()), time, "{text}");
    let clamped = [Timestamp::MIN_MILLIS, Timestamp::MAX_MILLIS].contains(&time.as_millis());
    if !clamped {
        assert_eq!(millis_of(text), Some(time.as_millis()), "{text}");
    }
}

/// Computes the milliseconds of a valid RFC 3339 date-time with the days of the Gregorian calendar.
fn millis_of(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let rest = text.get(19..)?;
    let digits: String =
        rest.strip_prefix('.').unwrap_or("").chars().take_while(char::is_ascii_digit).collect();
    let millis = format!("{digits:0<3}").get(..3)?.parse::<i64>().ok()?;
    let zone = rest.get(if digits.is_empty() { 0 } else { digits.len() + 1 }..)?;
    let offset = if zone.eq_ignore_ascii_case("z") {
        0
    } else {
        let sign = if zone.starts_with('-') { -1 } else { 1 };
        sign * (zone.get(1..3)?.parse::<i64>().ok()? * 60 + zone.get(4..6)?.parse::<i64>().ok()?)
    };
    let is_leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let mut days = 0;
    for past in 0..year {
        days += if is_leap(past) { 366 } else { 365 };
    }
    let lengths = [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    days += lengths.iter().take(usize::try_from(month - 1).ok()?).sum::<i64>() + day - 1;
    // Days from year 0 to 1970.
    days -= 719_528;
    Some((((days * 24 + hour) * 60 + minute - offset) * 60 + second) * 1_000 + millis)
}
