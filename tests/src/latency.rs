//! Percentiles of latencies.

use std::time::Duration;

/// Returns the given percentiles; 50 is the median. `latencies` must not be empty.
pub fn percentiles<const N: usize>(latencies: &mut [Duration], of: [usize; N]) -> [Duration; N] {
    latencies.sort_unstable();
    of.map(|percent| latencies[(latencies.len() * percent / 100).min(latencies.len() - 1)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_found_in_sorted_order() {
        let mut latencies: Vec<Duration> = (0..200).rev().map(Duration::from_millis).collect();
        let found = percentiles(&mut latencies, [0, 50, 95, 99, 100]).map(|it| it.as_millis());
        assert_eq!(found, [0, 100, 190, 198, 199]);
        assert_eq!(percentiles(&mut [Duration::ZERO], [99]), [Duration::ZERO]);
    }
}
