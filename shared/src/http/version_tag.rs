//! The entity tag of a resource with versions. It contains the resource's id if another resource
//! had the same name before.

use std::fmt;

use uuid::Uuid;

/// A version in the form of `etag` and `if-match`: `"7"`, or `"7-ID"` for a resource whose name
/// another resource had before. Tags of the two never match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionTag {
    /// The version.
    pub version: u64,
    /// The id of a resource that reuses another's name.
    pub successor: Option<Uuid>,
}

impl VersionTag {
    /// Returns the tag of a resource. The id distinguishes a successor from the resource that had
    /// its name before.
    pub fn new(version: u64, id: Uuid, is_successor: bool) -> Self {
        Self { version, successor: is_successor.then_some(id) }
    }

    /// Parses the text between the quotes of a tag.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (version, successor) = match text.split_once('-') {
            Some((version, id)) => (version, Some(Uuid::try_parse(id).ok()?)),
            None => (text, None),
        };
        Some(Self { version: version.parse().ok()?, successor })
    }
}

impl From<u64> for VersionTag {
    fn from(version: u64) -> Self {
        Self { version, successor: None }
    }
}

impl fmt::Display for VersionTag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}", self.version)?;
        if let Some(id) = self.successor {
            write!(formatter, "-{id}")?;
        }
        formatter.write_str("\"")
    }
}
