//! Attributes of events (`docs/semantics/error-tracking.md`, "Categories").

use sha2::{Digest, Sha256};

shared::named_enum! {
    /// An attribute of an event. The values in [`Attributes`](crate::category::Attributes) have this
    /// order.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Attribute {
        /// The environment: `production`.
        Environment = "environment",
        /// The version of the application.
        Release = "release",
        /// `fatal`, `error`, `warning`, `info` or `debug`.
        Level = "level",
        /// `true` if the application caught the exception, else `false`.
        Handled = "handled",
        /// The browser's name, without its version.
        Browser = "browser",
        /// The operating system's name, without its version.
        Os = "os",
        /// The device's family or model.
        Device = "device",
        /// The user's country, ISO 3166-1 alpha-2.
        Country = "country",
        /// The platform of the SDK: `python`, `node`, `javascript`.
        Platform = "platform",
        /// The route, page or task.
        Transaction = "transaction",
        /// `true` if the User-Agent is that of a robot, else `false`.
        Bot = "bot",
        /// The path of the request's URL, without parts that differ between requests.
        Url = "url",
        /// The exception's class.
        Type = "type",
        /// The source: the transaction, else the place of the throw.
        Culprit = "culprit",
        /// The user, as a [`user_hash`]: it shows only whether two events have the same user.
        User = "user",
    }
}

impl Attribute {
    /// Returns all attributes with texts that can be shown: all except the user.
    pub fn texts() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|attribute| *attribute != Self::User)
    }

    /// Returns the name for users.
    pub fn label(self) -> String {
        let name = self.as_str();
        match self {
            Self::Os | Self::Url => name.to_ascii_uppercase(),
            _ => name[..1].to_ascii_uppercase() + &name[1..],
        }
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
                (attribute as usize, Attribute::named(attribute.as_str())),
                (index, Some(attribute))
            );
            assert_eq!(attribute.label().to_lowercase(), attribute.as_str());
        }
    }
}
