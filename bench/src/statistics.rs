//! Medians and other percentiles.

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

    pub(crate) fn min(&self) -> f64 {
        self.percentile(0)
    }
}

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// Formats a number with thousands separators.
pub(crate) fn grouped(number: usize) -> String {
    if number < 1_000 {
        return number.to_string();
    }
    format!("{},{:03}", grouped(number / 1_000), number % 1_000)
}
