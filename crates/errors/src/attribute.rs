//! Attributes of events (`docs/semantics/error-tracking.md`, "Categories").

use sha2::{Digest, Sha256};

/// An attribute of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attribute {
    /// The environment: `production`.
    Environment,
    /// The version of the application.
    Release,
    /// `fatal`, `error`, `warning`, `info` or `debug`.
    Level,
    /// `true` if the application caught the exception, else `false`.
    Handled,
    /// The browser's name, without its version.
    Browser,
    /// The operating system's name, without its version.
    Os,
    /// The device's family or model.
    Device,
    /// The user's country, ISO 3166-1 alpha-2.
    Country,
    /// The platform of the SDK: `python`, `node`, `javascript`.
    Platform,
    /// The route, page or task.
    Transaction,
    /// `true` if the User-Agent is that of a robot, else `false`.
    Bot,
    /// The path of the request's URL, without parts that differ between requests.
    Url,
    /// The exception's class.
    Type,
    /// The source: the transaction, else the place of the throw.
    Culprit,
    /// The user, as a [`user_hash`]: it shows only whether two events have the same user.
    User,
}

/// The name and the label of each attribute, in the order of [`Attribute::ALL`].
const NAMES: [(&str, &str); Attribute::ALL.len()] = [
    ("environment", "Environment"),
    ("release", "Release"),
    ("level", "Level"),
    ("handled", "Handled"),
    ("browser", "Browser"),
    ("os", "OS"),
    ("device", "Device"),
    ("country", "Country"),
    ("platform", "Platform"),
    ("transaction", "Transaction"),
    ("bot", "Bot"),
    ("url", "URL"),
    ("type", "Type"),
    ("culprit", "Culprit"),
    ("user", "User"),
];

impl Attribute {
    /// All attributes, in the order of their values in [`Attributes`].
    pub const ALL: [Self; 15] = [
        Self::Environment,
        Self::Release,
        Self::Level,
        Self::Handled,
        Self::Browser,
        Self::Os,
        Self::Device,
        Self::Country,
        Self::Platform,
        Self::Transaction,
        Self::Bot,
        Self::Url,
        Self::Type,
        Self::Culprit,
        Self::User,
    ];

    /// Returns all attributes with texts that can be shown: all except the user.
    pub fn texts() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|attribute| *attribute != Self::User)
    }

    /// Returns the name in filters and searches.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].0
    }

    /// Returns the name for users.
    pub fn label(self) -> &'static str {
        NAMES[self as usize].1
    }

    /// Returns the attribute with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|attribute| attribute.name() == name)
    }
}

/// Returns the value of [`Attribute::User`] for an identity: the first 8 bytes of its SHA-256, as 16
/// hexadecimal digits. The data for counting does not contain the identity. `None` if the identity
/// is empty.
pub fn user_hash(identity: &str) -> Option<String> {
    let first = Sha256::digest(identity).first_chunk().map(|bytes| u64::from_be_bytes(*bytes))?;
    // Zero means no user. The hash that replaces zero collides as rarely as any two hashes.
    (!identity.is_empty()).then(|| user_of_hash(first.max(1)))
}

/// Returns the user with this hash.
pub(crate) fn user_of_hash(hash: u64) -> String {
    format!("{hash:016x}")
}

/// Returns the hash of a user. A text that is not a hash is no user.
pub(crate) fn hash_of_user(user: &str) -> Option<u64> {
    u64::from_str_radix(user, 16).ok().filter(|hash| *hash > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_hashes_are_truncated_sha256() {
        // The first 16 digits that `sha256sum` prints.
        assert_eq!(user_hash("alice@example.com").as_deref(), Some("ff8d9819fc0e12bf"));
        assert_ne!(user_hash("42"), user_hash("43"));
        assert_eq!(user_hash(""), None);
    }

    #[test]
    fn attributes_are_in_the_order_of_their_values() {
        for (index, attribute) in Attribute::ALL.into_iter().enumerate() {
            assert_eq!(
                (attribute as usize, Attribute::parse(attribute.name())),
                (index, Some(attribute))
            );
            assert_eq!(attribute.label().to_lowercase(), attribute.name());
        }
    }
}
