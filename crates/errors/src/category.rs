//! Filterable categories of events: attributes, and tags of the application
//! (`docs/semantics/error-tracking.md`, "Categories").

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::attribute::Attribute;
use crate::tag::TagKey;

/// The start of the names of tags in filters.
const TAGS: &str = "tags.";

/// A filterable category.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// An attribute.
    Attribute(Attribute),
    /// A tag of the application.
    Tag(TagKey),
}

impl Category {
    /// Returns the name in filters.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Attribute(attribute) => Cow::Borrowed(attribute.as_str()),
            Self::Tag(key) => Cow::Owned(format!("{TAGS}{key}")),
        }
    }

    /// Returns the category with this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name.strip_prefix(TAGS) {
            Some(key) => TagKey::parse(key).map(Self::Tag),
            None => Attribute::named(name).map(Self::Attribute),
        }
    }

    /// `true` if the values are texts that can be shown, and not hashes.
    pub fn has_texts(&self) -> bool {
        *self != Self::Attribute(Attribute::User)
    }
}

impl From<Attribute> for Category {
    fn from(attribute: Attribute) -> Self {
        Self::Attribute(attribute)
    }
}

/// The filterable attributes of one event. An attribute that the event lacks is absent, never `""`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attributes {
    values: [Option<String>; Attribute::ALL.len()],
    tags: BTreeMap<TagKey, String>,
    /// Keys that are not categories, of a sample of events.
    other_tags: Vec<TagKey>,
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
    pub fn text(&self, category: Category) -> Option<&str> {
        match category {
            Category::Attribute(attribute) => self.get(attribute),
            Category::Tag(key) => self.tags.get(&key).map(String::as_str),
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn category_names_are_unique() {
        for attribute in Attribute::ALL {
            assert_eq!(TagKey::parse(attribute.as_str()), None);
            assert_eq!(Category::parse(attribute.as_str()), Some(attribute.into()));
        }
        let tag = Category::parse("tags.tenant");
        assert_eq!(tag.map(|tag| tag.name().into_owned()).as_deref(), Some("tags.tenant"));
        for name in ["id", "tenant", "tags.", "tags.a b", "tags"] {
            assert_eq!(Category::parse(name), None);
        }
    }
}
