//! A class of HTTP statuses, as a range of a numeric category (rule 6).

use super::{Effect, Operator, Reading, View, Word};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let context = view.context;
    let category = context.numeric_of(Word::Status)?;
    let (digit, rest) = context.chunk_at(at).split_at_checked(1)?;
    let class: u32 = digit.parse().ok().filter(|class| (1..=5).contains(class))?;
    if !rest.eq_ignore_ascii_case("xx") || !context.is_other(at) {
        return None;
    }
    let bounds = [(Operator::Gte, class * 100), (Operator::Lte, class * 100 + 99)];
    let state = |(operator, value): (Operator, u32)| {
        Effect::state(at, category, operator, value.to_string())
    };
    let besides = context.before_copula(at).filter(|&it| context.is_label_of(it, category));
    Some(Reading { besides, ..Reading::new(at..context.chunk_end(at), bounds.map(state)) })
}
