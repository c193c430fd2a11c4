//! Tags of applications that are categories (`docs/semantics/error-tracking.md`, "Tags").

use std::fmt;

use sha2::{Digest, Sha256};

use crate::attribute::Attribute;

/// Maximum tag keys of a project that are categories.
pub const MAX_TAG_KEYS: usize = 20;
/// Maximum bytes of a key.
const MAX_KEY_BYTES: usize = 32;
/// Maximum bytes of a value.
pub const MAX_TAG_VALUE_BYTES: usize = 64;
/// Number of events, one of which names its keys that are not categories.
pub const OTHER_TAGS_SAMPLE: u32 = 16;
/// Maximum keys of an event that are not categories and ranked.
const MAX_OTHER_TAGS: usize = 4;
/// The value of events whose value has no capacity.
pub const OTHER_VALUE: &str = "<other>";

/// The name of the category of error IDs in filters. Events do not store them.
pub const ERROR_ID: &str = "errorId";

/// The key of a tag: up to 32 letters, digits, `_`, `-` and `.`. The names of other categories are
/// not keys, in upper or lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TagKey {
    bytes: [u8; MAX_KEY_BYTES],
    length: u8,
}

impl TagKey {
    /// Parses a key.
    pub fn parse(text: &str) -> Option<Self> {
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if text.is_empty() || !text.bytes().all(is_valid) {
            return None;
        }
        // The tag `Browser` would have the label of the category `browser`.
        let mut reserved = Attribute::ALL.into_iter().map(Attribute::as_str).chain([ERROR_ID]);
        if reserved.any(|name| name.eq_ignore_ascii_case(text)) {
            return None;
        }
        let mut bytes = [0; MAX_KEY_BYTES];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Self { bytes, length: u8::try_from(text.len()).ok()? })
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.length)).unwrap_or_default();
        str::from_utf8(bytes).unwrap_or_default()
    }
}

impl fmt::Display for TagKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Debug for TagKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

/// Returns the keys of an event's tags that are not categories, if the random `draw` samples the event. The
/// draw also selects among many keys.
pub fn sampled_keys(keys: impl Iterator<Item = TagKey>, draw: u32) -> Vec<TagKey> {
    if !draw.is_multiple_of(OTHER_TAGS_SAMPLE) {
        return Vec::new();
    }
    let mut keys: Vec<TagKey> = keys.collect();
    let first = usize::try_from(draw / OTHER_TAGS_SAMPLE).unwrap_or_default();
    let first = first.checked_rem(keys.len()).unwrap_or_default();
    keys.rotate_left(first);
    keys.truncate(MAX_OTHER_TAGS);
    keys
}

/// The stored form of a tag in a row: the first byte of the key's SHA-256, and six of that of key and
/// value. The project's dictionary has the texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TagHash(pub(crate) [u8; TagHash::BYTES]);

impl TagHash {
    /// The bytes of a tag in a row.
    pub const BYTES: usize = 7;

    /// Returns the hash of a tag.
    pub fn of(key: TagKey, value: &str) -> Self {
        let whole = Sha256::digest(format!("{key}\0{value}"));
        let mut bytes = [Self::of_key(key); Self::BYTES];
        for (byte, of_whole) in bytes.iter_mut().skip(1).zip(whole) {
            *byte = of_whole;
        }
        Self(bytes)
    }

    /// `false` if no tag with this key has the hash.
    pub fn may_be_of(self, key: TagKey) -> bool {
        self.0.first() == Some(&Self::of_key(key))
    }

    fn of_key(key: TagKey) -> u8 {
        Sha256::digest(key.as_str()).first().copied().unwrap_or_default()
    }
}

impl fmt::Display for TagHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_short_names() {
        let longest = "k".repeat(32);
        for text in ["tenant", "feature.flag_a-1", "X", longest.as_str()] {
            assert_eq!(TagKey::parse(text).map(|key| key.to_string()).as_deref(), Some(text));
        }
        for text in ["", "a b", "a:b", "ä", "user", "release", "Browser", "OS", &"k".repeat(33)] {
            assert_eq!(TagKey::parse(text), None, "{text}");
        }
    }

    #[test]
    fn hashes_depend_on_key_and_value() {
        let [tenant, plan] = ["tenant", "plan"].map(|key| TagKey::parse(key).unwrap());
        let hash = TagHash::of(tenant, "acme");
        // The bytes that `sha256sum` prints for `tenant`, and for `tenant`, a null byte and `acme`.
        assert_eq!(hash.to_string(), "e9d2e79529ba2c");
        assert!(hash.may_be_of(tenant) && !hash.may_be_of(plan));
        assert_ne!(hash, TagHash::of(tenant, "umbrella"));
    }
}
