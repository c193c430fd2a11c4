//! The keys by which frames find their map.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Characters of a UUID in lower case with hyphens.
const UUID_CHARS: usize = 36;
/// Start of the keys of scripts without a debug ID.
const URL: &str = "url-";

/// The key of a map within a project: a debug ID, or a hash of release, distribution and URL path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MapKey(String);

impl MapKey {
    /// Parses the debug ID that a build tool writes into a script and its map: a UUID, in either
    /// letter case, with or without hyphens. Ignores an age that follows.
    pub fn of_debug_id(text: &str) -> Option<Self> {
        let without_age = || Uuid::try_parse(text.get(..UUID_CHARS)?).ok();
        let id = Uuid::try_parse(text).ok().or_else(without_age)?;
        (!id.is_nil()).then(|| Self(id.hyphenated().to_string()))
    }

    /// Returns the key of a script without a debug ID. `dist` can be empty, and `path` is that of
    /// the script's URL. A hash bounds their length.
    pub fn of_url(release: &str, dist: &str, path: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [release, dist, path] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let start = hash.finalize().first_chunk().copied().unwrap_or_default();
        Self(format!("{URL}{:032x}", u128::from_be_bytes(start)))
    }

    /// Returns the debug ID, if the key is one.
    pub fn debug_id(&self) -> Option<&str> {
        (!self.0.starts_with(URL)).then_some(&self.0)
    }
}

impl From<&str> for MapKey {
    /// Returns the key with a stored form.
    fn from(stored: &str) -> Self {
        Self(stored.to_owned())
    }
}

impl fmt::Display for MapKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_ids_have_one_form() {
        let id = "d0c3f1b2-7a44-4f0e-9a3b-0c5d6e7f8a9b";
        for text in [id, &id.to_uppercase(), &id.replace('-', ""), &format!("{id}-1")] {
            assert_eq!(MapKey::of_debug_id(text).unwrap().debug_id(), Some(id));
        }
        for text in
            ["", "x", "d0c3f1b2", "00000000-0000-0000-0000-000000000000", "é".repeat(40).as_str()]
        {
            assert_eq!(MapKey::of_debug_id(text), None, "{text}");
        }
    }

    #[test]
    fn url_keys_differ_in_each_part() {
        let key = MapKey::of_url;
        let keys =
            [key("a", "b", "/c"), key("ab", "", "/c"), key("a", "", "b/c"), key("a", "b", "/d")];
        assert!(keys.iter().all(|key| key.debug_id().is_none()));
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }
}
