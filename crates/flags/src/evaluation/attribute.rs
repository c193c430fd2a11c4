//! Attributes of an evaluation context and their lookup.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::net::IpAddr;

use semver::Version;

use shared::json::Json;
use shared::json_number::JsonNumber;
use shared::timestamp::Timestamp;

use crate::condition::{is_number, parse_version};

/// A value in the context. Texts and numbers are parsed at most once for all conditions.
#[derive(Debug)]
pub(super) enum Attribute<'a> {
    Null,
    Bool(bool),
    Number(Number<'a>),
    Text(Text<'a>),
    List(Vec<Attribute<'a>>),
    Object(Members<'a>),
}

impl<'a> From<Json<'a>> for Attribute<'a> {
    fn from(json: Json<'a>) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(value),
            Json::Number(written) => Self::Number(Number { written, exact: OnceCell::new() }),
            Json::String(text) => Self::Text(Text::new(text)),
            Json::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Json::Object(members) => Self::Object(Members::new(members)),
        }
    }
}

/// A number as it was sent.
#[derive(Debug)]
pub(super) struct Number<'a> {
    written: &'a str,
    exact: OnceCell<Option<JsonNumber>>,
}

impl Number<'_> {
    pub(super) fn exact(&self) -> Option<&JsonNumber> {
        self.exact.get_or_init(|| JsonNumber::parse(self.written)).as_ref()
    }
}

/// A text and its parsed forms.
#[derive(Debug)]
pub(super) struct Text<'a> {
    written: Cow<'a, str>,
    number: OnceCell<Option<JsonNumber>>,
    date: OnceCell<Option<Timestamp>>,
    version: OnceCell<Option<Version>>,
    address: OnceCell<Option<IpAddr>>,
}

impl<'a> Text<'a> {
    fn new(written: Cow<'a, str>) -> Self {
        Self {
            written,
            number: OnceCell::new(),
            date: OnceCell::new(),
            version: OnceCell::new(),
            address: OnceCell::new(),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.written
    }

    pub(super) fn number(&self) -> Option<&JsonNumber> {
        let parse = || is_number(&self.written).then(|| JsonNumber::parse(&self.written)).flatten();
        self.number.get_or_init(parse).as_ref()
    }

    pub(super) fn date(&self) -> Option<Timestamp> {
        *self.date.get_or_init(|| Timestamp::parse_rfc3339(&self.written).ok())
    }

    pub(super) fn version(&self) -> Option<&Version> {
        self.version.get_or_init(|| parse_version(&self.written)).as_ref()
    }

    pub(super) fn address(&self) -> Option<IpAddr> {
        *self.address.get_or_init(|| self.written.parse().ok())
    }
}

/// The fields of an object, sorted by name.
#[derive(Debug, Default)]
pub(super) struct Members<'a>(Vec<(Cow<'a, str>, Attribute<'a>)>);

impl<'a> Members<'a> {
    pub(super) fn new(members: Vec<(Cow<'a, str>, Json<'a>)>) -> Self {
        let mut members: Vec<_> =
            members.into_iter().map(|(name, json)| (name, Attribute::from(json))).collect();
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self(members)
    }

    fn get(&self, name: &str) -> Option<&Attribute<'a>> {
        let index = self.0.binary_search_by(|(member, _)| member.as_ref().cmp(name)).ok()?;
        self.0.get(index).map(|(_, attribute)| attribute)
    }
}

/// The path of an attribute. A field with the whole name takes precedence over the dotted path.
#[derive(Debug)]
pub(super) struct AttributePath {
    name: Box<str>,
    /// The segments of a dotted path; empty if the name has no dot.
    segments: Box<[Box<str>]>,
}

impl AttributePath {
    pub(super) fn new(name: &str) -> Self {
        let segments = if name.contains('.') {
            name.split('.').map(Box::from).collect()
        } else {
            Box::default()
        };
        Self { name: name.into(), segments }
    }

    fn find<'c, 'a>(&self, members: &'c Members<'a>) -> Option<&'c Attribute<'a>> {
        members.get(&self.name).or_else(|| {
            let (first, inner) = self.segments.split_first()?;
            inner.iter().try_fold(members.get(first)?, |attribute, segment| match attribute {
                Attribute::Object(members) => members.get(segment),
                _ => None,
            })
        })
    }
}

/// The attributes that a flag's conditions use, without duplicates. Conditions refer to them by
/// index.
#[derive(Debug, Default)]
pub(super) struct AttributePaths(Vec<AttributePath>);

impl AttributePaths {
    /// Returns the index of the attribute with this name.
    pub(super) fn index_of(&mut self, name: &str) -> usize {
        let known = self.0.iter().position(|path| path.name.as_ref() == name);
        known.unwrap_or_else(|| {
            self.0.push(AttributePath::new(name));
            self.0.len() - 1
        })
    }
}

/// Maximum number of attributes per flag whose lookup is cached. Further ones, which few flags
/// have, are looked up for each condition.
const CACHED_LOOKUPS: usize = 16;

/// A context's attributes by the flag's indices.
pub(super) struct Found<'c, 'a> {
    paths: &'c AttributePaths,
    members: &'c Members<'a>,
    cached: [OnceCell<Option<&'c Attribute<'a>>>; CACHED_LOOKUPS],
}

impl<'c, 'a> Found<'c, 'a> {
    pub(super) fn new(paths: &'c AttributePaths, members: &'c Members<'a>) -> Self {
        Self { paths, members, cached: [const { OnceCell::new() }; CACHED_LOOKUPS] }
    }

    /// Returns the attribute at an index, unless it is missing or null.
    pub(super) fn get(&self, index: usize) -> Option<&'c Attribute<'a>> {
        let find = || {
            let found = self.paths.0.get(index)?.find(self.members);
            found.filter(|attribute| !matches!(attribute, Attribute::Null))
        };
        match self.cached.get(index) {
            Some(cached) => *cached.get_or_init(find),
            None => find(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(context: &str, name: &str) -> Option<String> {
        let Ok(Json::Object(members)) = Json::parse(context, 8) else { panic!("an object") };
        let members = Members::new(members);
        AttributePath::new(name).find(&members).map(|attribute| match attribute {
            Attribute::Text(text) => text.as_str().to_owned(),
            Attribute::Number(number) => number.written.to_owned(),
            other => format!("{other:?}"),
        })
    }

    #[test]
    fn whole_names_take_precedence_over_paths() {
        let context = r#"{"b.c": "whole", "b": {"c": "path", "d": {"e": 1.50}}, "a": true}"#;
        assert_eq!(found(context, "b.c").as_deref(), Some("whole"));
        assert_eq!(found(context, "b.d.e").as_deref(), Some("1.50"));
        assert_eq!(found(context, "a").as_deref(), Some("Bool(true)"));
        for missing in ["c", "b.x", "b.c.d", "a.b", "b.", ".b", "b..c", "."] {
            assert_eq!(found(context, missing), None, "{missing:?}");
        }
    }

    #[test]
    fn null_with_the_whole_name_hides_the_path() {
        assert_eq!(found(r#"{"a.b": null, "a": {"b": 1}}"#, "a.b").as_deref(), Some("Null"));
    }

    #[test]
    fn paths_do_not_index_arrays() {
        assert_eq!(found(r#"{"a": ["x"]}"#, "a.0"), None);
        assert_eq!(found(r#"{"a": {"0": "x"}}"#, "a.0").as_deref(), Some("x"));
    }
}
