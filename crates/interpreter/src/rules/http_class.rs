//! A class of HTTP statuses, of a numeric category (rule 6): from its first to its last.

use super::{Effect, Operator, Reading, Rule, View, Word};

pub(crate) static RULE: Rule = Rule {
    name: "http-class",
    read,
    examples: &[("response 5xx", "", "response gte 500; response lte 599")],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let scene = view.scene;
    let category = scene.numeric_of(Word::Status)?;
    let (digit, rest) = scene.chunk_at(at).split_at_checked(1)?;
    let class: u32 = digit.parse().ok().filter(|class| (1..=5).contains(class))?;
    if !rest.eq_ignore_ascii_case("xx") || !scene.is_other(at) {
        return None;
    }
    let bounds = [(Operator::Gte, class * 100), (Operator::Lte, class * 100 + 99)];
    let state = |(operator, value): (Operator, u32)| {
        Effect::state(at, category, operator, value.to_string())
    };
    let besides = scene.before_copula(at).filter(|&it| scene.is_label_of(it, category));
    Some(Reading { besides, ..Reading::new(at..scene.chunk_end(at), bounds.map(state)) })
}
