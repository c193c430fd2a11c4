//! Plot of an error's last 24 hours, in one line of text.

use shared::text::counted;

use super::safe_text::title;

/// Bars by height, lowest first.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// An error's events per hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot {
    /// The title of the error.
    pub title: String,
    /// Events in each of the last 24 hours, earliest hour first.
    pub hours: Vec<u64>,
}

impl Plot {
    /// Returns one bar per hour. Only hours without events have the lowest bar. The hour with most
    /// events has the highest.
    pub(super) fn bars(&self) -> String {
        let max = self.hours.iter().copied().max().unwrap_or_default();
        let bar = |events: &u64| {
            let steps = u64::try_from(BARS.len() - 1).unwrap_or_default();
            let height = u128::from(*events) * u128::from(steps);
            let height = height.div_ceil(u128::from(max.max(1)));
            usize::try_from(height).ok().and_then(|height| BARS.get(height)).unwrap_or(&BARS[7])
        };
        self.hours.iter().map(bar).collect()
    }

    /// Returns the caption, with title and event count.
    pub(super) fn caption(&self) -> String {
        let events = counted(self.total(), ("event", "events"));
        format!("{} · {events} in the last 24 hours, by hour", title(&self.title))
    }

    /// Returns the number of counted events.
    fn total(&self) -> u64 {
        self.hours.iter().fold(0, |sum, events| sum.saturating_add(*events))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_heights_are_proportional_to_events() {
        let plot = |hours: &[u64]| Plot { title: String::new(), hours: hours.to_vec() };
        let bars = |hours: &[u64]| plot(hours).bars();
        assert_eq!(bars(&[0, 1, 50, 100]), "▁▂▅█");
        assert_eq!(bars(&[0, 0]), "▁▁");
        assert_eq!(bars(&[u64::MAX, 1]), "█▂");
        assert_eq!(bars(&[]), "");
    }

    #[test]
    fn captions_contain_the_event_count() {
        let plot = Plot { title: "x".to_owned(), hours: vec![0, 1_000, 250] };
        assert_eq!(plot.caption(), "x · 1,250 events in the last 24 hours, by hour");
    }
}
