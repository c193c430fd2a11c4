//! JSON numbers with their exact values.

use std::cmp::Ordering;

/// A JSON number (RFC 8259 §6), exact for every length and exponent. A binary float would turn
/// `1e400` into infinity, and neighbors of 10^17 into each other. An exponent beyond 64 bits counts
/// as the largest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonNumber {
    negative: bool,
    /// The digits without zeros at either end; none for zero.
    digits: Vec<u8>,
    /// Position of the decimal point, counted from the left end of the digits.
    point: i64,
}

impl JsonNumber {
    /// Parses a number that is known to have JSON's form. Returns `None` for other forms.
    pub fn parse(written: &str) -> Option<Self> {
        let (mantissa, exponent) = written.split_once(['e', 'E']).unwrap_or((written, "0"));
        let exponent = parse_exponent(exponent)?;
        let negative = mantissa.starts_with('-');
        let unsigned = mantissa.strip_prefix('-').unwrap_or(mantissa);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = [whole.as_bytes(), fraction.as_bytes()].concat();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        Some(Self::new(negative, &digits, length(whole.as_bytes()).saturating_add(exponent)))
    }

    /// Returns the number times 10^`power`.
    #[must_use]
    pub fn times_power_of_ten(mut self, power: u8) -> Self {
        if !self.digits.is_empty() {
            self.point = self.point.saturating_add(i64::from(power));
        }
        self
    }

    /// Returns the largest integer that is not greater. Beyond 18 digits, returns the 64-bit
    /// integer with the same sign that is furthest from zero.
    pub fn floor(&self) -> i64 {
        self.truncated().saturating_sub(i64::from(self.negative && self.has_fraction()))
    }

    /// Returns the smallest integer that is not less. Beyond 18 digits, returns the 64-bit integer
    /// with the same sign that is furthest from zero.
    pub fn ceil(&self) -> i64 {
        self.truncated().saturating_add(i64::from(!self.negative && self.has_fraction()))
    }

    /// Returns the value of an integer with at most 18 digits: `10`, `10.0` and `1e1` are equal.
    pub fn as_integer(&self) -> Option<i64> {
        (self.point <= MAX_EXACT_DIGITS && !self.has_fraction()).then(|| self.truncated())
    }

    fn new(negative: bool, digits: &[u8], point: i64) -> Self {
        let leading = digits.iter().take_while(|digit| **digit == b'0').count();
        let significant = digits.get(leading..).unwrap_or_default();
        let trailing = significant.iter().rev().take_while(|digit| **digit == b'0').count();
        let significant = significant.get(..significant.len() - trailing).unwrap_or_default();
        if significant.is_empty() {
            return Self { negative: false, digits: Vec::new(), point: 0 };
        }
        let point = point.saturating_sub(i64::try_from(leading).unwrap_or(i64::MAX));
        Self { negative, digits: significant.to_vec(), point }
    }

    fn has_fraction(&self) -> bool {
        length(&self.digits) > self.point
    }

    fn truncated(&self) -> i64 {
        let sign = if self.negative { -1 } else { 1 };
        if self.point > MAX_EXACT_DIGITS {
            return if self.negative { i64::MIN } else { i64::MAX };
        }
        let places = usize::try_from(self.point).unwrap_or(0);
        let digits = self.digits.iter().copied().chain(std::iter::repeat(b'0'));
        sign * digits.take(places).fold(0, |value, digit| value * 10 + i64::from(digit - b'0'))
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (false, false) => {
                self.point.cmp(&other.point).then_with(|| self.digits.cmp(&other.digits))
            }
            (this_is_zero, other_is_zero) => other_is_zero.cmp(&this_is_zero),
        }
    }
}

impl From<i64> for JsonNumber {
    fn from(value: i64) -> Self {
        let digits = value.unsigned_abs().to_string();
        Self::new(value < 0, digits.as_bytes(), length(digits.as_bytes()))
    }
}

