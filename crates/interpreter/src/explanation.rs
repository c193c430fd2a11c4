//! The words of the query that led to filters, and the words that led to nothing.

use std::ops::Range;

use crate::condition::Findings;
use crate::context::{ParseContext, Role};
use crate::cue::{Class, CueSet};
use crate::model::{Filter, Understood};
use crate::rules::RuleMatch;
use crate::word::Word;

/// Cues that count as ignored if they govern nothing.
const GOVERNS: CueSet = cues![Not, No, Except, Neither, AfterNot, Remove, Keep, Unexclude];

/// Returns the understood and the ignored parts, from the rules that matched and their cues.
pub(crate) fn explain(
    context: &ParseContext<'_>,
    findings: &Findings,
) -> (Vec<Understood>, Vec<Range<usize>>) {
    let mut parts: Vec<(Range<usize>, Vec<Filter>)> = Vec::new();
    let mut rest_on = |elements: Range<usize>, filters: Vec<Filter>| match parts
        .iter_mut()
        .find(|part| part.0 == elements)
    {
        Some((_, known)) => known.extend(filters),
        None => parts.push((elements, filters)),
    };
    let sense = |at: usize| findings.senses.get(at);
    for fired in &findings.trace {
        let governor = |at: usize| sense(at)?.governor.map(|governor| governor.at);
        rest_on(fired.elements.clone(), fired.filters.clone());
        for cue in fired.elements.clone().filter_map(governor).chain(fired.besides) {
            if !fired.elements.contains(&cue) {
                rest_on(cue..cue + 1, fired.filters.clone());
            }
        }
    }
    let of = |owns: &dyn Fn(&RuleMatch) -> bool| -> Vec<Filter> {
        findings.trace.iter().filter(|it| owns(it)).flat_map(|it| it.filters.clone()).collect()
    };
    let covered = |at: usize| findings.trace.iter().any(|fired| fired.elements.contains(&at));
    for at in (0..context.elements.len()).filter(|&at| !covered(at)) {
        if let Some(owner) = sense(at).and_then(|sense| sense.part_of) {
            rest_on(
                at..at + 1,
                of(&|it| it.elements.contains(&owner) || it.besides == Some(owner)),
            );
        } else if let Role::Context(category) = *context.role(at) {
            let id = context.catalog.category(category).map(|facts| facts.id.as_str());
            let own = |filter: &Filter| id == Some(filter.category_id.as_str());
            rest_on(at..at + 1, of(&|fired| fired.filters.iter().any(own)));
        }
    }
    let read = |at: usize| parts.iter().any(|part| part.0.contains(&at));
    let unread =
        (0..context.elements.len()).filter(|&at| !read(at) && carries_meaning(context, at));
    let ignored = unread.map(|at| context.bytes(at..at + 1)).collect();
    parts.sort_by_key(|part| (part.0.start, part.0.end));
    let understand = |(elements, filters)| Understood { span: context.bytes(elements), filters };
    let understood = parts.into_iter().map(understand);
    (understood.collect(), ignored)
}

/// `true` if an element is more than a function word.
fn carries_meaning(context: &ParseContext<'_>, at: usize) -> bool {
    let Some(element) = context.element(at) else { return false };
    let word = context.word(at);
    match context.role(at) {
        Role::Values { .. } => true,
        Role::Label => {
            !element.is(Class::Generic) || context.labels(at).iter().any(|label| label.full)
        }
        Role::Context(_) => false,
        Role::Other if let Some(number) = &element.number => !number.weak,
        Role::Other if element.quoted || element.time => true,
        Role::Other if element.is_word() => {
            word.len() > 1
                && word.chars().any(char::is_alphanumeric)
                && !context.says(at, Word::Function)
                && !context.says(at, Word::Article)
        }
        Role::Other => element.is_any(GOVERNS) && !context.is_idle(at),
    }
}
