//! Filterable attributes of errors (`docs/semantics/error-tracking.md`, "Categories").

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroU64;

use sha2::{Digest, Sha256};

use crate::tag::TagKey;

/// A filterable category: a text or the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// A category with texts.
    Text(TextCategory),
    /// The user. Only a hash is kept, which shows whether two events have the same user.
    User,
}

impl Category {
    /// Returns the names of all categories except tags, in list order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Attribute::ALL.into_iter().map(Attribute::name).chain([USER])
    }

    /// Returns the category with this name.
    pub fn parse(name: &str) -> Option<Self> {
        if name == USER { Some(Self::User) } else { TextCategory::parse(name).map(Self::Text) }
    }
}

/// The name of [`Category::User`].
pub(crate) const USER: &str = "user";
/// The start of the names of tags in filters.
const TAGS: &str = "tags.";

/// A category with texts as values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TextCategory {
    /// An attribute.
    Attribute(Attribute),
    /// A tag of the application.
    Tag(TagKey),
}

impl TextCategory {
    /// Returns the name in filters.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Attribute(attribute) => Cow::Borrowed(attribute.name()),
            Self::Tag(key) => Cow::Owned(format!("{TAGS}{key}")),
        }
    }

    /// Returns the category with this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name.strip_prefix(TAGS) {
            Some(key) => TagKey::parse(key).map(Self::Tag),
            None => Attribute::parse(name).map(Self::Attribute),
        }
    }
}

impl From<Attribute> for TextCategory {
    fn from(attribute: Attribute) -> Self {
        Self::Attribute(attribute)
    }
}

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

    /// Returns the name in filters and searches.
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

    /// Returns the attribute with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|attribute| attribute.name() == name)
    }
}

/// The first 8 bytes of the SHA-256 of a user's identity. The data for counting does not contain
/// the identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserHash(NonZeroU64);

impl UserHash {
    /// Returns the hash of an identity, or `None` if the identity is empty.
    pub fn of(identity: &str) -> Option<Self> {
        if identity.is_empty() {
            return None;
        }
        let digest = Sha256::digest(identity);
        let (first, _) = digest.split_first_chunk()?;
        // Zero means no user. The hash that replaces zero collides as rarely as any two hashes.
        Some(Self::from_bytes(*first).unwrap_or(Self(NonZeroU64::MIN)))
    }

    /// Returns a hash from its bytes, or `None` if all are zero.
    pub fn from_bytes(bytes: [u8; 8]) -> Option<Self> {
        NonZeroU64::new(u64::from_be_bytes(bytes)).map(Self)
    }

    /// Returns the bytes, which are not all zero.
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.get().to_be_bytes()
    }
}

/// The filterable attributes of one event. An attribute that the event lacks is absent, never `""`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attributes {
    values: [Option<String>; Attribute::ALL.len()],
    tags: BTreeMap<TagKey, String>,
    /// Keys that are not categories, of a sample of events.
    other_tags: Vec<TagKey>,
    user: Option<UserHash>,
}

impl Attributes {
    /// Returns the value of an attribute.
    pub fn get(&self, attribute: Attribute) -> Option<&str> {
        self.values[attribute as usize].as_deref()
    }

    /// Sets an attribute. An empty value means absent.
    pub fn set(&mut self, attribute: Attribute, value: Option<String>) {
        self.values[attribute as usize] = value.filter(|value| !value.is_empty());
    }

    /// Returns the value of a category.
    pub fn text(&self, category: TextCategory) -> Option<&str> {
        match category {
            TextCategory::Attribute(attribute) => self.get(attribute),
            TextCategory::Tag(key) => self.tags.get(&key).map(String::as_str),
        }
    }

    /// Returns the tags that are categories.
    pub fn tags(&self) -> impl Iterator<Item = (TagKey, &str)> {
        self.tags.iter().map(|(key, value)| (*key, value.as_str()))
    }

    /// Sets a tag. An empty value means absent.
    pub fn set_tag(&mut self, key: TagKey, value: String) {
        if !value.is_empty() {
            self.tags.insert(key, value);
        }
    }

    /// Removes a tag.
    pub(crate) fn remove_tag(&mut self, key: TagKey) {
        self.tags.remove(&key);
    }

    /// Returns keys of tags that are not categories.
    pub fn other_tags(&self) -> &[TagKey] {
        &self.other_tags
    }

    /// Sets the keys of tags that are not categories.
    pub fn set_other_tags(&mut self, keys: Vec<TagKey>) {
        self.other_tags = keys;
    }

    /// Returns the user.
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
    fn user_hashes_are_truncated_sha256() {
        // The first 8 bytes that `sha256sum` prints.
        let hash = UserHash::of("alice@example.com").map(UserHash::to_bytes);
        assert_eq!(hash, Some([0xff, 0x8d, 0x98, 0x19, 0xfc, 0x0e, 0x12, 0xbf]));
        assert_ne!(UserHash::of("42"), UserHash::of("43"));
        assert_eq!(UserHash::of(""), None);
        assert_eq!(hash.and_then(UserHash::from_bytes), UserHash::of("alice@example.com"));
    }

    #[test]
    fn category_names_are_unique() {
        for name in Category::names() {
            assert_eq!(TagKey::parse(name), None);
            match Category::parse(name) {
                Some(Category::Text(category)) => assert_eq!(category.name(), name),
                category => assert_eq!((name, category), (USER, Some(Category::User))),
            }
        }
        let tag = TextCategory::parse("tags.tenant");
        assert_eq!(tag.map(|tag| tag.name().into_owned()).as_deref(), Some("tags.tenant"));
        for name in ["id", "tenant", "tags.", "tags.a b", "tags"] {
            assert_eq!(Category::parse(name), None);
        }
        assert_eq!(Attribute::parse("user"), None);
    }
}
