//! What the flags and segments of a project may come to.

use std::fmt;

use serde::Serialize;

use super::definition::Definition;
use super::evaluation::{CompiledFlag, LoadedSegment};
use super::segment::MAX_SEGMENTS;
use super::{FeatureFlag, MAX_LIVE_FLAGS, Segment};

/// The most bytes that a project's flags, archived ones included, and its segments count together. A function that
/// has just started reads all of them, by pages of 1 MB one after the other, and remembers them.
pub const MAX_PROJECT_BYTES: usize = 16_000_000;

/// A bound of what a project may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectLimit {
    /// [`MAX_LIVE_FLAGS`].
    LiveFlags,
    /// [`MAX_SEGMENTS`].
    Segments,
    /// [`MAX_PROJECT_BYTES`].
    Bytes,
}

/// What is to be said of a project that has reached it.
impl fmt::Display for ProjectLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LiveFlags => {
                write!(
                    f,
                    "has {MAX_LIVE_FLAGS} flags that are not archived, as many as it may have"
                )
            }
            Self::Segments => write!(f, "has {MAX_SEGMENTS} segments, as many as it may have"),
            Self::Bytes => write!(
                f,
                "would have flags and segments of more than {MAX_PROJECT_BYTES} bytes together, archived \
                 flags included"
            ),
        }
    }
}

impl FeatureFlag {
    /// How many bytes of [`MAX_PROJECT_BYTES`] it counts: those of its name, its description and, as JSON, what it
    /// serves to whom, or what it takes in memory, whichever is more. Neither switching nor archiving it changes
    /// that. Projects have sums of this number stored: it stays as it is.
    pub fn project_bytes(&self) -> i64 {
        let texts = self.name.len() + self.description.len();
        let stored = texts + json_bytes(&Definition::of(self)) + json_bytes(&self.prerequisites);
        signed(stored.max(CompiledFlag::bytes_of(self)))
    }
}

impl Segment {
    /// How many bytes of [`MAX_PROJECT_BYTES`] it counts: those of its name and, as JSON, its conditions, or what it
    /// takes in memory, whichever is more.
    pub fn project_bytes(&self) -> i64 {
        let stored = self.name.len() + json_bytes(&self.conditions);
        signed(stored.max(LoadedSegment::bytes_of(self)))
    }
}

fn json_bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX / 4, |json| json.len())
}

/// A number of bytes, of which others may be taken.
pub(super) fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::evaluation::test_flags::flag;

    #[test]
    fn many_short_values_count_as_what_they_take_and_a_long_text_as_what_it_is() {
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
    fn switching_and_archiving_change_nothing() {
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
