//! Parses the conditions in requests.

use shared::json::{Fields, Json, JsonPath, ViolationCode, Violations, array, text};

use super::{Condition, MAX_VALUES, Operator, parse_attribute, parse_value};

/// Parses a condition. If `too_many_patterns`, which the caller has noted, compiles no pattern.
pub(crate) fn read_condition(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    too_many_patterns: bool,
    violations: &mut Violations,
) -> Option<Condition> {
    Fields::read(json, path, violations, |fields, violations| {
        // The attribute is checked first, but the operator decides whether it is required.
        let attribute = match operator_of(json) {
            Some(operator) if operator.is_about_segments() => {
                fields.optional("attribute", violations, reject_attribute).or_default()
            }
            _ => fields.required("attribute", violations, text(parse_attribute)).map(Some),
        };
        let operator = fields.required("operator", violations, text(Operator::parse));
        let is_pattern = operator.is_some_and(Operator::takes_patterns);
        let checked_as = operator.filter(|_| !(is_pattern && too_many_patterns));
        let values = fields.optional(
            "values",
            violations,
            array(MAX_VALUES, |json, path: &JsonPath<'_>, violations| {
                text(|value| parse_value(checked_as, value))(json, path, violations)
            }),
        );
        let count = match fields.get("values") {
            None | Some(Json::Null) => Some(0),
            Some(Json::Array(values)) if values.len() <= MAX_VALUES => Some(values.len()),
            Some(_) => None,
        };
        if let (Some(operator), Some(count)) = (operator, count) {
            operator.check_count(count, &path.member("values"), violations);
        }
        if let (Some(operator), Some(Some(attribute))) = (operator, &attribute) {
            operator.check_attribute(attribute, &path.member("attribute"), violations);
        }
        Some(Condition { attribute: attribute?, operator: operator?, values: values.or_default()? })
    })
}

/// Notes the violation of an attribute for an operator about segments.
fn reject_attribute<T>(
    _: &Json<'_>,
    path: &JsonPath<'_>,
    violations: &mut Violations,
) -> Option<T> {
    let message = "`in_segment` and `not_in_segment` take no attribute; omit it";
    violations.note(path, ViolationCode::InvalidValue, message);
    None
}

/// Returns the number of regular expressions in conditions.
pub(crate) fn count_patterns<'j, 'a: 'j>(conditions: impl Iterator<Item = &'j Json<'a>>) -> usize {
    let takes_patterns =
        |condition: &&Json<'_>| operator_of(condition).is_some_and(Operator::takes_patterns);
    conditions.filter(takes_patterns).map(|it| items(it.member("values")).len()).sum()
}

/// Returns the operator of a condition, if it is valid.
pub(crate) fn operator_of(condition: &Json<'_>) -> Option<Operator> {
    Operator::parse(condition.member_text("operator")?).ok()
}

/// Returns the items of a list; none if the value is not a list.
pub(crate) fn items<'j, 'a>(json: Option<&'j Json<'a>>) -> &'j [Json<'a>] {
    match json {
        Some(Json::Array(items)) => items,
        _ => &[],
    }
}
