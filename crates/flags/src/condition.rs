//! Conditions of rules and segments: the operators, and the values that each accepts
//! (`docs/semantics/feature-flags.md`).

mod pattern;
mod reading;

use std::net::IpAddr;

use ipnet::IpNet;
use serde::de::IntoDeserializer;
use serde::{Deserialize, Serialize};

use shared::json::{FieldError, Json, JsonPath, ViolationCode, Violations};
use shared::text::{check_label, unknown_name};
use shared::timestamp::Timestamp;

use super::SegmentKey;

pub(crate) use pattern::CompiledPattern;
pub(super) use reading::{count_patterns, items, operator_of, read_condition};

/// Maximum number of values per condition.
pub const MAX_VALUES: usize = 250;
/// Maximum number of segments per flag, and so per condition. Replacing all of them must fit into
/// one transaction of at most 100 actions.
pub const MAX_SEGMENTS_OF_FLAG: usize = 30;
/// Maximum size of a value in bytes.
const MAX_VALUE_BYTES: usize = 1_000;
/// The attribute name for the time of the evaluation.
pub const NOW: &str = "$now";

/// A test of one attribute of the evaluation context, or of the segments that include it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredCondition")]
pub struct Condition {
    /// The attribute's name; `$now` is the time of the evaluation. `None` for operators about
    /// segments.
    pub attribute: Option<String>,
    /// The comparison.
    pub operator: Operator,
    /// The values to compare with, valid for the operator. Operators about segments have segment
    /// keys.
    pub values: Vec<String>,
}

/// A stored condition. Its compilation checks the values.
#[derive(Deserialize)]
#[serde(rename = "Condition", deny_unknown_fields)]
struct StoredCondition {
    // Without this attribute, serde would read a missing field as null.
    #[serde(deserialize_with = "Option::deserialize")]
    attribute: Option<String>,
    operator: Operator,
    values: Vec<String>,
}

impl TryFrom<StoredCondition> for Condition {
    type Error = String;

    fn try_from(stored: StoredCondition) -> Result<Self, String> {
        let StoredCondition { attribute, operator, values } = stored;
        let mut violations = Violations::default();
        operator.check_count(values.len(), &JsonPath::Root, &mut violations);
        if operator.is_about_segments() != attribute.is_none() {
            return Err("an operator is about an attribute or about segments".to_owned());
        }
        if let Some(attribute) = &attribute {
            operator.check_attribute(attribute, &JsonPath::Root, &mut violations);
        }
        if let Some(violation) = violations.listed().first() {
            return Err(violation.message.clone());
        }
        let parsed = attribute.as_deref().map(parse_attribute).transpose();
        let attribute = parsed.map_err(|fault| fault.message)?;
        Ok(Self { attribute, operator, values })
    }
}

/// The comparison of an attribute with the values of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // openapi.yaml describes them.
pub enum Operator {
    Equals,
    NotEquals,
    In,
    NotIn,
    Contains,
    NotContains,
    StartsWith,
    NotStartsWith,
    EndsWith,
    NotEndsWith,
    Matches,
    NotMatches,
    Exists,
    NotExists,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    Before,
    After,
    SemverEquals,
    SemverGreaterThan,
    SemverGreaterThanOrEqual,
    SemverLessThan,
    SemverLessThanOrEqual,
    InCidr,
    InSegment,
    NotInSegment,
}

/// The required form of an operator's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueForm {
    None,
    AnyText,
    NonEmptyText,
    Pattern,
    OneNumber,
    OneDate,
    OneVersion,
    AddressRange,
    SegmentKey,
}

impl Operator {
    /// Parses an operator's name. The error message lists all names.
    pub fn parse(name: &str) -> Result<Self, FieldError> {
        Self::deserialize(name.into_deserializer())
            .map_err(|error| unknown_name("operator", &error))
    }

