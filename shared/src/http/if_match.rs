//! The `if-match` header (RFC 9110 §13.1.1): a change is meant for a version that the caller has seen.

use super::Problem;

/// The versions of a resource that a request is meant for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// Any: there is no such header, or it is `*`.
    Any,
    /// One of these. Entity tags that no answer of ours carried match nothing.
    Versions(Vec<u64>),
}

impl IfMatch {
    /// Reads the header's values.
    pub(super) fn read<'v>(values: impl Iterator<Item = &'v [u8]>) -> Self {
        let mut versions = None::<Vec<u64>>;
        for tag in values.flat_map(|value| value.split(|byte| *byte == b',')) {
            let tag = tag.trim_ascii();
            if tag == b"*" {
                return Self::Any;
            }
            let version = tag.strip_prefix(b"\"").and_then(|tag| tag.strip_suffix(b"\""));
            let version =
                version.and_then(|tag| std::str::from_utf8(tag).ok()?.parse::<u64>().ok());
            versions.get_or_insert_default().extend(version);
        }
        versions.map_or(Self::Any, Self::Versions)
    }

    /// Refuses a resource of another version.
    pub fn check(&self, version: u64) -> Result<(), Problem> {
        match self {
            Self::Versions(versions) if !versions.contains(&version) => {
                Err(Problem::version_mismatch(version))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::ProblemCode;

    fn allowed(values: &[&str], version: u64) -> bool {
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
    fn without_the_header_any_version_is_meant() {
        assert!(allowed(&[], 7));
        assert!(allowed(&["*"], 7));
    }

    #[test]
    fn otherwise_one_of_the_tags_must_be_the_version() {
        assert!(allowed(&["\"7\""], 7));
        assert!(allowed(&["\"6\", \"7\""], 7));
        assert!(allowed(&["\"6\"", "\"7\""], 7));
        for other in ["\"6\"", "7", "W/\"7\"", "\"\"", "", "\"7", "\"é\""] {
            assert!(!allowed(&[other], 7), "{other}");
        }
    }
}
