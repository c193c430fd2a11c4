//! Stage 8: the current filters, edited by what the query says (rule 1).

use crate::interpretation::condition::{Condition, Findings};
use crate::interpretation::model::{Category, Filter, Kind, Operator, Request};

/// The new filter list, before validation.
pub(crate) fn assemble(request: &Request, mut findings: Findings) -> Vec<Filter> {
    correct(&mut findings);
    settle(&mut findings.conditions);
    findings.conditions.sort_by_key(|condition| condition.at);
    let replaced: Vec<&str> = findings
        .conditions
        .iter()
        .filter(|condition| !condition.adds)
        .filter_map(|condition| id(request, condition.category))
        .collect();
    let flips = findings.flips && findings.conditions.is_empty() && findings.removals.is_empty();
    let mut filters: Vec<Filter> = Vec::new();
    for filter in &request.current_filters {
        let Some(category) =
            request.categories.iter().position(|category| category.id == filter.category_id)
        else {
            filters.push(filter.clone());
            continue;
        };
        if stays(&findings, filter, category) && !replaced.contains(&filter.category_id.as_str()) {
            let only = request.current_filters.len() == 1;
            filters.push(if flips && only {
                flipped(filter, request.categories.get(category))
            } else {
                filter.clone()
            });
        }
    }
    for condition in findings.conditions {
        if let Some(id) = id(request, condition.category) {
            filters.push(Filter {
                category_id: id.to_owned(),
                operator: condition.operator,
                value: condition.value,
            });
        }
    }
    filters
}

fn id(request: &Request, category: usize) -> Option<&str> {
    request.categories.get(category).map(|facts| facts.id.as_str())
}

fn flipped(filter: &Filter, category: Option<&Category>) -> Filter {
    if category.is_some_and(|category| category.kind == Kind::Boolean) {
        let value = if filter.value == "true" { "false" } else { "true" };
        return Filter { value: value.to_owned(), ..filter.clone() };
    }
    Filter { operator: filter.operator.negated(), ..filter.clone() }
}

/// Whether a current filter outlives the query's removals.
fn stays(findings: &Findings, filter: &Filter, category: usize) -> bool {
    if findings.reset {
        return findings.kept.iter().any(|(kept, value)| {
            *kept == category && value.as_ref().is_none_or(|value| *value == filter.value)
        });
    }
    !findings.removals.iter().any(|removal| {
        removal.category == category
            && removal.value.as_ref().is_none_or(|value| *value == filter.value)
            && (!removal.negative_only || filter.operator.is_negative())
    })
}

/// Rule `correction`: of the category that is said anew after a slip, what stands before it is
/// dropped.
fn correct(findings: &mut Findings) {
    for &marker in &findings.corrections {
        let Some(category) = findings
            .conditions
            .iter()
            .filter(|condition| condition.at > marker)
            .min_by_key(|condition| condition.at)
            .map(|condition| condition.category)
        else {
            continue;
        };
        findings
            .conditions
            .retain(|condition| condition.at > marker || condition.category != category);
    }
}

/// A condition and its own denial cannot both be meant: of a boolean, both values mean any; of
/// others the last one counts.
fn settle(conditions: &mut Vec<Condition>) {
    let all = conditions.clone();
    conditions.retain(|condition| {
        !all.iter().any(|other| {
            other.category == condition.category
                && other.at > condition.at
                && other.value == condition.value
                && other.operator == condition.operator.negated()
                && !matches!(
                    condition.operator,
                    Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte
                )
        })
    });
}
