//! Time expressions (`last 24 hours`, `since yesterday`): found so that they can be ignored
//! (rule 13).

use std::ops::Range;

use crate::interpretation::lexicon::Lexicon;
use crate::interpretation::number::Number;
use crate::interpretation::token::{Token, TokenKind};

/// The spans of all time expressions.
pub(crate) fn expressions(
    tokens: &[Token],
    numbers: &[Number],
    lexicon: &Lexicon,
) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match end(tokens, at, numbers, lexicon) {
            Some(end) if end > at => {
                found.push(at..end);
                at = end;
            }
            _ => at += 1,
        }
    }
    found
}

fn word(tokens: &[Token], at: usize) -> &str {
    tokens
        .get(at)
        .filter(|token| token.kind == TokenKind::Word)
        .map_or("", |token| token.folded.as_str())
}

fn is_span(word: &str, lexicon: &Lexicon) -> bool {
    word.len() > 2 && lexicon.unit(word).is_some_and(|unit| unit.dimension == "time")
        || matches!(
            word,
            "night"
                | "morning"
                | "afternoon"
                | "evening"
                | "weekend"
                | "quarter"
                | "fortnight"
                | "sprint"
        )
}

fn is_day(word: &str) -> bool {
    matches!(
        word,
        "yesterday"
            | "today"
            | "tonight"
            | "tomorrow"
            | "monday"
            | "tuesday"
            | "wednesday"
            | "thursday"
            | "friday"
            | "saturday"
            | "sunday"
            | "midnight"
            | "noon"
            | "lately"
            | "recently"
    )
}

fn is_always_time(word: &str) -> bool {
    matches!(word, "yesterday" | "today" | "tonight" | "tomorrow" | "lately" | "recently")
}

fn end(tokens: &[Token], at: usize, numbers: &[Number], lexicon: &Lexicon) -> Option<usize> {
    let number_at = |at: usize| numbers.iter().find(|number| number.tokens.start == at);
    let mut cursor = at;
    // "over the last", "in the past", "since"
    let lead = matches!(
        word(tokens, cursor),
        "in" | "over"
            | "during"
            | "for"
            | "within"
            | "from"
            | "since"
            | "before"
            | "after"
            | "until"
            | "on"
            | "at"
            | "between"
            | "by"
    );
    let since = matches!(
        word(tokens, cursor),
        "since" | "until" | "before" | "after" | "on" | "by" | "from" | "at"
    );
    if lead {
        cursor += 1;
        if word(tokens, cursor) == "the" {
            cursor += 1;
        }
    }
    let relative =
        matches!(word(tokens, cursor), "last" | "past" | "previous" | "this" | "next" | "current");
    if relative {
        cursor += 1;
        if let Some(number) = number_at(cursor) {
            let timed = number.unit.is_some_and(|unit| unit.dimension == "time");
            return (timed).then_some(number.tokens.end).or_else(|| {
                is_span(word(tokens, number.tokens.end), lexicon).then_some(number.tokens.end + 1)
            });
        }
        if word(tokens, cursor) == "few" || word(tokens, cursor) == "couple" {
            cursor += 1;
            if word(tokens, cursor) == "of" {
                cursor += 1;
            }
        }
        return (is_span(word(tokens, cursor), lexicon) || is_day(word(tokens, cursor)))
            .then_some(cursor + 1);
    }
    if lead && since && is_day(word(tokens, cursor)) || is_always_time(word(tokens, cursor)) {
        let more = word(tokens, cursor + 1);
        return Some(if matches!(more, "morning" | "night" | "evening" | "afternoon") {
            cursor + 2
        } else {
            cursor + 1
        });
    }
    if let Some(number) = number_at(cursor) {
        let next = word(tokens, number.tokens.end);
        let timed = number.unit.is_some_and(|unit| unit.dimension == "time");
        if next == "ago" && timed {
            return Some(number.tokens.end + 1);
        }
        if lead && matches!(next, "am" | "pm" | "oclock") {
            return Some(number.tokens.end + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpretation::number::numbers;
    use crate::interpretation::token::tokenise;

    fn ignored(query: &str) -> usize {
        let tokens = tokenise(query);
        let lexicon = Lexicon::get();
        expressions(&tokens, &numbers(&tokens, lexicon), lexicon).iter().map(Range::len).sum()
    }

    #[test]
    fn finds_time_expressions() {
        for (query, tokens) in [
            ("last 24 hours", 3),
            ("since yesterday", 2),
            ("over the past two weeks", 5),
            ("5 minutes ago", 3),
            ("last night", 2),
            ("this week", 2),
        ] {
            assert_eq!(ignored(query), tokens, "{query}");
        }
    }

    #[test]
    fn leaves_measures_alone() {
        for query in ["over 5 minutes", "more than two hours", "since 2.4.0"] {
            assert_eq!(ignored(query), 0, "{query}");
        }
    }
}