    fn value_form(self) -> ValueForm {
        match self {
            Self::Equals | Self::NotEquals | Self::In | Self::NotIn => ValueForm::AnyText,
            Self::Contains
            | Self::NotContains
            | Self::StartsWith
            | Self::NotStartsWith
            | Self::EndsWith
            | Self::NotEndsWith => ValueForm::NonEmptyText,
            Self::Matches | Self::NotMatches => ValueForm::Pattern,
            Self::Exists | Self::NotExists => ValueForm::None,
            Self::GreaterThan
            | Self::GreaterThanOrEqual
            | Self::LessThan
            | Self::LessThanOrEqual => ValueForm::OneNumber,
            Self::Before | Self::After => ValueForm::OneDate,
            Self::SemverEquals
            | Self::SemverGreaterThan
            | Self::SemverGreaterThanOrEqual
            | Self::SemverLessThan
            | Self::SemverLessThanOrEqual => ValueForm::OneVersion,
            Self::InCidr => ValueForm::AddressRange,
            Self::InSegment | Self::NotInSegment => ValueForm::SegmentKey,
        }
    }

    /// `true` if this operator is about segments, not about an attribute.
    pub fn is_about_segments(self) -> bool {
        self.value_form() == ValueForm::SegmentKey
    }

    /// `true` if this operator's values are regular expressions.
    pub(super) fn takes_patterns(self) -> bool {
        self.value_form() == ValueForm::Pattern
    }

    /// Notes a violation if this operator does not accept this number of values.
    pub(super) fn check_count(
        self,
        count: usize,
        path: &JsonPath<'_>,
        violations: &mut Violations,
    ) {
        let (least, most) = match self.value_form() {
            ValueForm::None => (0, 0),
            ValueForm::OneNumber | ValueForm::OneDate | ValueForm::OneVersion => (1, 1),
            ValueForm::SegmentKey => (1, MAX_SEGMENTS_OF_FLAG),
            _ => (1, MAX_VALUES),
        };
        if count < least {
            let message = "the operator requires a value";
            violations.note(path, ViolationCode::TooFewItems, message);
        } else if count > most {
            let message = match most {
                0 => "the operator takes no values".to_owned(),
                1 => "the operator takes one value".to_owned(),
                most => format!("the operator takes at most {most} values"),
            };
            violations.note(path, ViolationCode::TooManyItems, message);
        }
    }

    /// Notes a violation if this operator cannot be used with this attribute.
    pub(super) fn check_attribute(
        self,
        attribute: &str,
        path: &JsonPath<'_>,
        violations: &mut Violations,
    ) {
        if attribute == NOW && self.value_form() != ValueForm::OneDate {
            let message = "`$now` works only with `before` and `after`";
            violations.note(path, ViolationCode::InvalidValue, message);
        }
    }
}

impl ValueForm {
    fn check(self, value: &str) -> Result<(), FieldError> {
        let invalid = |message: &str| Err(FieldError::new(ViolationCode::InvalidFormat, message));
        match self {
            Self::NonEmptyText if value.is_empty() => {
                Err(FieldError::new(ViolationCode::TooShort, "must not be empty"))
            }
            Self::OneNumber if !is_number(value) => {
                invalid("must be a finite JSON number, such as \"12\" or \"-0.5\"")
            }
            Self::OneDate => Timestamp::parse_rfc3339(value)
                .map(drop)
                .map_err(|error| FieldError::new(ViolationCode::InvalidFormat, error)),
            Self::OneVersion if parse_version(value).is_none() => invalid(
                "must be a semantic version without a leading v, such as \"2.1.0\" or \"2\"",
            ),
            Self::AddressRange if parse_address_range(value).is_none() => {
                invalid("must be an IPv4 or IPv6 address or range, such as \"10.0.0.0/8\"")
            }
            Self::Pattern => CompiledPattern::new(value).map(drop),
            Self::SegmentKey => SegmentKey::parse(value).map(drop),
            _ => Ok(()),
        }
    }
}

/// Parses a condition's value. Checks its form if the operator is known.
pub(super) fn parse_value(operator: Option<Operator>, text: &str) -> Result<String, FieldError> {
    if text.len() > MAX_VALUE_BYTES {
        let message = format_args!("must have at most {MAX_VALUE_BYTES} bytes");
        return Err(FieldError::new(ViolationCode::TooLong, message));
    }
    operator.map_or(Ok(()), |operator| operator.value_form().check(text))?;
    Ok(text.to_owned())
}

/// Parses an attribute's name: 1 to 128 characters without control characters.
pub(super) fn parse_attribute(text: &str) -> Result<String, FieldError> {
    // Not trimmed, since evaluations look up the exact name.
    check_label(text, 1, 128)?;
    Ok(text.to_owned())
}

