//! Reads JSON values into types and records every violation.

use std::cell::RefCell;
use std::fmt;

use super::{FieldError, Json, JsonPath, ViolationCode, Violations};

/// An optional field of an object after reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field<T> {
    /// The field is missing.
    Absent,
    /// The field is `null`, which most callers treat as missing.
    Null,
    /// The field is present but invalid. Its violations are recorded.
    Invalid,
    /// The field's value.
    Valid(T),
}

impl<T> Field<T> {
    /// Returns the value, if it is valid.
    pub fn valid(self) -> Option<T> {
        match self {
            Field::Valid(value) => Some(value),
            _ => None,
        }
    }

    /// Converts the value, if it is valid.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Field<U> {
        match self {
            Field::Absent => Field::Absent,
            Field::Null => Field::Null,
            Field::Invalid => Field::Invalid,
            Field::Valid(value) => Field::Valid(make(value)),
        }
    }

    /// Returns the value, or a default if the field is missing or `null`. Returns `None` if it is
    /// invalid.
    pub fn or_default_with(self, default: impl FnOnce() -> T) -> Option<T> {
        match self {
            Field::Valid(value) => Some(value),
            Field::Absent | Field::Null => Some(default()),
            Field::Invalid => None,
        }
    }

    /// Returns the new value in a merge patch (RFC 7396). `null` resets the field to `on_creation`.
    /// Returns `Some(None)` if nothing changes, and `None` if the field is invalid.
    pub fn or_reset_to(self, on_creation: T) -> Option<Option<T>> {
        match self {
            Field::Absent => Some(None),
            Field::Null => Some(Some(on_creation)),
            Field::Valid(value) => Some(Some(value)),
            Field::Invalid => None,
        }
    }

    /// Returns the value, or the type's default if the field is missing or `null`.
    pub fn or_default(self) -> Option<T>
    where
        T: Default,
    {
        self.or_default_with(T::default)
    }
}

/// The fields of one object. The object can have only the fields that callers read.
#[derive(Debug)]
pub struct Fields<'j, 'a, 'p> {
    members: &'j [(std::borrow::Cow<'a, str>, Json<'a>)],
    path: &'p JsonPath<'p>,
    known: RefCell<Vec<&'static str>>,
}

impl<'j, 'a, 'p> Fields<'j, 'a, 'p> {
    /// Reads the body of a request, like [`Self::read`]. Fails with all violations.
    pub fn of_body<T>(
        body: &'j Json<'a>,
        read: impl FnOnce(&Self, &mut Violations) -> Option<T>,
    ) -> Result<T, Violations> {
        let mut violations = Violations::default();
        let value = Self::read(body, &JsonPath::Root, &mut violations, read);
        violations.into_result(value)
    }

    /// Reads an object with `read`, which must read every field that the object can have, even if
    /// another one is invalid. Records a violation if the value is not an object. Records each
    /// unknown or repeated field before the violations from `read`.
    pub fn read<T>(
        json: &'j Json<'a>,
        path: &'p JsonPath<'p>,
        violations: &mut Violations,
        read: impl FnOnce(&Self, &mut Violations) -> Option<T>,
    ) -> Option<T> {
        let Json::Object(members) = json else {
            note_type(json, path, "an object", violations);
            return None;
        };
        let fields = Self { members, path, known: RefCell::default() };
        let position = violations.count();
        let value = read(&fields, violations);
        violations.note_at(position, |violations| fields.note_members(violations));
        value
    }

    fn note_members(&self, violations: &mut Violations) {
        let known = self.known.borrow();
        let mut names: Vec<&str> = Vec::with_capacity(known.len());
        for (name, _) in self.members {
            let name = name.as_ref();
            if !known.contains(&name) {
                let message = UnknownField { known: &known };
                violations.note(&self.path.member(name), ViolationCode::UnknownField, message);
            } else if names.contains(&name) {
                let message = "the object has this field twice; remove one";
                violations.note(&self.path.member(name), ViolationCode::Duplicate, message);
            } else {
                names.push(name);
            }
        }
    }

