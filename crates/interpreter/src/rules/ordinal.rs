//! A place in a sequence: the value of a numeric category (rule 6).

use super::{Effect, Operator, Reading, View};
use crate::number::NumberWord;

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let context = view.context;
    let place = context.lexicon.number_word(&context.chunk_at(at).to_lowercase());
    let Some(NumberWord::Ordinal(place)) = place else { return None };
    let label = context.chunk_end(at);
    let named = context.as_labels(label).iter().map(|label| label.category);
    let category =
        named.into_iter().find(|&it| context.catalog.kind(it) == super::Kind::Numeric)?;
    let suffix = context.suffix(label + 1);
    let operator = suffix.unwrap_or(Operator::Is);
    let effect = Effect::state(at, category, operator, place.to_string());
    Some(Reading::new(at..label + 1 + usize::from(suffix.is_some()), [effect]))
}