/// `true` if `text` is exactly one JSON number with a finite value.
pub(crate) fn is_number(text: &str) -> bool {
    let is_literal = matches!(Json::parse(text, 1), Ok(Json::Number(written)) if written == text);
    is_literal && text.parse().is_ok_and(f64::is_finite)
}

/// Parses a semantic version. Minor and patch number are optional.
pub(crate) fn parse_version(text: &str) -> Option<semver::Version> {
    let end_of_core = text.find(['-', '+']).unwrap_or(text.len());
    let (core, suffix) = text.split_at(end_of_core);
    let padding = match core.matches('.').count() {
        0 => ".0.0",
        1 => ".0",
        _ => "",
    };
    semver::Version::parse(&format!("{core}{padding}{suffix}")).ok()
}

/// Parses an address range. A single address is a range of one.
pub(crate) fn parse_address_range(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(operator: &str, values: &[&str]) -> Vec<(String, ViolationCode)> {
        let mut violations = Violations::default();
        let operator = Operator::parse(operator).unwrap();
        let path = JsonPath::Root.member("values");
        operator.check_count(values.len(), &path, &mut violations);
        for (index, value) in values.iter().enumerate() {
            if let Err(FieldError { code, message }) = parse_value(Some(operator), value) {
                violations.note(&path.item(index), code, message);
            }
        }
        violations.listed().iter().map(|v| (v.pointer.clone(), v.code)).collect()
    }

    fn accepts(operator: &str, value: &str) -> bool {
        violations(operator, &[value]).is_empty()
    }

    #[test]
    fn operator_names_are_snake_case() {
        for name in ["equals", "not_in", "greater_than_or_equal", "semver_less_than", "in_cidr"] {
            assert!(Operator::parse(name).is_ok(), "{name}");
        }
        for name in ["Equals", "EQUALS", "eq", "greaterThan", "", "equals "] {
            let fault = Operator::parse(name).unwrap_err();
            assert_eq!(fault.code, ViolationCode::InvalidValue);
            assert!(fault.message.contains("`not_starts_with`"), "{}", fault.message);
        }
    }

    #[test]
    fn operators_require_their_number_of_values() {
        let too_few = [("/values".to_owned(), ViolationCode::TooFewItems)];
        let too_many = [("/values".to_owned(), ViolationCode::TooManyItems)];
        for operator in ["exists", "not_exists"] {
            assert_eq!(violations(operator, &[]), []);
            assert_eq!(violations(operator, &["x"]), too_many);
        }
        for (operator, value) in [
            ("greater_than", "1"),
            ("greater_than_or_equal", "1"),
            ("less_than", "1"),
            ("less_than_or_equal", "1"),
            ("before", "2026-01-01T00:00:00Z"),
            ("after", "2026-01-01T00:00:00Z"),
            ("semver_equals", "1"),
            ("semver_greater_than", "1"),
            ("semver_greater_than_or_equal", "1"),
            ("semver_less_than", "1"),
            ("semver_less_than_or_equal", "1"),
        ] {
            assert_eq!(violations(operator, &[]), too_few, "{operator}");
            assert_eq!(violations(operator, &[value]), [], "{operator}");
            assert_eq!(violations(operator, &[value, value]), too_many, "{operator}");
        }
        for operator in [
            "equals",
            "not_equals",
            "in",
            "not_in",
            "contains",
            "not_contains",
            "starts_with",
            "not_starts_with",
            "ends_with",
            "not_ends_with",
            "matches",
            "not_matches",
        ] {
            assert_eq!(violations(operator, &[]), too_few, "{operator}");
            assert_eq!(violations(operator, &["a", "a"]), [], "{operator}");
        }
    }

    #[test]
    fn empty_text_can_be_equal_but_not_contained() {
        assert!(accepts("equals", "") && accepts("not_in", ""));
        for operator in ["contains", "not_contains", "starts_with", "ends_with", "not_ends_with"] {
            let expected = [("/values/1".to_owned(), ViolationCode::TooShort)];
            assert_eq!(violations(operator, &["a", ""]), expected, "{operator}");
        }
    }

    #[test]
    fn numbers_follow_the_grammar_of_json() {
        for value in ["0", "-0", "12", "12.0", "-1.5e-3", "123456789012345678901234567890"] {
            assert!(accepts("less_than", value), "{value}");
        }
        for value in
            ["", " 1", "1 ", "+1", "01", ".5", "1.", "1e", "0x1", "NaN", "1e999", "1,0", "\"1\""]
        {
            assert!(!accepts("less_than", value), "{value:?}");
        }
    }

    #[test]
    fn versions_can_be_short_but_have_no_v() {
        for value in
            ["2", "2.1", "2.1.0", "2-rc", "2.1-rc.1+b5", "1.0.0+build", "18446744073709551615"]
        {
            assert!(accepts("semver_equals", value), "{value}");
        }
        for value in
            ["", "v2", "2.", "2.1.0.0", "02", "2.x", "18446744073709551616", "-rc", "1.0.0-"]
        {
            assert!(!accepts("semver_equals", value), "{value:?}");
        }
    }

    #[test]
    fn ranges_are_addresses_with_or_without_a_prefix() {
        for value in
            ["10.0.0.0/8", "10.1.2.3/8", "192.168.0.1", "2001:db8::/32", "::1", "0.0.0.0/0"]
        {
            assert!(accepts("in_cidr", value), "{value}");
        }
        for value in
            ["", "10.0.0.0/33", "10.0.0/8", "2001:db8::/129", "localhost", "10.0.0.0/", "010.0.0.1"]
        {
            assert!(!accepts("in_cidr", value), "{value:?}");
        }
    }

    #[test]
    fn patterns_are_checked_for_syntax_and_size() {
        for value in ["", "^a+$", "(?i)beta", r"\p{Greek}{1,3}", r"\d+\.\d+"] {
            assert_eq!(violations("matches", &[value]), [], "{value}");
        }
        let at_first = |code| [("/values/0".to_owned(), code)];
        for value in ["(", "a{2,1}", r"(?=look)", r"(a)\1", "[z-a]"] {
            assert_eq!(
                violations("matches", &[value]),
                at_first(ViolationCode::InvalidFormat),
                "{value}"
            );
        }
        let bomb = "(((a{100}){100}){100})";
        assert_eq!(violations("not_matches", &[bomb]), at_first(ViolationCode::TooLong));
        assert_eq!(violations("matches", &[&"a".repeat(513)]), at_first(ViolationCode::TooLong));
        assert!(accepts("matches", &"a".repeat(512)));
        let fault = CompiledPattern::new("a(").unwrap_err();
        assert_eq!(fault.message, "must be a regular expression: unclosed group");
    }

    #[test]
    fn segments_are_named_by_their_keys() {
        assert!(accepts("in_segment", "beta-testers") && accepts("not_in_segment", "B.2_x"));
        let at_first = [("/values/0".to_owned(), ViolationCode::InvalidFormat)];
        for value in ["", "beta testers", "/beta", "-beta"] {
            assert_eq!(violations("in_segment", &[value]), at_first, "{value:?}");
        }
        let too_few = [("/values".to_owned(), ViolationCode::TooFewItems)];
        assert_eq!(violations("not_in_segment", &[]), too_few);
    }

    #[test]
    fn stored_conditions_have_either_attribute_or_segments() {
        let stored = |attribute: &str, operator: &str| {
            let text = format!(
                r#"{{"attribute": {attribute}, "operator": "{operator}", "values": ["a"]}}"#
            );
            serde_json::from_str::<Condition>(&text).is_ok()
        };
        assert!(stored("null", "in_segment") && stored(r#""a""#, "equals"));
        assert!(!stored(r#""a""#, "not_in_segment") && !stored("null", "equals"));
        let without = r#"{"operator": "in_segment", "values": ["a"]}"#;
        assert!(serde_json::from_str::<Condition>(without).is_err());
    }

    #[test]
    fn dates_need_a_zone() {
        assert!(accepts("after", "2026-12-01T00:00:00+02:00"));
        assert!(!accepts("after", "2026-12-01"));
        assert!(!accepts("before", "1795234560007"));
    }

    #[test]
    fn now_is_only_before_or_after() {
        for (operator, allowed) in
            [("before", true), ("after", true), ("equals", false), ("exists", false)]
        {
            let mut violations = Violations::default();
            let operator = Operator::parse(operator).unwrap();
            operator.check_attribute("$now", &JsonPath::Root, &mut violations);
            assert_eq!(violations.is_empty(), allowed, "{operator:?}");
        }
    }
}
