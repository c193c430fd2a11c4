//! Locations in JSON documents.

use std::fmt;

/// A location in a JSON document: a chain of borrowed steps from the root. Walking a valid document
/// therefore allocates nothing. Displays as a JSON Pointer (RFC 6901).
#[derive(Debug, Clone, Copy)]
pub enum JsonPath<'p> {
    /// The whole document: the pointer `""`.
    Root,
    /// A field of the object at the first path.
    Member(&'p JsonPath<'p>, &'p str),
    /// An item of the array at the first path, counted from 0.
    Item(&'p JsonPath<'p>, usize),
}

impl<'p> JsonPath<'p> {
    /// Returns the location of the field `name` in this object.
    #[must_use]
    pub fn member(&'p self, name: &'p str) -> JsonPath<'p> {
        JsonPath::Member(self, name)
    }

    /// Returns the location of the item at `index` in this array.
    #[must_use]
    pub fn item(&'p self, index: usize) -> JsonPath<'p> {
        JsonPath::Item(self, index)
    }
}

impl fmt::Display for JsonPath<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonPath::Root => Ok(()),
            JsonPath::Member(parent, name) => {
                write!(formatter, "{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
            }
            JsonPath::Item(parent, index) => write!(formatter, "{parent}/{index}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displays_as_a_json_pointer() {
        let rules = JsonPath::Root.member("rules");
        let first = rules.item(0);
        assert_eq!(first.member("serve").to_string(), "/rules/0/serve");
        assert_eq!(JsonPath::Root.to_string(), "");
        assert_eq!(JsonPath::Root.member("a/b~c").to_string(), "/a~1b~0c");
        assert_eq!(JsonPath::Root.member("").to_string(), "/");
    }
}
