//! A plot of the last 24 hours in one line of text.

use crate::text::counted;
use crate::timestamp::Timestamp;

use super::safe_text::title;

/// The heights of a bar.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How many events of an error there were in each hour, the earliest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot {
    /// What the error is called.
    pub title: String,
    /// The events of each hour.
    pub hours: Vec<u64>,
    /// Whether there may be more of them than were looked at.
    pub is_cut: bool,
}

/// The hours of a plot.
const HOURS: usize = 24;

impl Plot {
    /// The events that occurred at these times, of the 24 hours before `now`. Of `most` there may be more.
    pub fn of_times(title: &str, times: &[Timestamp], most: usize, now: Timestamp) -> Self {
        let mut hours = vec![0; HOURS];
        for at in times {
            let ago = usize::try_from(at.until(now).as_secs() / 3_600).unwrap_or(usize::MAX);
            let hour = (HOURS - 1).checked_sub(ago).and_then(|hour| hours.get_mut(hour));
            if let Some(events) = hour {
                *events += 1;
            }
        }
        Self { title: title.to_owned(), hours, is_cut: times.len() >= most }
    }

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
        self.hours.iter().sum()
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
    fn an_event_counts_in_its_hour() {
        let now = Timestamp::from_millis(100 * 3_600_000);
        let times = [0, 59, 60, 24 * 60 - 1, 24 * 60]
            .map(|minutes| now.minus(std::time::Duration::from_mins(minutes)));
        let plot = Plot::of_times("x", &times, 6, now);
        assert_eq!((plot.hours.len(), plot.total()), (24, 4));
        assert_eq!([plot.hours[0], plot.hours[22], plot.hours[23]], [1, 1, 2]);
        assert_eq!(plot.caption(), "4 events of x in the last 24 hours, hour by hour");
    }

    #[test]
    fn of_a_storm_only_so_many_events_are_counted_and_the_caption_says_so() {
        let now = Timestamp::from_millis(100 * 3_600_000);
        let plot = Plot::of_times("x", &[now; 1_000], 1_000, now);
        let caption = "at least 1,000 events of x in the last 24 hours, hour by hour";
        assert_eq!(plot.caption(), caption);
    }
}
