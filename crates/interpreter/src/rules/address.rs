//! A path or an email address alone, for the only open category of that type (rule 8).

use super::{Effect, Operator, ParseContext, Reading, View, Word};

pub(super) fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let context = view.context;
    if context.chunk_start(at) != at || is_pasted(context) {
        return None;
    }
    let value = context.chunk_from(at);
    let path = value.strip_prefix('/').is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
    let mail = value.split_once('@').is_some_and(|(name, host)| {
        !name.is_empty() && host.contains('.') && !host.contains(['@', '/'])
    });
    let class = if path { Word::Path } else { Word::Address };
    let category = context.only_open_category(class).filter(|_| path || mail)?;
    let effect = Effect::state(at, category, Operator::Contains, value);
    Some(Reading::new(at..context.chunk_end(at), [effect]))
}

/// `true` if the query is a fragment of an error: `TypeError: x is undefined on /cart`.
pub(super) fn is_pasted(context: &ParseContext<'_>) -> bool {
    context.query.split_whitespace().any(|word| {
        word.strip_suffix(':').is_some_and(|name| name.chars().skip(1).any(char::is_uppercase))
    })
}
