//! The last stage, and the check of the model fallback: passes only filters that are valid against
//! the request. Current filters pass unchanged, even if their category is unknown.

use std::collections::HashSet;

use crate::decimal::Decimal;
use crate::model::{Category, Filter, Kind, MAX_VALUE_CHARACTERS, Operator, Request};

/// Returns the filters that are valid against the request, in order and without duplicates. A
/// filter passes without further checks if it equals a current filter.
pub fn valid_filters(request: &Request, filters: Vec<Filter>) -> Vec<Filter> {
    let mut seen = HashSet::with_capacity(filters.len());
    filters
        .into_iter()
        .filter_map(|filter| validated(request, filter))
        .filter(|filter| seen.insert(filter.clone()))
        .collect()
}

fn validated(request: &Request, filter: Filter) -> Option<Filter> {
    let category = request.categories.iter().find(|category| category.id == filter.category_id);
    if request.current_filters.contains(&filter) {
        return Some(filter);
    }
    let value = valid_value(category?, filter.operator, &filter.value)?;
    Some(Filter { value, ..filter })
}

/// Returns the value as the category spells it, if category and operator allow it.
fn valid_value(category: &Category, operator: Operator, value: &str) -> Option<String> {
    let open = category.values.is_empty() && is_text(value);
    let valid = match (category.kind, operator) {
        (Kind::Numeric, operator)
            if operator.is_bound() || matches!(operator, Operator::Is | Operator::IsNot) =>
        {
            return Decimal::parse(value).map(|number| number.to_string());
        }
        (Kind::Boolean, Operator::Is) => matches!(value, "true" | "false"),
        (Kind::Text | Kind::Array, Operator::IsSet | Operator::IsNotSet) => value.is_empty(),
        (Kind::Text, Operator::Is | Operator::IsNot)
        | (Kind::Array, Operator::Contains | Operator::NotContains) => {
            open || category.values.iter().any(|known| known == value)
        }
        (Kind::Text, Operator::Contains | Operator::NotContains) => open,
        _ => false,
    };
    valid.then(|| value.to_owned())
}

/// `true` if a value of an open category can be sent back as a current filter.
fn is_text(value: &str) -> bool {
    !value.is_empty() && !value.contains('\0') && value.chars().count() <= MAX_VALUE_CHARACTERS
}
