//! Formats of figures.

use crate::statistics::Sorted;

pub(super) fn ms(millis: f64) -> String {
    format!("{millis:.3} ms")
}

pub(super) fn times(ratio: f64) -> String {
    format!("{ratio:.2} ×")
}

pub(super) fn range(figures: &Sorted) -> String {
    let (median, min, p90) = (figures.median(), figures.min(), figures.percentile(90));
    format!("{}   fastest {}   90th percentile {}", ms(median), ms(min), ms(p90))
}

pub(super) fn whole(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}

/// Converts bytes to kB (1,000 bytes).
pub(super) fn kilobytes(bytes: usize) -> f64 {
    whole(bytes) / 1e3
}

pub(super) fn mb(bytes: u64) -> String {
    format!("{:.2} MB", megabytes(bytes))
}

/// Converts bytes to MB (1,000,000 bytes).
#[allow(clippy::cast_precision_loss)] // No figure here comes near 2^53.
pub(super) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
