//! All violations of a request.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::JsonPath;

/// Most violations of one request that are listed; the rest are only counted. A body of 256 KiB can
/// have more than 100,000, whose list would not fit into a response.
const MAX_LISTED: usize = 1_000;

/// The stable, machine-readable kind of a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViolationCode {
    /// A required field is missing or null.
    Required,
    /// The value has another JSON type than the field.
    InvalidType,
    /// The operation has no such field.
    UnknownField,
    /// The object has a field twice, or a list has a value twice that must be unique.
    Duplicate,
    /// The text does not have the form of the field.
    InvalidFormat,
    /// The value is not one that the field permits.
    InvalidValue,
    /// The text is shorter than allowed.
    TooShort,
    /// The text, or the whole resource, is larger than allowed.
    TooLong,
    /// The number is out of bounds, or has too many decimals.
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
    /// The flag has no such version, or no longer keeps it.
    UnknownVersion,
    /// The named flag is archived, and nothing new may depend on it.
    FlagArchived,
    /// A prerequisite chain would return to its start.
    Cycle,
    /// A prerequisite chain would have too many flags.
    TooDeep,
    /// The pain point does not belong to the insight.
    UnknownPainPoint,
    /// The named insight does not exist in the project.
    UnknownInsight,
}

/// The violation of one value, without its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The kind of the violation.
    pub code: ViolationCode,
    /// The expected value, described for people.
    pub message: String,
}

impl FieldError {
    /// Creates an error. The message describes the expected value.
    pub fn new(code: ViolationCode, message: impl fmt::Display) -> Self {
        Self { code, message: message.to_string() }
    }
}

/// One violation of a request, with its location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// A JSON Pointer into the body (RFC 6901), or `path:`, `query:` or `header:` and a name.
    pub pointer: String,
    /// The kind of the violation.
    pub code: ViolationCode,
    /// The expected value, described for people.
    pub message: String,
}

/// All violations of a request, in the order in which they were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Violations {
    listed: Vec<Violation>,
    count: usize,
}

impl Violations {
    /// Returns the violation of a field of the body.
    pub fn of_field(name: &str, code: ViolationCode, message: impl fmt::Display) -> Self {
        let mut violations = Self::default();
        violations.note(&JsonPath::Root.member(name), code, message);
        violations
    }

    /// Records a violation at a location in the body.
    pub fn note(&mut self, place: &JsonPath<'_>, code: ViolationCode, message: impl fmt::Display) {
        self.push(place, code, message);
    }

    /// Records a violation of a request header, named in lower case.
    pub fn note_header(&mut self, name: &str, FieldError { code, message }: FieldError) {
        self.push(format_args!("header:{name}"), code, message);
    }

    /// Records a violation of a path parameter.
    pub fn note_path(&mut self, name: &str, FieldError { code, message }: FieldError) {
        self.push(format_args!("path:{name}"), code, message);
    }

    /// Records a violation of a query parameter.
    pub fn note_query(&mut self, name: &str, FieldError { code, message }: FieldError) {
        self.push(format_args!("query:{name}"), code, message);
    }

    /// Records violations, and inserts them at `position` in the list.
    pub(super) fn note_at(&mut self, position: usize, note: impl FnOnce(&mut Self)) {
        let later = self.listed.split_off(position.min(self.listed.len()));
        note(self);
        self.listed.extend(later);
        self.listed.truncate(MAX_LISTED);
    }

    /// Formats only listed violations, so that a hostile body costs no more than its size.
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

    /// Records the violations of another list.
    pub fn append(&mut self, other: Self) {
        self.count += other.count;
        self.listed.extend(other.listed);
        self.listed.truncate(MAX_LISTED);
    }

    /// Returns the violations of a value with its place in the body as the start of their pointers.
    #[must_use]
    pub fn below(mut self, place: &str) -> Self {
        for violation in &mut self.listed {
            violation.pointer.insert_str(0, place);
        }
        self
    }

    /// Returns `true` if there are no violations.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of violations, listed or not.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the first 1,000 violations.
    pub fn listed(&self) -> &[Violation] {
        &self.listed
    }

    /// Returns `value` if there is one and there are no violations.
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
    fn note_at_inserts_before_later_violations() {
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
    fn into_result_fails_if_there_are_violations() {
        let mut violations = Violations::default();
        assert_eq!(violations.clone().into_result(Some(1)), Ok(1));
        violations.note(&JsonPath::Root, ViolationCode::Required, "x");
        assert!(violations.into_result(Some(1)).is_err());
    }
}
