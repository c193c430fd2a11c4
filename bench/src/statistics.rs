//! Percentiles and units.

use std::time::Duration;

/// Figures in ascending order.
pub(crate) struct Sorted(Vec<f64>);

impl Sorted {
    pub(crate) fn new(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        Self(figures)
    }

    /// Returns durations as sorted milliseconds.
    pub(crate) fn millis(durations: impl IntoIterator<Item = Duration>) -> Self {
        Self::new(durations.into_iter().map(millis))
    }

    /// Returns a percentile by nearest rank; NaN without figures.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last * percent + 50) / 100).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn median(&self) -> f64 {
        self.percentile(50)
    }
}

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// Converts bytes to MB (1,000,000 bytes).
pub(crate) fn megabytes(bytes: u64) -> f64 {
    float(bytes) / 1e6
}

/// Converts a number to the type of all figures.
#[allow(clippy::cast_precision_loss)] // No figure here comes near 2^53.
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

/// Converts a count to the type of all figures.
#[allow(clippy::cast_precision_loss)] // No figure here comes near 2^53.
pub(crate) fn count(number: usize) -> f64 {
    number as f64
}
