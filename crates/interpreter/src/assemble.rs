//! Stage 8: applies the findings to the current filters (rule 1).

use crate::condition::{Condition, Findings};
use crate::model::{Category, Filter, Kind, Request};

/// Returns the new filter list, before validation.
pub(crate) fn assemble(request: &Request, mut findings: Findings) -> Vec<Filter> {
    correct(&mut findings);
    settle(&mut findings.conditions);
    findings.conditions.sort_by_key(|condition| condition.at);
    let replaces = |category: usize| {
        findings.conditions.iter().any(|stated| stated.category == category && !stated.adds)
    };
    let flips = findings.flips
        && findings.conditions.is_empty()
        && findings.removals.is_empty()
        && request.current_filters.len() == 1;
    let mut filters: Vec<Filter> = Vec::new();
    for filter in &request.current_filters {
        let is_own = |category: &Category| category.id == filter.category_id;
        match request.categories.iter().position(is_own) {
            Some(at) if replaces(at) || !stays(&findings, filter, at) => {}
            Some(at) if flips => filters.push(flipped(filter, request.categories.get(at))),
            _ => filters.push(filter.clone()),
        }
    }
    filters.extend(findings.conditions.iter().filter_map(|condition| condition.filter(request)));
    filters
}

fn flipped(filter: &Filter, category: Option<&Category>) -> Filter {
    if category.is_some_and(|category| category.kind == Kind::Boolean) {
        let value = if filter.value == "true" { "false" } else { "true" };
        return Filter { value: value.to_owned(), ..filter.clone() };
    }
    Filter { operator: filter.operator.negated(), ..filter.clone() }
}

/// `true` if the query does not remove a current filter.
fn stays(findings: &Findings, filter: &Filter, category: usize) -> bool {
    let chosen = if findings.reset { &findings.kept } else { &findings.removals };
    chosen.iter().any(|it| it.has(category, filter)) == findings.reset
}

/// Rule `correction`: drops the conditions before a correction, in the category that follows it.
fn correct(findings: &mut Findings) {
    for &slip in &findings.corrections {
        let after = findings.conditions.iter().filter(|condition| condition.at > slip);
        if let Some(category) = after.min_by_key(|it| it.at).map(|it| it.category) {
            findings.conditions.retain(|it| it.at > slip || it.category != category);
        }
    }
}

/// Drops a condition that a later one contradicts. `is true` and `is false` of a boolean both stay:
/// together they match any value.
fn settle(conditions: &mut Vec<Condition>) {
    let all = conditions.clone();
    conditions.retain(|condition| {
        let denied = |other: &Condition| {
            other.category == condition.category
                && other.at > condition.at
                && other.value == condition.value
                && other.operator == condition.operator.negated()
        };
        condition.operator.is_bound() || !all.iter().any(denied)
    });
}
