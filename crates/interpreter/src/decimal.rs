//! Exact decimal numbers: `1.1k` is `1100`, never `1100.0000000000002`.

use std::fmt;

/// A decimal number: `mantissa` / 10^`scale`, without trailing zeros after the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    mantissa: i128,
    scale: u32,
}

/// Maximum digits of a number. No count or measure has more, and more could overflow.
const MOST_DIGITS: usize = 24;

impl Decimal {
    pub(crate) const ZERO: Self = Self { mantissa: 0, scale: 0 };

    pub(crate) fn from_integer(integer: i64) -> Self {
        Self { mantissa: i128::from(integer), scale: 0 }
    }

    /// Parses `-?digits(.digits)?`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let short = whole.len() + fraction.len() <= MOST_DIGITS;
        let ends = !whole.is_empty() && !digits.ends_with('.');
        if !short || !ends || !plain(whole) || !plain(fraction) {
            return None;
        }
        let mantissa = text.replace('.', "").parse().ok()?;
        let scale = u32::try_from(fraction.len()).ok()?;
        Some(Self { mantissa, scale }.trimmed())
    }

    /// Returns this number times `numerator` / `denominator`, or `None` if the result has no short
    /// decimal form.
    pub(crate) fn times(self, numerator: i128, denominator: i128) -> Option<Self> {
        let mut mantissa = self.mantissa.checked_mul(numerator)?;
        let mut scale = self.scale;
        while mantissa.checked_rem(denominator)? != 0 {
            if scale >= 12 {
                return None;
            }
            mantissa = mantissa.checked_mul(10)?;
            scale += 1;
        }
        Some(Self { mantissa: mantissa.checked_div(denominator)?, scale }.trimmed())
    }

    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        let raise = |number: Self| -> Option<i128> {
            number.mantissa.checked_mul(10_i128.checked_pow(scale - number.scale)?)
        };
        Some(Self { mantissa: raise(self)?.checked_add(raise(other)?)?, scale }.trimmed())
    }

    pub(crate) fn negated(self) -> Self {
        Self { mantissa: -self.mantissa, scale: self.scale }
    }

    /// `true` if this number is less than `other`. `false` if the comparison would overflow.
    pub(crate) fn is_less_than(self, other: Self) -> bool {
        other.plus(self.negated()).is_some_and(|difference| difference.mantissa > 0)
    }

    pub(crate) fn is_integer(self) -> bool {
        self.scale == 0
    }

    fn trimmed(mut self) -> Self {
        while self.scale > 0 && self.mantissa % 10 == 0 {
            self.mantissa /= 10;
            self.scale -= 1;
        }
        self
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.mantissa < 0 { "-" } else { "" };
        let digits = self.mantissa.unsigned_abs().to_string();
        if self.scale == 0 {
            return write!(f, "{sign}{digits}");
        }
        let width = self.scale as usize + 1;
        let padded = format!("{digits:0>width$}");
        let (whole, fraction) = padded.split_at(padded.len() - self.scale as usize);
        write!(f, "{sign}{whole}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiplies_exactly() {
        let number = Decimal::parse("1.1").unwrap();
        assert_eq!(number.times(1000, 1).unwrap().to_string(), "1100");
        assert_eq!(Decimal::parse("-0.05").unwrap().to_string(), "-0.05");
        assert_eq!(Decimal::parse("90").unwrap().times(1, 60).unwrap().to_string(), "1.5");
    }

    #[test]
    fn rejects_texts_that_are_not_plain_numbers() {
        for text in ["", "-", "1.", ".5", "1e3", "1.2.3", "9999999999999999999999999"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn rejects_results_without_a_short_form() {
        assert_eq!(Decimal::from_integer(1).times(1, 3), None);
    }
}
