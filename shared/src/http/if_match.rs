//! The `if-match` header (RFC 9110 §13.1.1), which limits a change to a version that the caller has
//! seen.

use super::{Problem, VersionTag};

/// The resource versions to which a request applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// Any version: the header is missing or `*`.
    Any,
    /// One of these versions. Entity tags that this API never sends match nothing.
    Versions(Vec<VersionTag>),
}

impl IfMatch {
    /// Parses the header's values.
    pub(super) fn read<'v>(values: impl Iterator<Item = &'v [u8]>) -> Self {
        let mut versions = None::<Vec<VersionTag>>;
        for tag in values.flat_map(|value| value.split(|byte| *byte == b',')) {
            let tag = tag.trim_ascii();
            if tag == b"*" {
                return Self::Any;
            }
            let version = tag.strip_prefix(b"\"").and_then(|tag| tag.strip_suffix(b"\""));
            let version = version.and_then(|tag| VersionTag::parse(std::str::from_utf8(tag).ok()?));
            versions.get_or_insert_default().extend(version);
        }
        versions.map_or(Self::Any, Self::Versions)
    }

    /// Rejects a resource with another version.
    pub fn check(&self, tag: impl Into<VersionTag>) -> Result<(), Problem> {
        let tag = tag.into();
        match self {
            Self::Versions(tags) if !tags.contains(&tag) => {
                Err(Problem::version_mismatch(tag.version))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::ProblemCode;

    fn allowed(values: &[&str], version: impl Into<VersionTag>) -> bool {
        let if_match = IfMatch::read(values.iter().map(|value| value.as_bytes()));
        match if_match.check(version) {
            Ok(()) => true,
            Err(problem) => {
                assert_eq!(problem.code(), ProblemCode::VersionMismatch);
                false
            }
        }
    }

    #[test]
    fn missing_headers_match_any_version() {
        assert!(allowed(&[], 7));
        assert!(allowed(&["*"], 7));
    }

    #[test]
    fn successors_are_distinguished_by_id() {
        let id = uuid::Uuid::from_u128(7);
        let tag = VersionTag { version: 1, successor: Some(id) };
        assert!(allowed(&[&tag.to_string()], tag));
        assert!(allowed(&["\"1\"", &format!("\"1-{id}\"")], tag));
        for other in
            ["\"1\"", "\"1-\"", &format!("\"2-{id}\""), &format!("\"1-{}\"", uuid::Uuid::max())]
        {
            assert!(!allowed(&[other], tag), "{other}");
        }
        assert!(!allowed(&[&tag.to_string()], 1));
    }

    #[test]
    fn one_tag_must_match_the_version() {
        assert!(allowed(&["\"7\""], 7));
        assert!(allowed(&["\"6\", \"7\""], 7));
        assert!(allowed(&["\"6\"", "\"7\""], 7));
        for other in ["\"6\"", "7", "W/\"7\"", "\"\"", "", "\"7", "\"é\""] {
            assert!(!allowed(&[other], 7), "{other}");
        }
    }
}
