//! The value of a boolean category (rule 5).

use super::{Effect, Operator, Reading, Selection, View};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let said = view.context.boolean_said(at)?;
    let category = said.category;
    if said_again(view, at, category) {
        return None;
    }
    let value = said.value != view.sense(at).is_denied();
    let effect = if said.either {
        Effect::Remove(Selection::of(category))
    } else {
        Effect::state(at, category, Operator::Is, value.to_string())
    };
    Some(Reading::new(at..said.end, [effect]))
}

/// `true` if a later word of the same label follows, which decides: "voice chat ... muted".
fn said_again(view: &View<'_>, at: usize, category: usize) -> bool {
    let context = view.context;
    let same = |next: &usize| context.boolean_said(*next).is_some_and(|it| it.category == category);
    let again = (at + 1..=at + 3).find(same);
    again.is_some_and(|next| {
        (at + 1..next).all(|between| !context.is_any(between, cues![And, Or]))
            && view.sense(next).part_of.is_none()
    })
}
