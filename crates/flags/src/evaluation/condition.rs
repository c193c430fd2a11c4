//! Compiled conditions.

use std::cmp::Ordering;
use std::sync::Arc;

use ipnet::IpNet;
use semver::Version;

use shared::json_number::JsonNumber;
use shared::timestamp::Timestamp;

use super::attribute::{Attribute, AttributePaths, Found, Text};
use super::budget::EvaluationBudget;
use super::compiler::Compiler;
use super::patterns::{Pattern, ProjectPatterns};
use super::segments::Memberships;
use crate::SegmentKey;
use crate::condition::{Condition, NOW, Operator, is_number, parse_address_range, parse_version};

/// A condition with parsed values. Attributes are indices into the flag's [`AttributePaths`].
#[derive(Debug)]
pub(super) enum CompiledCondition {
    /// The time of the evaluation is before or after a time.
    Now { holds: Comparison, than: Timestamp },
    /// The attribute is present and not null, or the opposite.
    Presence { of: usize, expected: bool },
    /// The attribute matches one of the values, or none.
    Attribute { of: usize, test: Arc<Test>, negated: bool },
    /// The context is in one of the segments, or in none.
    Segments { any_of: Box<[SegmentKey]>, negated: bool },
}

/// `true` if a comparison has the required result.
type Comparison = fn(Ordering) -> bool;

/// The test of an attribute. Any of several values can match.
#[derive(Debug)]
pub(super) enum Test {
    OneOf(OneOf),
    Contains(Box<[Box<str>]>),
    StartsWith(Box<[Box<str>]>),
    EndsWith(Box<[Box<str>]>),
    Matches(Box<[Pattern]>),
    Number(Comparison, Box<[JsonNumber]>),
    Date(Comparison, Box<[MomentOfTime]>),
    Version(Comparison, Box<[Version]>),
    AddressIn(Box<[IpNet]>),
}

/// A point in time, also in milliseconds since the Unix epoch.
#[derive(Debug)]
pub(super) struct MomentOfTime {
    timestamp: Timestamp,
    millis: JsonNumber,
}

impl CompiledCondition {
    /// Compiles a condition. The error names the value that its operator cannot use.
    pub(super) fn new(
        condition: &Condition,
        paths: &mut AttributePaths,
        compiler: &mut Compiler,
    ) -> Result<Self, String> {
        use Operator as O;
        let Condition { attribute, operator, values } = condition;
        let operator = *operator;
        let Some(attribute) = attribute else {
            return match operator {
                O::InSegment | O::NotInSegment => Ok(Self::Segments {
                    any_of: parse_all(values, |key| SegmentKey::parse(key).ok())?,
                    negated: operator == O::NotInSegment,
                }),
                _ => Err("a condition has no attribute".to_owned()),
            };
        };
        if attribute == NOW {
            let parsed = parse_all(values, |value| Timestamp::parse_rfc3339(value).ok())?;
            let than = parsed.first().copied().ok_or("a condition on `$now` has no value")?;
            return match operator {
                O::Before => Ok(Self::Now { holds: Ordering::is_lt, than }),
                O::After => Ok(Self::Now { holds: Ordering::is_gt, than }),
                _ => Err("a condition on `$now` uses neither `before` nor `after`".to_owned()),
            };
        }
        let of = paths.index_of(attribute);
        if let O::Exists | O::NotExists = operator {
            return Ok(Self::Presence { of, expected: operator == O::Exists });
        }
        let test = compiler.test(operator, values)?;
        Ok(Self::Attribute { of, test, negated: is_negated(operator) })
    }

    /// `true` if the condition holds. A missing or null attribute, or a type that the operator does
    /// not support, fails every condition except `not_exists`, even a negated one. If a segment's
    /// condition fails in this way, the context is not in the segment. The result is valid only if
    /// `budget` is not exhausted afterwards.
    pub(super) fn holds(
        &self,
        attributes: &Found<'_, '_>,
        memberships: &Memberships<'_, '_>,
        budget: &EvaluationBudget<'_>,
    ) -> bool {
        let now = memberships.now();
        match self {
            Self::Now { holds, than } => holds(now.cmp(than)),
            Self::Presence { of, expected } => attributes.get(*of).is_some() == *expected,
            Self::Attribute { of, test, negated } => match attributes.get(*of) {
                None => false,
                Some(Attribute::List(items)) => test.matches_any(items, budget) != *negated,
                Some(scalar) => {
                    budget.spend(test.work(scalar))
                        && test.matches(scalar).is_some_and(|matches| matches != *negated)
                }
            },
            Self::Segments { any_of, negated } => {
                any_of.iter().any(|segment| memberships.includes(segment, budget)) != *negated
            }
        }
    }
}

