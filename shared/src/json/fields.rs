//! Reading JSON values into types, noting every fault on the way.

use std::cell::RefCell;
use std::fmt;

use super::{FieldError, Json, JsonPath, ViolationCode, Violations};

/// An optional member of an object after reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field<T> {
    /// The member is missing.
    Absent,
    /// The member is `null`, which most fields take for missing.
    Null,
    /// The member is there but not usable; its faults are noted.
    Invalid,
    /// The member's value.
    Valid(T),
}

impl<T> Field<T> {
    /// The value, where there is one.
    pub fn valid(self) -> Option<T> {
        match self {
            Field::Valid(value) => Some(value),
            _ => None,
        }
    }

    /// The field with its value, where there is one, made into another.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Field<U> {
        match self {
            Field::Absent => Field::Absent,
            Field::Null => Field::Null,
            Field::Invalid => Field::Invalid,
            Field::Valid(value) => Field::Valid(make(value)),
        }
    }

    /// The value, or a default where the member is missing or `null`; nothing where it is invalid.
    pub fn or_default_with(self, default: impl FnOnce() -> T) -> Option<T> {
        match self {
            Field::Valid(value) => Some(value),
            Field::Absent | Field::Null => Some(default()),
            Field::Invalid => None,
        }
    }

    /// The new value in a merge patch (RFC 7396), where `null` resets to what is so `on_creation`:
    /// `Some(None)` where nothing is to change, `None` where the member is invalid.
    pub fn or_reset_to(self, on_creation: T) -> Option<Option<T>> {
        match self {
            Field::Absent => Some(None),
            Field::Null => Some(Some(on_creation)),
            Field::Valid(value) => Some(Some(value)),
            Field::Invalid => None,
        }
    }

    /// The value, or the type's default where the member is missing or `null`.
    pub fn or_default(self) -> Option<T>
    where
        T: Default,
    {
        self.or_default_with(T::default)
    }
}

/// The members of one object. Those that are asked for, by any of its functions, are those that the
/// object may have.
#[derive(Debug)]
pub struct Fields<'j, 'a, 'p> {
    members: &'j [(std::borrow::Cow<'a, str>, Json<'a>)],
    path: &'p JsonPath<'p>,
    known: RefCell<Vec<&'static str>>,
}

impl<'j, 'a, 'p> Fields<'j, 'a, 'p> {
    /// Reads an object with `read`, which asks for every member that the object may have, whatever
    /// the others are. Notes a value that is no object, and, before what `read` notes, each unknown
    /// or repeated member.
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
                let message = "the field stands here twice; keep one";
                violations.note(&self.path.member(name), ViolationCode::Duplicate, message);
            } else {
                names.push(name);
            }
        }
    }

    /// The member as it was sent, `null` included.
    pub fn get(&self, name: &'static str) -> Option<&'j Json<'a>> {
        let mut known = self.known.borrow_mut();
        if !known.contains(&name) {
            known.push(name);
        }
        self.members.iter().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// Reads a member that must be there.
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

    /// Reads a member that may be missing.
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

/// Reads a string into a type. NUL is refused everywhere: few systems downstream can hold it.
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
        note_fault(parse(text), path, violations)
    }
}

/// Reads a number, given as it was written, into a type.
pub fn number<'a, T>(
    parse: impl FnOnce(&'a str) -> Result<T, FieldError>,
) -> impl FnOnce(&Json<'a>, &JsonPath<'_>, &mut Violations) -> Option<T> {
    move |json, path, violations| {
        let Json::Number(written) = json else {
            note_type(json, path, "a number", violations);
            return None;
        };
        note_fault(parse(written), path, violations)
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

/// Reads an array of at most `max` items, each with `read`. A longer one is noted and its items
/// are left unread.
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
            let message =
                format_args!("at most {max} items are allowed; there are {}", items.len());
            violations.note(path, ViolationCode::TooManyItems, message);
            return None;
        }
        // Every item is read, also after a fault: all violations are answered at once.
        let read_items: Vec<Option<T>> = items
            .iter()
            .enumerate()
            .map(|(index, item)| read(item, &path.item(index), violations))
            .collect();
        read_items.into_iter().collect()
    }
}

/// What is said of a member that an object may not have.
struct UnknownField<'k> {
    known: &'k [&'k str],
}

impl fmt::Display for UnknownField<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "unknown field; allowed here: {}", self.known.join(", "))
    }
}

fn note_fault<T>(
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
    fn notes_each_unknown_and_repeated_member() {
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
    fn tells_absent_null_invalid_and_valid_apart() {
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
    fn a_merge_patch_leaves_resets_or_sets() {
        assert_eq!(Field::Absent.or_reset_to(1), Some(None));
        assert_eq!(Field::Null.or_reset_to(1), Some(Some(1)));
        assert_eq!(Field::Valid(2).or_reset_to(1), Some(Some(2)));
        assert_eq!(Field::Invalid.or_reset_to(1), None);
    }

    #[test]
    fn a_mapped_field_is_as_present_as_it_was() {
        let mapped = |field: Field<i32>| field.map(|value| value.to_string());
        assert_eq!(mapped(Field::Absent), Field::Absent);
        assert_eq!(mapped(Field::Null), Field::Null);
        assert_eq!(mapped(Field::Invalid), Field::Invalid);
        assert_eq!(mapped(Field::Valid(2)), Field::Valid("2".to_owned()));
    }

    #[test]
    fn a_required_member_may_neither_be_missing_nor_null() {
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
    fn reads_every_item_of_an_array_but_none_of_one_that_is_too_long() {
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
    fn refuses_nul_in_text() {
        let (value, violations) = read(r#""a\u0000b""#, |json, violations| {
            text(|text| Ok(text.to_owned()))(json, &JsonPath::Root, violations)
        });
        assert_eq!(value, None);
        assert_eq!(violations, [(String::new(), ViolationCode::InvalidFormat)]);
    }
}
