//! A plot of the last 24 hours in one line of text.

use shared::text::counted;

use super::safe_text::title;

/// The heights of a bar.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How many events of an error there were in each hour, the earliest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot {
    /// What the error is called.
    pub title: String,
    /// The events of each of the last 24 hours.
    pub hours: Vec<u64>,
    /// Whether there may be more of them than were counted.
    pub is_cut: bool,
}

impl Plot {
    /// The bars: an hour without events has the lowest, the one with most the highest, and no hour that
    /// has some looks like one that has none.
    pub(super) fn bars(&self) -> String {
        let most = self.hours.iter().copied().max().unwrap_or_default();
        let bar = |events: &u64| {
            let steps = u64::try_from(BARS.len() - 1).unwrap_or_default();
            let height = u128::from(*events) * u128::from(steps);
            let height = height.div_ceil(u128::from(most.max(1)));
            usize::try_from(height).ok().and_then(|height| BARS.get(height)).unwrap_or(&BARS[7])
        };
        self.hours.iter().map(bar).collect()
    }

    /// What it shows, in words.
    pub(super) fn caption(&self) -> String {
        let events = counted(self.total(), ("event", "events"));
        let least = if self.is_cut { "at least " } else { "" };
        format!("{least}{events} of {} in the last 24 hours, hour by hour", title(&self.title))
    }

    /// All events.
    fn total(&self) -> u64 {
        self.hours.iter().fold(0, |sum, events| sum.saturating_add(*events))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_hours_are_busy() {
        let plot =
            |hours: &[u64]| Plot { title: String::new(), hours: hours.to_vec(), is_cut: false };
        let bars = |hours: &[u64]| plot(hours).bars();
        assert_eq!(bars(&[0, 1, 50, 100]), "▁▂▅█");
        assert_eq!(bars(&[0, 0]), "▁▁");
        assert_eq!(bars(&[u64::MAX, 1]), "█▂");
        assert_eq!(bars(&[]), "");
    }

    #[test]
    fn the_caption_says_how_many_there_are_and_whether_that_is_all() {
        let plot = |is_cut| Plot { title: "x".to_owned(), hours: vec![0, 1_000, 250], is_cut };
        let caption = "1,250 events of x in the last 24 hours, hour by hour";
        assert_eq!(plot(false).caption(), caption);
        assert_eq!(plot(true).caption(), format!("at least {caption}"));
    }
}
