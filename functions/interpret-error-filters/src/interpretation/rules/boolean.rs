//! What a boolean category is said to be (rule 5).

use super::{Effect, Reading, Rule, View};
use crate::interpretation::condition::Removal;
use crate::interpretation::context::Role;
use crate::interpretation::cue::Class;
use crate::interpretation::model::Operator;
use crate::interpretation::weights;

pub(crate) static RULE: Rule = Rule {
    name: "boolean",
    read,
    examples: &[
        ("handled", "", "handled is true"),
        ("unhandled", "", "handled is false"),
        ("licence not expired", "", "licence is false"),
        ("camera not allowed", "", "camera is false"),
        ("camera is not permitted", "", "camera is false"),
        ("not organic", "", "organic is false"),
        ("consent missing", "", "consent is false"),
        ("renewal not allowed", "", "renewable is false"),
        ("out of warranty", "", "warranty is false"),
        ("firefox in kids mode", "", "browser is Firefox; kids is true"),
        ("automatic updates on", "", "updates is false"),
        ("handled or not", "handled is true", ""),
        ("handled:no", "", "handled is false"),
    ],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let scene = view.scene;
    let Role::Label(labels) = scene.role(at) else { return None };
    let label = scene.boolean_label(labels)?;
    let said = scene.boolean_said(at, label)?;
    let category = label.category;
    if said_again(view, at, category) {
        return None;
    }
    let value = said.value != view.sense(at).is_denied();
    let effect = if said.either {
        Effect::Remove(Removal::of(category))
    } else {
        Effect::State { at, category, operator: Operator::Is, value: value.to_string() }
    };
    Some(Reading::new(at..said.end, vec![effect], weights::rule::BOOLEAN))
}

/// Two words of one label, "voice chat ... muted", are one mention: the last one tells.
fn said_again(view: &View<'_>, at: usize, category: usize) -> bool {
    let scene = view.scene;
    let again = (at + 1..=at + 3).find(|&next| {
        let Role::Label(labels) = scene.role(next) else { return false };
        let same = scene.boolean_label(labels).filter(|label| label.category == category);
        same.is_some_and(|label| scene.boolean_said(next, label).is_some())
    });
    again.is_some_and(|next| {
        (at + 1..next).all(|between| !scene.is_any(between, &[Class::And, Class::Or]))
            && view.sense(next).part_of.is_none()
    })
}
