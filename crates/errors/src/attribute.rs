//! What errors can be filtered by (`docs/semantics/error-tracking.md`, "Categories").

use std::num::NonZeroU64;

use sha2::{Digest, Sha256};

/// What can be filtered by: an attribute, or the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// An attribute, which is text.
    Attribute(Attribute),
    /// The user, of whom only a hash is kept: two events can be told to be of the same one.
    User,
}

impl Category {
    /// Every category, in the order in which they are listed.
    pub fn all() -> impl Iterator<Item = Self> {
        Attribute::ALL.into_iter().map(Self::Attribute).chain([Self::User])
    }

    /// Its name in filters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Attribute(attribute) => attribute.name(),
            Self::User => "user",
        }
    }

    /// The category of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::all().find(|category| category.name() == name)
    }
}

/// An attribute of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attribute {
    /// Where it happened: `production`.
    Environment,
    /// The version of the application.
    Release,
    /// `fatal`, `error`, `warning`, `info` or `debug`.
    Level,
    /// Whether the application caught it: `true` or `false`.
    Handled,
    /// The browser's name, without its version.
    Browser,
    /// The operating system's name, without its version.
    Os,
    /// The device's family or model.
    Device,
    /// The user's country, ISO 3166-1 alpha-2.
    Country,
    /// What the SDK runs on: `python`, `node`, `javascript`.
    Platform,
    /// The route, page or task.
    Transaction,
    /// Whether the User-Agent is that of a robot: `true` or `false`.
    Bot,
    /// The path of the request's URL, without what differs from one request to the next.
    Url,
    /// The exception's class.
    Type,
    /// Where it comes from: the transaction, else the place of the throw.
    Culprit,
}

impl Attribute {
    /// All attributes, in the order of their values in [`Attributes`].
    pub const ALL: [Self; 14] = [
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
    ];

    /// Its name in filters and searches.
    pub fn name(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::Release => "release",
            Self::Level => "level",
            Self::Handled => "handled",
            Self::Browser => "browser",
            Self::Os => "os",
            Self::Device => "device",
            Self::Country => "country",
            Self::Platform => "platform",
            Self::Transaction => "transaction",
            Self::Bot => "bot",
            Self::Url => "url",
            Self::Type => "type",
            Self::Culprit => "culprit",
        }
    }

    /// The attribute of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|attribute| attribute.name() == name)
    }
}

/// The first 8 bytes of the SHA-256 of what identifies a user. The identity itself is not kept where
/// events are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserHash(NonZeroU64);

impl UserHash {
    /// The hash of an identity; nothing of an empty one.
    pub fn of(identity: &str) -> Option<Self> {
        if identity.is_empty() {
            return None;
        }
        let digest = Sha256::digest(identity);
        let (first, _) = digest.split_first_chunk()?;
        // Zero stands for no user. That this one in 2^64 is another's hash as well is as rare as any
        // two hashes that meet.
        Some(Self::from_bytes(*first).unwrap_or(Self(NonZeroU64::MIN)))
    }

    /// A hash from its bytes; nothing of zeros.
    pub fn from_bytes(bytes: [u8; 8]) -> Option<Self> {
        NonZeroU64::new(u64::from_be_bytes(bytes)).map(Self)
    }

    /// Its bytes, which are not all zero.
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.get().to_be_bytes()
    }
}

/// What is known of one event to filter it by. What an event does not tell is absent, never `""`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attributes {
    values: [Option<String>; Attribute::ALL.len()],
    user: Option<UserHash>,
}

impl Attributes {
    /// The value of an attribute.
    pub fn get(&self, attribute: Attribute) -> Option<&str> {
        self.values[attribute as usize].as_deref()
    }

    /// Sets an attribute; an empty value means that it is absent.
    pub fn set(&mut self, attribute: Attribute, value: Option<String>) {
        self.values[attribute as usize] = value.filter(|value| !value.is_empty());
    }

    /// The user.
    pub fn user(&self) -> Option<UserHash> {
        self.user
    }

    /// Sets the user.
    pub fn set_user(&mut self, user: Option<UserHash>) {
        self.user = user;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_told_by_a_hash_that_others_can_compute() {
        // The start of what `sha256sum` prints.
        let hash = UserHash::of("alice@example.com").map(UserHash::to_bytes);
        assert_eq!(hash, Some([0xff, 0x8d, 0x98, 0x19, 0xfc, 0x0e, 0x12, 0xbf]));
        assert_ne!(UserHash::of("42"), UserHash::of("43"));
        assert_eq!(UserHash::of(""), None);
        assert_eq!(hash.and_then(UserHash::from_bytes), UserHash::of("alice@example.com"));
    }

    #[test]
    fn every_category_has_a_name_of_its_own() {
        for category in Category::all() {
            assert_eq!(Category::parse(category.name()), Some(category));
        }
        assert_eq!(Category::parse("id"), None);
        assert_eq!(Attribute::parse("user"), None);
    }
}
