//! The entity tag of a resource that counts its changes: its version, and which resource it is where that
//! is not plain.

use std::fmt;

use uuid::Uuid;

/// A version, as `etag` and `if-match` name it: `"7"`, or `"7-ID"` of a resource whose name was another's
/// before. So a tag of the one never is a tag of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionTag {
    /// The version.
    pub version: u64,
    /// The id of a resource that has taken another's name.
    pub successor: Option<Uuid>,
}

impl VersionTag {
    /// The tag of a resource by its id, which tells it from another that had its name before.
    pub fn new(version: u64, id: Uuid, is_successor: bool) -> Self {
        Self { version, successor: is_successor.then_some(id) }
    }

    /// Reads what stands between the quotes of a tag.
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