impl Test {
    /// Returns the test of an operator. The error names the value that the operator cannot use.
    pub(super) fn new(
        operator: Operator,
        values: &[String],
        patterns: &Arc<ProjectPatterns>,
    ) -> Result<Self, String> {
        use Operator as O;
        Ok(match operator {
            O::Equals | O::In | O::NotEquals | O::NotIn => Self::OneOf(OneOf::new(values)),
            O::Contains | O::NotContains => Self::Contains(texts(values)),
            O::StartsWith | O::NotStartsWith => Self::StartsWith(texts(values)),
            O::EndsWith | O::NotEndsWith => Self::EndsWith(texts(values)),
            O::Matches | O::NotMatches => {
                Self::Matches(parse_all(values, |value| patterns.pattern(value).ok())?)
            }
            O::GreaterThan => numbers(Ordering::is_gt, values)?,
            O::GreaterThanOrEqual => numbers(Ordering::is_ge, values)?,
            O::LessThan => numbers(Ordering::is_lt, values)?,
            O::LessThanOrEqual => numbers(Ordering::is_le, values)?,
            O::Before => dates(Ordering::is_lt, values)?,
            O::After => dates(Ordering::is_gt, values)?,
            O::SemverEquals => versions(Ordering::is_eq, values)?,
            O::SemverGreaterThan => versions(Ordering::is_gt, values)?,
            O::SemverGreaterThanOrEqual => versions(Ordering::is_ge, values)?,
            O::SemverLessThan => versions(Ordering::is_lt, values)?,
            O::SemverLessThanOrEqual => versions(Ordering::is_le, values)?,
            O::InCidr => Self::AddressIn(parse_all(values, parse_address_range)?),
            O::Exists | O::NotExists => {
                return Err("`exists` and `not_exists` compare no values".to_owned());
            }
            O::InSegment | O::NotInSegment => {
                return Err("a segment condition has an attribute".to_owned());
            }
        })
    }

    /// Returns the approximate worst-case time of [`Self::matches`] in nanoseconds.
    fn work(&self, attribute: &Attribute<'_>) -> u64 {
        const PER_COMPARISON: usize = 10;
        let text = text_of(attribute).map_or("", Text::as_str);
        let work = match self {
            Self::OneOf(_) => FEW_VALUES * PER_COMPARISON,
            Self::Contains(parts) => parts.len().saturating_mul(text.len() + PER_COMPARISON),
            Self::StartsWith(parts) | Self::EndsWith(parts) => parts.len() * PER_COMPARISON,
            Self::Matches(patterns) => {
                let works = patterns.iter().map(|pattern| pattern.work_in(text));
                works.fold(0, usize::saturating_add)
            }
            Self::Number(_, values) => values.len() * PER_COMPARISON,
            Self::Date(_, values) => values.len() * PER_COMPARISON,
            Self::Version(_, values) => values.len() * PER_COMPARISON,
            Self::AddressIn(values) => values.len() * PER_COMPARISON,
        };
        nanoseconds(work)
    }

    /// `true` if one of the attributes matches.
    fn matches_any(&self, items: &[Attribute<'_>], budget: &EvaluationBudget<'_>) -> bool {
        if let Self::Matches(patterns) = self {
            let is_in_any = |pattern: &Pattern| {
                let texts = items.iter().filter_map(text_of).map(Text::as_str);
                pattern.is_in_any(
                    texts.filter(|text| budget.spend(nanoseconds(pattern.work_in(text)))),
                )
            };
            return patterns.iter().any(is_in_any);
        }
        let matches = |item: &Attribute<'_>| self.matches(item) == Some(true);
        items.iter().any(|item| budget.spend(self.work(item)) && matches(item))
    }

    /// Returns whether the attribute matches; `None` if the test does not support its type.
    fn matches(&self, attribute: &Attribute<'_>) -> Option<bool> {
        match self {
            Self::OneOf(values) => values.include(attribute),
            Self::Contains(parts) => any_text(attribute, parts, |text, part| text.contains(part)),
            Self::StartsWith(parts) => {
                any_text(attribute, parts, |text, part| text.starts_with(part))
            }
            Self::EndsWith(parts) => any_text(attribute, parts, |text, part| text.ends_with(part)),
            Self::Matches(patterns) => {
                let text = text_of(attribute)?.as_str();
                Some(patterns.iter().any(|pattern| pattern.is_in(text)))
            }
            Self::Number(holds, values) => {
                let number = match attribute {
                    Attribute::Number(number) => number.exact()?,
                    Attribute::Text(text) => text.number()?,
                    _ => return None,
                };
                Some(values.iter().any(|value| holds(number.cmp(value))))
            }
            Self::Date(holds, values) => match attribute {
                Attribute::Number(number) => {
                    let millis = number.exact()?;
                    Some(values.iter().any(|value| holds(millis.cmp(&value.millis))))
                }
                Attribute::Text(text) => {
                    let date = text.date()?;
                    Some(values.iter().any(|value| holds(date.cmp(&value.timestamp))))
                }
                _ => None,
            },
            Self::Version(holds, values) => {
                let version = text_of(attribute)?.version()?;
                Some(values.iter().any(|value| holds(version.cmp_precedence(value))))
            }
            Self::AddressIn(ranges) => {
                let address = text_of(attribute)?.address()?;
                // Dual-stack sockets write IPv4 addresses as IPv6. Such an address can match ranges
                // of both.
                let canonical = address.to_canonical();
                let holds = |range: &IpNet| range.contains(&address) || range.contains(&canonical);
                Some(ranges.iter().any(holds))
            }
        }
    }
}

fn nanoseconds(work: usize) -> u64 {
    u64::try_from(work).unwrap_or(u64::MAX)
}

/// Size of a compiled condition without its values, in bytes.
const CONDITION_BYTES: usize = 128;
/// Size of a text without its own bytes: its list entry and allocator overhead.
pub(super) const TEXT_BYTES: usize = 48;
/// Additional size of a value that is also a number, in bytes.
const NUMBER_BYTES: usize = 80;

/// Returns the approximate maximum size of compiled conditions in memory, in bytes. Excludes
/// patterns, and counts shared tests for each flag.
pub(super) fn bytes_of(conditions: &[Condition]) -> usize {
    let bytes_of_value = |value: &String| {
        let may_be_number = value.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        TEXT_BYTES + value.len() + if may_be_number { NUMBER_BYTES + value.len() } else { 0 }
    };
    let bytes_of_condition = |it: &Condition| {
        CONDITION_BYTES
            + it.attribute.as_ref().map_or(0, |name| 2 * (TEXT_BYTES + name.len()))
            + it.values.iter().map(bytes_of_value).sum::<usize>()
    };
    conditions.iter().map(bytes_of_condition).sum()
}

/// Maximum number of values for a linear search, which is faster for few values, since most differ
/// in length.
const FEW_VALUES: usize = 16;

/// Values by each type that they can equal, each list sorted.
#[derive(Debug)]
pub(super) struct OneOf {
    texts: Box<[Box<str>]>,
    numbers: Box<[JsonNumber]>,
    includes_true: bool,
    includes_false: bool,
}

impl OneOf {
    fn new(values: &[String]) -> Self {
        let mut texts = texts(values);
        texts.sort_unstable();
        let is_number = |value: &&String| is_number(value);
        let mut numbers: Box<[JsonNumber]> =
            values.iter().filter(is_number).filter_map(|value| JsonNumber::parse(value)).collect();
        numbers.sort_unstable();
        let includes = |name: &str| values.iter().any(|value| value == name);
        let (includes_true, includes_false) = (includes("true"), includes("false"));
        Self { texts, numbers, includes_true, includes_false }
    }

