//! The keys by which frames find their map.

use std::fmt;

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Characters of a UUID in lower case with hyphens.
const UUID_CHARS: usize = 36;

/// The debug ID that a build tool writes into a script and its map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DebugId(Uuid);

impl DebugId {
    /// Parses a UUID, in either letter case, with or without hyphens. Ignores an age that follows.
    pub fn parse(text: &str) -> Option<Self> {
        let id = Uuid::try_parse(text).or_else(|error| match text.get(..UUID_CHARS) {
            Some(id) => Uuid::try_parse(id),
            None => Err(error),
        });
        id.ok().filter(|id| !id.is_nil()).map(Self)
    }
}

impl fmt::Display for DebugId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(formatter)
    }
}

/// The key of a map within a project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MapKey {
    /// The debug ID of the map's script.
    DebugId(DebugId),
    /// Release, distribution and URL path of a script without a debug ID.
    Url {
        /// The release.
        release: String,
        /// The distribution, or `""`.
        dist: String,
        /// The path of the script's URL.
        path: String,
    },
}

/// Writes the form that keys of items contain. A hash bounds the length of a release and URL.
impl fmt::Display for MapKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DebugId(id) => id.fmt(formatter),
            Self::Url { release, dist, path } => {
                let mut hash = Sha256::new();
                for part in [release, dist, path] {
                    hash.update((part.len() as u64).to_be_bytes());
                    hash.update(part);
                }
                let hash = hash.finalize();
                write!(formatter, "url-")?;
                hash.iter().take(16).try_for_each(|byte| write!(formatter, "{byte:02x}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_ids_have_one_form() {
        let id = "d0c3f1b2-7a44-4f0e-9a3b-0c5d6e7f8a9b";
        for text in [id, &id.to_uppercase(), &id.replace('-', ""), &format!("{id}-1")] {
            assert_eq!(DebugId::parse(text).unwrap().to_string(), id);
        }
        for text in
            ["", "x", "d0c3f1b2", "00000000-0000-0000-0000-000000000000", "é".repeat(40).as_str()]
        {
            assert_eq!(DebugId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn url_keys_differ_in_each_part() {
        let key = |release: &str, dist: &str, path: &str| {
            let [release, dist, path] = [release, dist, path].map(str::to_owned);
            MapKey::Url { release, dist, path }.to_string()
        };
        let keys =
            [key("a", "b", "/c"), key("ab", "", "/c"), key("a", "", "b/c"), key("a", "b", "/d")];
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }
}
