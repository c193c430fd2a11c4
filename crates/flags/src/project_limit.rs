//! Limits for a project's flags and segments.

use std::fmt;

use serde::Serialize;

use super::definition::Definition;
use super::evaluation::{CompiledFlag, LoadedSegment};
use super::segment::MAX_SEGMENTS;
use super::{FeatureFlag, MAX_LIVE_FLAGS, Segment};

/// Maximum size of a project's flags (archived ones included) and segments together, in bytes. A
/// function that has just started reads and caches all of them, in sequential pages of 1 MB.
pub const MAX_PROJECT_BYTES: usize = 16_000_000;

/// A limit for a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectLimit {
    /// [`MAX_LIVE_FLAGS`]
    LiveFlags,
    /// [`MAX_SEGMENTS`]
    Segments,
    /// [`MAX_PROJECT_BYTES`]
    Bytes,
}

/// Completes the sentence "The project …" for a project at this limit.
impl fmt::Display for ProjectLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LiveFlags => {
                write!(f, "has {MAX_LIVE_FLAGS} flags that are not archived, which is the limit")
            }
            Self::Segments => write!(f, "has {MAX_SEGMENTS} segments, which is the limit"),
            Self::Bytes => write!(
                f,
                "would exceed the limit of {MAX_PROJECT_BYTES} bytes for all flags and segments, \
                 archived flags included"
            ),
        }
    }
}

impl FeatureFlag {
    /// Returns the flag's share of [`MAX_PROJECT_BYTES`]: its stored size or its size in memory,
    /// whichever is larger. The stored size counts name, description, prerequisites and the JSON of
    /// its definition. Turning the flag on or off, or archiving it, does not change the result.
    /// Sums of it are stored per project, so the formula must not change.
    pub fn project_bytes(&self) -> i64 {
        let texts = self.name.len() + self.description.len();
        let stored = texts + json_bytes(&Definition::of(self)) + json_bytes(&self.prerequisites);
        signed(stored.max(CompiledFlag::bytes_of(self)))
    }
}

impl Segment {
    /// Returns the segment's share of [`MAX_PROJECT_BYTES`]: the size of its name and the JSON of
    /// its conditions, or its size in memory, whichever is larger.
    pub fn project_bytes(&self) -> i64 {
        let stored = self.name.len() + json_bytes(&self.conditions);
        signed(stored.max(LoadedSegment::bytes_of(self)))
    }
}

fn json_bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX / 4, |json| json.len())
}

/// Returns a number of bytes as a signed integer, from which sizes can be subtracted.
pub(super) fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::evaluation::test_flags::flag;

    #[test]
    fn larger_of_stored_and_memory_size_counts() {
        let of = |values: Vec<String>| {
            let conditions = json!([{"attribute": "a", "operator": "in", "values": values}]);
            let rules = json!([{"conditions": conditions, "serve": {"variant": "on"}}]);
            flag("f", &json!({ "rules": rules })).project_bytes()
        };
        let texts = |count: u32| (0..count).map(|it| format!("x{it:03}")).collect();
        assert_eq!(of(texts(101)) - of(texts(1)), 100 * (48 + 4));
        let numbers = |count: u32| (0..count).map(|it| (1_000 + it).to_string()).collect();
        assert_eq!(of(numbers(101)) - of(numbers(1)), 100 * (48 + 4 + 80 + 4));
        let long = |length: usize| of(vec!["x".repeat(length)]);
        assert_eq!(long(1_000) - long(1), 999);
    }

    #[test]
    fn enabling_and_archiving_keep_the_size() {
        let flag = flag("f", &json!({}));
        let other = FeatureFlag {
            enabled: !flag.enabled,
            archived_at: Some(flag.created_at),
            version: flag.version + 1_000_000,
            ..flag.clone()
        };
        assert_eq!(flag.project_bytes(), other.project_bytes());
    }
}
