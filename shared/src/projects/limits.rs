//! Limits of requests, events and errors. A project's own limit replaces that of the stack, which
//! replaces the template's parameter.

use std::env;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use serde::{Serialize, Serializer};

/// Largest limit of errors: the largest that the template accepts.
const MAX_ERRORS: u32 = 100_000;

crate::named_enum! {
    /// A limit.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Limit {
        /// Error events per minute of a project.
        EventsPerMinute = "eventsPerMinute",
        /// Requests per minute of an API key or a session.
        RequestsPerMinute = "requestsPerMinute",
        /// Replay segments per minute of a project.
        ReplaysPerMinute = "replaysPerMinute",
        /// Errors of a project.
        ErrorsPerProject = "errorsPerProject",
        /// New errors per hour of a project.
        NewErrorsPerHour = "newErrorsPerHour",
    }
}

impl Limit {
    /// Returns the environment variable with the template's parameter.
    fn variable(self) -> &'static str {
        match self {
            Self::EventsPerMinute => "WAYMARK_EVENTS_PER_MINUTE",
            Self::RequestsPerMinute => "WAYMARK_REQUESTS_PER_MINUTE",
            Self::ReplaysPerMinute => "WAYMARK_REPLAYS_PER_MINUTE",
            Self::ErrorsPerProject => "WAYMARK_ERRORS_PER_PROJECT",
            Self::NewErrorsPerHour => "WAYMARK_NEW_ERRORS_PER_HOUR",
        }
    }

    /// Returns the allowed values. 0 means no limit.
    pub fn range(self) -> RangeInclusive<u32> {
        match self {
            Self::EventsPerMinute | Self::RequestsPerMinute | Self::ReplaysPerMinute => {
                0..=u32::MAX
            }
            Self::ErrorsPerProject | Self::NewErrorsPerHour => 1..=MAX_ERRORS,
        }
    }
}

/// Limits of a project, of the stack or of the template. Each can be unset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits([Option<u32>; Limit::ALL.len()]);

impl Limits {
    /// Reads the template's limits from the environment. Texts that are not numbers count as unset.
    pub fn from_environment() -> Self {
        Self::read(|name| env::var(name).ok())
    }

    fn read(variable: impl Fn(&'static str) -> Option<String>) -> Self {
        Self(Limit::ALL.map(|limit| variable(limit.variable())?.parse().ok()))
    }

    /// Returns a limit; 0 means no limit.
    pub fn get(&self, limit: Limit) -> Option<u32> {
        self.0[limit as usize]
    }

    /// Sets or unsets a limit.
    #[must_use]
    pub fn with(mut self, limit: Limit, value: Option<u32>) -> Self {
        self.0[limit as usize] = value;
        self
    }

    /// Returns these limits, and those of `defaults` if they are unset.
    #[must_use]
    pub fn or(&self, defaults: &Self) -> Self {
        Self(Limit::ALL.map(|limit| self.get(limit).or(defaults.get(limit))))
    }

    /// Returns the most that a limit allows. `None` if it is unset or 0.
    pub fn most(&self, limit: Limit) -> Option<NonZeroU32> {
        self.get(limit).and_then(NonZeroU32::new)
    }
}

/// Writes each limit under its name, `null` if it is unset.
impl Serialize for Limits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Limit::ALL.map(|limit| (limit.as_str(), self.get(limit))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_and_zero_is_no_limit() {
        for (text, value, most) in [
            (None, None, None),
            (Some(""), None, None),
            (Some("x"), None, None),
            (Some("0"), Some(0), None),
            (Some("7"), Some(7), Some(7)),
        ] {
            let limits = Limits::read(|name| {
                let others = [
                    ("WAYMARK_REQUESTS_PER_MINUTE", "6"),
                    ("WAYMARK_ERRORS_PER_PROJECT", "5"),
                    ("WAYMARK_NEW_ERRORS_PER_HOUR", "4"),
                    ("WAYMARK_REPLAYS_PER_MINUTE", "3"),
                ];
                let other = others.into_iter().find(|(variable, _)| *variable == name);
                other.map_or_else(|| text.map(str::to_owned), |(_, text)| Some(text.to_owned()))
            });
            assert_eq!(limits.get(Limit::EventsPerMinute), value);
            assert_eq!(limits.most(Limit::EventsPerMinute).map(NonZeroU32::get), most);
            let others = Limit::ALL[1..].iter().map(|limit| limits.get(*limit));
            assert!(others.eq([6, 3, 5, 4].map(Some)));
        }
    }

    #[test]
    fn set_limits_replace_defaults() {
        let stack = Limits::default()
            .with(Limit::EventsPerMinute, Some(5))
            .with(Limit::ReplaysPerMinute, Some(6));
        let own = Limits::default().with(Limit::EventsPerMinute, Some(0));
        let both = own.or(&stack);
        assert_eq!(both.get(Limit::EventsPerMinute), Some(0));
        assert_eq!(both.get(Limit::ReplaysPerMinute), Some(6));
        assert_eq!(both.get(Limit::RequestsPerMinute), None);
    }
}
