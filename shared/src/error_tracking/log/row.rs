//! What is counted of an event.

use std::fmt;

use crate::error_tracking::attribute::Attributes;
use crate::timestamp::Timestamp;

/// The identity of an error: a 128-bit hash of what its events have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprint {
    /// Reads what [`fmt::Display`] writes: 32 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let fingerprint = Self(u128::from_str_radix(text, 16).ok()?.to_be_bytes());
        (fingerprint.to_string() == text).then_some(fingerprint)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// One event, as far as it is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    /// When it happened.
    pub occurred_at: Timestamp,
    /// Which error it belongs to.
    pub fingerprint: Fingerprint,
    /// What it can be filtered by.
    pub attributes: Attributes,
}
