//! A class of HTTP statuses, of a numeric category (rule 6): from its first to its last.

use super::{Effect, Reading, Rule, View};
use crate::interpretation::context::Role;
use crate::interpretation::model::Operator;
use crate::interpretation::weights;
use crate::interpretation::word::Word;

pub(crate) static RULE: Rule = Rule {
    name: "http-class",
    read,
    examples: &[("response 5xx", "", "response gte 500; response lte 599")],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let scene = view.scene;
    let category = scene.numeric_of(Word::Status)?;
    let chunk = scene.chunk_at(at);
    let (digit, rest) = chunk.split_at_checked(1)?;
    let class: u32 = digit.parse().ok().filter(|class| (1..=5).contains(class))?;
    let named = rest.eq_ignore_ascii_case("xx") && matches!(scene.role(at), Role::Other);
    let end = at + (at..scene.elements.len()).take_while(|&it| scene.is_in_chunk(at, it)).count();
    let state = |operator: Operator, value: u32| Effect::State {
        at,
        category,
        operator,
        value: value.to_string(),
    };
    let effects = vec![state(Operator::Gte, class * 100), state(Operator::Lte, class * 100 + 99)];
    named.then_some(Reading::new(at..end, effects, weights::rule::NUMBER))
}
