//! Stage 8: the current filters, edited by what the query says (rule 1).

use crate::condition::{Condition, Findings};
use crate::model::{Category, Filter, Kind, Request};

/// The new filter list, before validation.
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

/// Whether a current filter outlives the query's removals.
fn stays(findings: &Findings, filter: &Filter, category: usize) -> bool {
    let chosen = if findings.reset { &findings.kept } else { &findings.removals };
    chosen.iter().any(|it| it.has(category, filter)) == findings.reset
}

/// Rule `correction`: of the category that is said anew after a slip, what stands before it is
/// dropped.
fn correct(findings: &mut Findings) {
    for &slip in &findings.corrections {
        let after = findings.conditions.iter().filter(|condition| condition.at > slip);
        if let Some(category) = after.min_by_key(|it| it.at).map(|it| it.category) {
            findings.conditions.retain(|it| it.at > slip || it.category != category);
        }
    }
}

/// A condition and its own denial cannot both be meant: of a boolean, both values mean any; of
/// others the last one counts.
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
