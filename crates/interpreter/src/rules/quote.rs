//! A quoted text that nothing else reads is looked for in the message (rule 8).

use super::{Class, Effect, Reading, Rule, View};

pub(crate) static RULE: Rule = Rule {
    name: "quote",
    read,
    examples: &[
        ("\"out of memory\" on firefox", "", "message contains out of memory; browser is Firefox"),
        ("not \"out of memory\"", "", "message not_contains out of memory"),
        ("not firefox or \"timeout\"", "", "browser is_not Firefox; message not_contains timeout"),
        ("no errors with \"timeout\"", "", "message not_contains timeout"),
    ],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let scene = view.scene;
    let category = scene.message_category().filter(|_| scene.is_quoted(at) && scene.is_free(at))?;
    let exact = scene.follows_any(at, &[Class::Eq]);
    let operator = scene.text_operator(category, exact, false);
    let texts = scene.texts(at);
    let end = texts.last()?.0.end;
    Some(Reading::new(at..end, Effect::state_texts(category, operator, texts)))
}