    fn include(&self, attribute: &Attribute<'_>) -> Option<bool> {
        match attribute {
            Attribute::Text(text) => {
                let text = text.as_str();
                Some(if self.texts.len() <= FEW_VALUES {
                    self.texts.iter().any(|value| value.as_ref() == text)
                } else {
                    self.texts.binary_search_by(|value| value.as_ref().cmp(text)).is_ok()
                })
            }
            Attribute::Number(number) => {
                let exact = number.exact()?;
                Some(self.numbers.binary_search(exact).is_ok())
            }
            Attribute::Bool(true) => Some(self.includes_true),
            Attribute::Bool(false) => Some(self.includes_false),
            Attribute::Null | Attribute::List(_) | Attribute::Object(_) => None,
        }
    }
}

fn is_negated(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::NotEquals
            | Operator::NotIn
            | Operator::NotContains
            | Operator::NotStartsWith
            | Operator::NotEndsWith
            | Operator::NotMatches
    )
}

fn text_of<'c, 'a>(attribute: &'c Attribute<'a>) -> Option<&'c Text<'a>> {
    match attribute {
        Attribute::Text(text) => Some(text),
        _ => None,
    }
}

fn any_text(
    attribute: &Attribute<'_>,
    values: &[Box<str>],
    matches: impl Fn(&str, &str) -> bool,
) -> Option<bool> {
    let text = text_of(attribute)?.as_str();
    Some(values.iter().any(|value| matches(text, value)))
}

fn texts(values: &[String]) -> Box<[Box<str>]> {
    values.iter().map(|value| value.as_str().into()).collect()
}

fn numbers(holds: Comparison, values: &[String]) -> Result<Test, String> {
    let number = |value: &str| is_number(value).then(|| JsonNumber::parse(value)).flatten();
    Ok(Test::Number(holds, parse_all(values, number)?))
}

fn dates(holds: Comparison, values: &[String]) -> Result<Test, String> {
    let moment = |value: &str| {
        let timestamp = Timestamp::parse_rfc3339(value).ok()?;
        Some(MomentOfTime { timestamp, millis: JsonNumber::from(timestamp.as_millis()) })
    };
    Ok(Test::Date(holds, parse_all(values, moment)?))
}

fn versions(holds: Comparison, values: &[String]) -> Result<Test, String> {
    Ok(Test::Version(holds, parse_all(values, parse_version)?))
}

fn parse_all<T>(values: &[String], parse: impl Fn(&str) -> Option<T>) -> Result<Box<[T]>, String> {
    let unusable = |value: &str| format!("a condition has the invalid value {value:?}");
    values.iter().map(|value| parse(value).ok_or_else(|| unusable(value))).collect()
}

#[cfg(test)]
mod tests;
