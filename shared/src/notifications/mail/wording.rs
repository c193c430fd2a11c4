//! What mails call what happened.

use crate::projects::happening::HappeningKind;

/// How a kind is told of.
pub(super) struct Wording {
    /// Before the place and the title of the one thing that happened: `New error`.
    pub(super) one: &'static str,
    /// After the number of several: `new errors`.
    pub(super) many: &'static str,
    /// What the weight counts, if it says anything.
    pub(super) weight: Option<(&'static str, &'static str)>,
}

pub(super) fn wording(kind: HappeningKind) -> Wording {
    let (one, many, weight) = match kind {
        HappeningKind::ErrorCreated => ("New error", "new errors", None),
        HappeningKind::ErrorReopened => ("Back again", "errors are back", None),
        HappeningKind::InsightCreated => ("New insight", "new insights", Some(SESSIONS)),
        HappeningKind::FlagChanged => ("Flag changed", "changes of flags", None),
        HappeningKind::ApiKeyCreated => ("New API key", "new API keys", None),
    };
    Wording { one, many, weight }
}

const SESSIONS: (&str, &str) = ("session", "sessions");

/// A number of things, with the word for one or several.
pub(super) fn counted(count: u64, (one, many): (&str, &str)) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// A number with commas between thousands.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas_and_their_word() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(counted(1, SESSIONS), "1 session");
        assert_eq!(counted(1_000, SESSIONS), "1,000 sessions");
    }
}
