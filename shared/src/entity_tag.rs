//! Entity tags of responses that are sent again only if they changed (RFC 9110 §8.8.3).

use sha2::{Digest, Sha256};

/// The strong entity tag of a response body, with its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityTag(String);

impl EntityTag {
    /// Returns the tag of a body.
    pub fn of(body: &str) -> Self {
        let digest = Sha256::digest(body.as_bytes());
        // Half of the hash distinguishes responses as well as the whole, and each poll sends it.
        let half = digest.iter().take(16).fold(0_u128, |half, byte| half << 8 | u128::from(*byte));
        Self(format!("\"{half:032x}\""))
    }

    /// Returns the tag in the form of its header.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns `true` if the values of an `if-none-match` header contain the tag or `*`. Tags are
    /// compared weakly (RFC 9110 §13.1.2).
    pub fn is_named_by<'v>(&self, if_none_match: impl IntoIterator<Item = &'v [u8]>) -> bool {
        let names = |tag: &[u8]| {
            let tag = tag.trim_ascii();
            tag == b"*" || tag.strip_prefix(b"W/").unwrap_or(tag) == self.0.as_bytes()
        };
        // A comma inside a foreign tag splits it into parts with one quote each, which match
        // nothing.
        if_none_match.into_iter().flat_map(|value| value.split(|byte| *byte == b',')).any(names)
    }
}
