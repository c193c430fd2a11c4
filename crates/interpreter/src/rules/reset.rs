//! Removes all filters, except those named after "except".

use super::{Effect, Reading, Rule, View};

pub(crate) static RULE: Rule = Rule {
    name: "reset",
    read,
    examples: &[
        ("start over with firefox", "os is iOS; users gt 5", "browser is Firefox"),
        ("start over pls. windows 11", "users gt 5", "os is Windows 11"),
        ("clear everything but the os", "os is iOS; users gt 5", "os is iOS"),
        ("reset", "os is iOS; users gt 5", ""),
    ],
};

fn read(view: &View<'_>, at: usize) -> Option<Reading> {
    let end = view.context.reset_end(at).filter(|_| !view.context.is_forbidden(at))?;
    Some(Reading::new(at..end, [Effect::Reset]))
}
