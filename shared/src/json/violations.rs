//! What is wrong with a request, all of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::JsonPath;

/// How many violations of one request are listed. A body of 256 KiB can hold more than 100,000,
/// and their list would not fit into an answer; what is left out is counted.
const MAX_LISTED: usize = 1_000;

/// The stable, machine-readable kind of a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViolationCode {
    /// A required member is missing or null.
    Required,
    /// The value has another JSON type than the field.
    InvalidType,
    /// The operation does not know the field.
    UnknownField,
    /// The object names a member twice, or a list holds twice what must be unique.
    Duplicate,
    /// The text does not have the form that the field asks for.
    InvalidFormat,
    /// The value is none of those that the field allows.
    InvalidValue,
    /// The text is shorter than allowed.
    TooShort,
    /// The text, or the whole resource, is larger than allowed.
    TooLong,
    /// The number lies outside of its bounds, or has too many decimals.
    OutOfRange,
    /// The array has fewer items than allowed.
    TooFewItems,
    /// The array has more items than allowed.
    TooManyItems,
    /// The named variant does not exist.
    UnknownVariant,
    /// The named flag does not exist in the project.
    UnknownFlag,
    /// The named segment does not exist in the project.
    UnknownSegment,
    /// The flag has no such version, or none that is remembered.
    UnknownVersion,
    /// The named flag is archived, and nothing new may depend on it.
    FlagArchived,
    /// A prerequisite chain would lead back to its start.
    Cycle,
    /// A prerequisite chain would have too many flags.
    TooDeep,
    /// The named pain point is not of the insight.
    UnknownPainPoint,
    /// The named insight does not exist in the project.
    UnknownInsight,
}

/// What is wrong with one value, without its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Its kind.
    pub code: ViolationCode,
    /// What is expected instead, for a person.
    pub message: String,
}

impl FieldError {
    /// A fault of the given kind. The message says what is expected.
    pub fn new(code: ViolationCode, message: impl fmt::Display) -> Self {
        Self { code, message: message.to_string() }
    }
}

/// One thing that is wrong with a request, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// A JSON Pointer into the body (RFC 6901), or `path:`, `query:` or `header:` and a name.
    pub pointer: String,
    /// Its kind.
    pub code: ViolationCode,
    /// What is expected instead, for a person.
    pub message: String,
}

/// Everything that is wrong with a request, in the order in which it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Violations {
    listed: Vec<Violation>,
    count: usize,
}

impl Violations {
    /// Notes a fault at a place of the body.
    pub fn note(&mut self, place: &JsonPath<'_>, code: ViolationCode, message: impl fmt::Display) {
        self.push(place, code, message);
    }

    /// Notes a fault of a request header, named in lower case.
    pub fn note_header(&mut self, name: &str, FieldError { code, message }: FieldError) {
        self.push(format_args!("header:{name}"), code, message);
    }

    /// Notes a fault of a path parameter.
    pub fn note_path(&mut self, name: &str, FieldError { code, message }: FieldError) {
        self.push(format_args!("path:{name}"), code, message);
    }

    /// Notes a fault of a query parameter.
    pub fn note_query(&mut self, name: &str, FieldError { code, message }: FieldError) {
        self.push(format_args!("query:{name}"), code, message);
    }

    /// Notes what comes before all that was noted since there were `position` violations.
    pub(super) fn note_at(&mut self, position: usize, note: impl FnOnce(&mut Self)) {
        let later = self.listed.split_off(position.min(self.listed.len()));
        note(self);
        self.listed.extend(later);
        self.listed.truncate(MAX_LISTED);
    }

    /// Nothing is written out for what is counted only: a hostile body costs no more than its size.
    fn push(
        &mut self,
        pointer: impl fmt::Display,
        code: ViolationCode,
        message: impl fmt::Display,
    ) {
        self.count += 1;
        if self.listed.len() < MAX_LISTED {
            let (pointer, message) = (pointer.to_string(), message.to_string());
            self.listed.push(Violation { pointer, code, message });
        }
    }

    /// Notes what was found elsewhere.
    pub fn append(&mut self, other: Self) {
        self.count += other.count;
        self.listed.extend(other.listed);
        self.listed.truncate(MAX_LISTED);
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many violations there are, listed or not.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The first 1,000 violations.
    pub fn listed(&self) -> &[Violation] {
        &self.listed
    }

    /// `value`, if it could be read and nothing is wrong.
    pub fn into_result<T>(self, value: Option<T>) -> Result<T, Self> {
        match value {
            Some(value) if self.is_empty() => Ok(value),
            _ => Err(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_the_first_thousand_and_counts_the_rest() {
        let mut violations = Violations::default();
        for index in 0..MAX_LISTED + 5 {
            violations.note(&JsonPath::Root.item(index), ViolationCode::InvalidType, "no");
        }
        assert_eq!(violations.listed().len(), MAX_LISTED);
        assert_eq!(violations.listed()[MAX_LISTED - 1].pointer, "/999");
        assert_eq!(violations.count(), MAX_LISTED + 5);
    }

    #[test]
    fn what_is_noted_at_a_position_comes_before_what_is_there() {
        let note = |violations: &mut Violations, index| {
            violations.note(&JsonPath::Root.item(index), ViolationCode::InvalidType, "no");
        };
        let mut violations = Violations::default();
        for index in 0..MAX_LISTED {
            note(&mut violations, index);
        }
        violations.note_at(1, |violations| note(violations, 7_000));
        violations.note_at(MAX_LISTED + 1, |violations| note(violations, 8_000));
        let pointers: Vec<_> = violations.listed().iter().map(|it| it.pointer.as_str()).collect();
        assert_eq!(pointers[..3], ["/0", "/7000", "/1"]);
        assert_eq!((pointers.len(), pointers[MAX_LISTED - 1]), (MAX_LISTED, "/998"));
        assert_eq!(violations.count(), MAX_LISTED + 2);
    }

    #[test]
    fn a_violation_spoils_a_value_that_could_be_read() {
        let mut violations = Violations::default();
        assert_eq!(violations.clone().into_result(Some(1)), Ok(1));
        violations.note(&JsonPath::Root, ViolationCode::Required, "x");
        assert!(violations.into_result(Some(1)).is_err());
    }
}