    /// Returns the field as sent, including `null`.
    pub fn get(&self, name: &'static str) -> Option<&'j Json<'a>> {
        let mut known = self.known.borrow_mut();
        if !known.contains(&name) {
            known.push(name);
        }
        self.members.iter().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// Reads a required field.
    pub fn required<T>(
        &self,
        name: &'static str,
        violations: &mut Violations,
        read: impl FnOnce(&'j Json<'a>, &JsonPath<'_>, &mut Violations) -> Option<T>,
    ) -> Option<T> {
        match self.optional(name, violations, read) {
            Field::Valid(value) => Some(value),
            Field::Invalid => None,
            Field::Absent | Field::Null => {
                let message = format_args!("`{name}` is required");
                violations.note(&self.path.member(name), ViolationCode::Required, message);
                None
            }
        }
    }

    /// Reads a field of a merge patch (RFC 7396) that cannot be reset. Returns `Some(None)` if it is
    /// missing, and `None` if it is invalid.
    pub fn patched<T>(
        &self,
        name: &'static str,
        violations: &mut Violations,
        read: impl FnOnce(&'j Json<'a>, &JsonPath<'_>, &mut Violations) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.get(name) {
            None => Some(None),
            Some(_) => self.required(name, violations, read).map(Some),
        }
    }

    /// Reads an optional field.
    pub fn optional<T>(
        &self,
        name: &'static str,
        violations: &mut Violations,
        read: impl FnOnce(&'j Json<'a>, &JsonPath<'_>, &mut Violations) -> Option<T>,
    ) -> Field<T> {
        match self.get(name) {
            None => Field::Absent,
            Some(Json::Null) => Field::Null,
            Some(value) => match read(value, &self.path.member(name), violations) {
                Some(value) => Field::Valid(value),
                None => Field::Invalid,
            },
        }
    }
}

/// Reads a string into a type. NUL is always rejected: few systems downstream support it.
pub fn text<'j, T>(
    parse: impl FnOnce(&'j str) -> Result<T, FieldError>,
) -> impl FnOnce(&'j Json<'_>, &JsonPath<'_>, &mut Violations) -> Option<T> {
    move |json, path, violations| {
        let Json::String(text) = json else {
            note_type(json, path, "a string", violations);
            return None;
        };
        if text.contains('\0') {
            let message = "NUL (\\u0000) is not allowed in text";
            violations.note(path, ViolationCode::InvalidFormat, message);
            return None;
        }
        note_error(parse(text), path, violations)
    }
}

/// Reads a number into a type, from its text as written.
pub fn number<'a, T>(
    parse: impl FnOnce(&'a str) -> Result<T, FieldError>,
) -> impl FnOnce(&Json<'a>, &JsonPath<'_>, &mut Violations) -> Option<T> {
    move |json, path, violations| {
        let Json::Number(written) = json else {
            note_type(json, path, "a number", violations);
            return None;
        };
        note_error(parse(written), path, violations)
    }
}

/// Reads `true` or `false`.
pub fn boolean(json: &Json<'_>, path: &JsonPath<'_>, violations: &mut Violations) -> Option<bool> {
    let Json::Bool(value) = json else {
        note_type(json, path, "true or false", violations);
        return None;
    };
    Some(*value)
}

/// Reads an array of at most `max` items, each with `read`. A longer array is a violation, and its
/// items are not read.
pub fn array<'j, 'a, T>(
    max: usize,
    mut read: impl FnMut(&'j Json<'a>, &JsonPath<'_>, &mut Violations) -> Option<T>,
) -> impl FnOnce(&'j Json<'a>, &JsonPath<'_>, &mut Violations) -> Option<Vec<T>>
where
    'a: 'j,
{
    move |json, path, violations| {
        let Json::Array(items) = json else {
            note_type(json, path, "an array", violations);
            return None;
        };
        if items.len() > max {
            let message = format_args!("has {} items; at most {max} are allowed", items.len());
            violations.note(path, ViolationCode::TooManyItems, message);
            return None;
        }
        // Reads every item, even after a violation, since the response lists all violations.
        let read_items: Vec<Option<T>> = items
            .iter()
            .enumerate()
            .map(|(index, item)| read(item, &path.item(index), violations))
            .collect();
        read_items.into_iter().collect()
    }
}

/// The message about a field that an object cannot have.
struct UnknownField<'k> {
    known: &'k [&'k str],
}

impl fmt::Display for UnknownField<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "unknown field; allowed fields: {}", self.known.join(", "))
    }
}

fn note_error<T>(
    result: Result<T, FieldError>,
    path: &JsonPath<'_>,
    violations: &mut Violations,
) -> Option<T> {
    result.map_err(|FieldError { code, message }| violations.note(path, code, message)).ok()
}