impl Ord for JsonNumber {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.compare_magnitude(other),
            (true, true) => other.compare_magnitude(self),
            (this_is_negative, other_is_negative) => other_is_negative.cmp(&this_is_negative),
        }
    }
}

impl PartialOrd for JsonNumber {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Most digits that always fit into 64 bits.
const MAX_EXACT_DIGITS: i64 = 18;

fn length(digits: &[u8]) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX)
}

fn parse_exponent(written: &str) -> Option<i64> {
    let digits = written.strip_prefix(['+', '-']).unwrap_or(written);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Only an exponent that is too long fails now.
    let magnitude = digits.parse().unwrap_or(i64::MAX);
    Some(if written.starts_with('-') { -magnitude } else { magnitude })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal(written: &str) -> JsonNumber {
        JsonNumber::parse(written).unwrap()
    }

    #[test]
    fn notation_does_not_affect_equality() {
        for same in ["1000", "1000.000", "1e3", "1E+3", "0.01e5", "1000000e-3", "10.00e2"] {
            assert_eq!(decimal(same), JsonNumber::from(1_000), "{same}");
            assert_eq!(decimal(same).as_integer(), Some(1_000), "{same}");
        }
        for zero in ["0", "-0", "0.000", "0e99999999999999999999", "-0e-5"] {
            assert_eq!(decimal(zero), JsonNumber::from(0), "{zero}");
        }
    }

    #[test]
    fn rounds_exactly() {
        let cases = [
            ("1.5", 1, 2),
            ("-1.5", -2, -1),
            ("0.000000000000000000000000001", 0, 1),
            ("-1e-999999999999", -1, 0),
            ("99999999999.9999999999", 99_999_999_999, 100_000_000_000),
            ("1e400", i64::MAX, i64::MAX),
            ("-1e99999999999999999999", i64::MIN, i64::MIN),
            ("1e-99999999999999999999", 0, 1),
            ("-12", -12, -12),
        ];
        for (written, floor, ceil) in cases {
            let decimal = decimal(written);
            assert_eq!((decimal.floor(), decimal.ceil()), (floor, ceil), "{written}");
        }
    }

    #[test]
    fn numbers_beyond_floats_are_ordered() {
        let ascending = [
            "-1e99999999999999999999",
            "-1e401",
            "-9e400",
            "-2",
            "-1.5",
            "-1e-400",
            "0",
            "1e-401",
            "1e-400",
            "0.999999999999999999999",
            "1",
            "1.000000000000000000001",
            "99999999999.9",
            "1e11",
            "1e400",
            "2e400",
            "1e401",
            "2e99999999999999999999",
        ];
        for (index, smaller) in ascending.iter().enumerate() {
            for (other, larger) in ascending.iter().enumerate() {
                assert_eq!(decimal(smaller).cmp(&decimal(larger)), index.cmp(&other));
            }
        }
    }

    #[test]
    fn other_texts_are_not_numbers() {
        for written in ["", "-", "e5", "1e", "1e+", "1x", "--1", "1.2.3", "NaN", "1e1.5", ".", "+1"]
        {
            assert_eq!(JsonNumber::parse(written), None, "{written}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_integers(value in -999_999_999_999_999_999_i64..=999_999_999_999_999_999, other: i32) {
            let exact = JsonNumber::from(value);
            prop_assert_eq!(decimal(&value.to_string()), exact.clone());
            prop_assert_eq!((exact.floor(), exact.ceil(), exact.as_integer()), (value, value, Some(value)));
            prop_assert_eq!(exact.cmp(&JsonNumber::from(i64::from(other))), value.cmp(&i64::from(other)));
        }

        #[test]
        fn parsing_never_panics(written in "-?[0-9]{0,25}(\\.[0-9]{0,25})?([eE][+-]?[0-9]{0,25})?") {
            if let Some(decimal) = JsonNumber::parse(&written) {
                prop_assert!(decimal.floor() <= decimal.ceil());
            }
        }
    }
}
