//! Where in a JSON document something stands.

use std::fmt;

/// A place in a JSON document: a chain of borrowed steps from the root, so that walking a valid
/// document costs no allocation. Displays as a JSON Pointer (RFC 6901).
#[derive(Debug, Clone, Copy)]
pub enum Place<'p> {
    /// The whole document: the pointer `""`.
    Root,
    /// A member of the object at the first place.
    Member(&'p Place<'p>, &'p str),
    /// An item of the array at the first place, counted from 0.
    Item(&'p Place<'p>, usize),
}

impl<'p> Place<'p> {
    /// The member `name` of this object.
    #[must_use]
    pub fn member(&'p self, name: &'p str) -> Place<'p> {
        Place::Member(self, name)
    }

    /// The item at `index` of this array.
    #[must_use]
    pub fn item(&'p self, index: usize) -> Place<'p> {
        Place::Item(self, index)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::Member(parent, name) => {
                write!(formatter, "{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
            }
            Place::Item(parent, index) => write!(formatter, "{parent}/{index}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displays_as_a_json_pointer() {
        let rules = Place::Root.member("rules");
        let first = rules.item(0);
        assert_eq!(first.member("serve").to_string(), "/rules/0/serve");
        assert_eq!(Place::Root.to_string(), "");
        assert_eq!(Place::Root.member("a/b~c").to_string(), "/a~1b~0c");
        assert_eq!(Place::Root.member("").to_string(), "/");
    }
}
