//! A project's own limits of replays and errors, which operators set.

use std::num::NonZeroU32;

/// Largest limit of errors: the largest that the template accepts.
const MAX_ERRORS: u32 = 100_000;

/// The name of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IngestLimit {
    /// Replay segments per minute; 0 means no limit.
    ReplaysPerMinute,
    /// Errors of the project.
    ErrorsPerProject,
    /// New errors per hour.
    NewErrorsPerHour,
}

impl IngestLimit {
    /// All limits.
    pub const ALL: [Self; 3] =
        [Self::ReplaysPerMinute, Self::ErrorsPerProject, Self::NewErrorsPerHour];

    /// Returns the name in the table and for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReplaysPerMinute => "replaysPerMinute",
            Self::ErrorsPerProject => "errorsPerProject",
            Self::NewErrorsPerHour => "newErrorsPerHour",
        }
    }

    /// Returns the allowed values.
    pub fn range(self) -> std::ops::RangeInclusive<u32> {
        match self {
            Self::ReplaysPerMinute => 0..=u32::MAX,
            Self::ErrorsPerProject | Self::NewErrorsPerHour => 1..=MAX_ERRORS,
        }
    }
}

/// A project's own limits. `None` is the stack's limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IngestLimits {
    /// Replay segments per minute; 0 means no limit.
    pub replays_per_minute: Option<u32>,
    /// Errors of the project.
    pub errors_per_project: Option<NonZeroU32>,
    /// New errors per hour.
    pub new_errors_per_hour: Option<NonZeroU32>,
}

impl IngestLimits {
    /// Returns the value of a limit.
    pub fn get(self, limit: IngestLimit) -> Option<u32> {
        match limit {
            IngestLimit::ReplaysPerMinute => self.replays_per_minute,
            IngestLimit::ErrorsPerProject => self.errors_per_project.map(NonZeroU32::get),
            IngestLimit::NewErrorsPerHour => self.new_errors_per_hour.map(NonZeroU32::get),
        }
    }
}
