//! Schedules of jobs.

use crate::names::capitalized;

/// Numbers that event names spell out, starting with one.
const WORDS: [&str; 10] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

/// The rate of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// The expression in the template: `rate(5 minutes)`.
    pub(crate) expression: String,
    count: u32,
    unit: Unit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Minute,
    Hour,
}

impl Schedule {
    /// Parses a rate such as `rate(1 minute)`.
    pub(crate) fn parse(expression: &str) -> Result<Self, String> {
        let parts = expression.strip_prefix("rate(").and_then(|it| it.strip_suffix(')'));
        let parts = parts.and_then(|it| it.split_once(' '));
        let parsed = parts.and_then(|(count, unit)| Some((count.parse::<u32>().ok()?, unit)));
        let (count, unit) = match parsed {
            Some((1, "minute")) => (1, Unit::Minute),
            Some((1, "hour")) => (1, Unit::Hour),
            Some((count @ 2.., "minutes")) => (count, Unit::Minute),
            Some((count @ 2.., "hours")) => (count, Unit::Hour),
            _ => {
                return Err(format!(
                    "schedule `{expression}` is not like rate(1 minute), rate(5 minutes) or \
                     rate(2 hours)"
                ));
            }
        };
        Ok(Self { expression: expression.to_owned(), count, unit })
    }

    /// Returns the interval in seconds.
    pub(crate) fn seconds(&self) -> u32 {
        self.count.saturating_mul(match self.unit {
            Unit::Minute => 60,
            Unit::Hour => 3600,
        })
    }

    /// Returns the event's name: `EveryMinute`, `EveryFiveMinutes`.
    pub(crate) fn name(&self) -> String {
        let unit = match self.unit {
            Unit::Minute => "Minute",
            Unit::Hour => "Hour",
        };
        if self.count == 1 {
            return format!("Every{unit}");
        }
        let word = usize::try_from(self.count - 1).ok().and_then(|index| WORDS.get(index));
        let count = word.map_or_else(|| self.count.to_string(), |word| capitalized(word));
        format!("Every{count}{unit}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_names_and_intervals() {
        let read = |rate: &str| {
            let schedule = Schedule::parse(rate).unwrap();
            (schedule.name(), schedule.seconds())
        };
        assert_eq!(read("rate(1 minute)"), ("EveryMinute".to_owned(), 60));
        assert_eq!(read("rate(5 minutes)"), ("EveryFiveMinutes".to_owned(), 300));
        assert_eq!(read("rate(10 minutes)"), ("EveryTenMinutes".to_owned(), 600));
        assert_eq!(read("rate(15 minutes)"), ("Every15Minutes".to_owned(), 900));
        assert_eq!(read("rate(2 hours)"), ("EveryTwoHours".to_owned(), 7200));
    }

    #[test]
    fn other_schedules_are_rejected() {
        for wrong in ["cron(0 0 * * ? *)", "rate(0 minutes)", "rate(5 minute)", "rate(1 day)", ""] {
            let error = Schedule::parse(wrong).unwrap_err();
            assert!(error.contains("is not like rate(1 minute)"), "{error}");
        }
    }
}