fn note_type(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    expected: impl fmt::Display,
    violations: &mut Violations,
) {
    let message = format_args!("must be {expected}, not {}", json.type_name());
    violations.note(path, ViolationCode::InvalidType, message);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T>(
        text: &str,
        read: impl FnOnce(&Json<'_>, &mut Violations) -> T,
    ) -> (T, Vec<(String, ViolationCode)>) {
        let json = Json::parse(text, 8).unwrap();
        let mut violations = Violations::default();
        let value = read(&json, &mut violations);
        let listed = violations.listed().iter().map(|v| (v.pointer.clone(), v.code)).collect();
        (value, listed)
    }

    #[test]
    fn unknown_and_repeated_fields_are_recorded() {
        let (opened, violations) = read(r#"{"a":1,"x":2,"a":3,"y/z":4}"#, |json, violations| {
            Fields::read(json, &JsonPath::Root, violations, |fields, violations| {
                fields.optional("a", violations, boolean).valid();
                fields.get("b");
                Some(())
            })
        });
        assert_eq!(opened, Some(()));
        assert_eq!(
            violations,
            [
                ("/x".to_owned(), ViolationCode::UnknownField),
                ("/a".to_owned(), ViolationCode::Duplicate),
                ("/y~1z".to_owned(), ViolationCode::UnknownField),
                ("/a".to_owned(), ViolationCode::InvalidType),
            ]
        );
    }

    #[test]
    fn absent_null_invalid_and_valid_fields_differ() {
        let (fields, violations) = read(r#"{"b":null,"c":1,"d":true}"#, |json, violations| {
            Fields::read(json, &JsonPath::Root, violations, |fields, violations| {
                Some(["a", "b", "c", "d"].map(|name| fields.optional(name, violations, boolean)))
            })
            .unwrap()
        });
        assert_eq!(fields, [Field::Absent, Field::Null, Field::Invalid, Field::Valid(true)]);
        assert_eq!(violations, [("/c".to_owned(), ViolationCode::InvalidType)]);
    }

    #[test]
    fn merge_patches_keep_reset_or_set_fields() {
        assert_eq!(Field::Absent.or_reset_to(1), Some(None));
        assert_eq!(Field::Null.or_reset_to(1), Some(Some(1)));
        assert_eq!(Field::Valid(2).or_reset_to(1), Some(Some(2)));
        assert_eq!(Field::Invalid.or_reset_to(1), None);
    }

    #[test]
    fn mapped_fields_keep_their_presence() {
        let mapped = |field: Field<i32>| field.map(|value| value.to_string());
        assert_eq!(mapped(Field::Absent), Field::Absent);
        assert_eq!(mapped(Field::Null), Field::Null);
        assert_eq!(mapped(Field::Invalid), Field::Invalid);
        assert_eq!(mapped(Field::Valid(2)), Field::Valid("2".to_owned()));
    }

    #[test]
    fn required_fields_reject_missing_and_null() {
        let ((), violations) = read(r#"{"b":null}"#, |json, violations| {
            Fields::read(json, &JsonPath::Root, violations, |fields, violations| {
                fields.required("a", violations, boolean);
                fields.required("b", violations, boolean);
                Some(())
            });
        });
        assert_eq!(
            violations,
            [
                ("/a".to_owned(), ViolationCode::Required),
                ("/b".to_owned(), ViolationCode::Required)
            ]
        );
    }

    #[test]
    fn arrays_read_all_items_unless_too_long() {
        let (items, violations) = read("[true, 1, false, \"x\"]", |json, violations| {
            array(4, boolean)(json, &JsonPath::Root, violations)
        });
        assert_eq!(items, None);
        assert_eq!(
            violations,
            [
                ("/1".to_owned(), ViolationCode::InvalidType),
                ("/3".to_owned(), ViolationCode::InvalidType)
            ]
        );
        let (items, violations) = read("[1, 2, 3]", |json, violations| {
            array(2, boolean)(json, &JsonPath::Root, violations)
        });
        assert_eq!(items, None);
        assert_eq!(violations, [(String::new(), ViolationCode::TooManyItems)]);
    }

    #[test]
    fn text_with_nul_is_rejected() {
        let (value, violations) = read(r#""a\u0000b""#, |json, violations| {
            text(|text| Ok(text.to_owned()))(json, &JsonPath::Root, violations)
        });
        assert_eq!(value, None);
        assert_eq!(violations, [(String::new(), ViolationCode::InvalidFormat)]);
    }
}
