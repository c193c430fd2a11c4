//! Time expressions (`last 24 hours`, `since yesterday`): found so that they can be ignored
//! (rule 13).

use std::ops::Range;

use crate::interpretation::lexicon::Lexicon;
use crate::interpretation::number::Number;
use crate::interpretation::token::{Token, TokenKind};
use crate::interpretation::word::Word;

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

/// The dimension of units of time, as `data/en/units.txt` names it.
const TIME: &str = "time";

fn is_span(word: &str, lexicon: &Lexicon) -> bool {
    word.len() > 2 && lexicon.unit(word).is_some_and(|unit| unit.dimension == TIME)
        || lexicon.is(word, Word::Span)
}

/// A time of day: its end, and whether it cannot be a mere number (`9:30`, `6 pm`, not `6`).
fn clock(tokens: &[Token], at: usize, lexicon: &Lexicon) -> Option<(usize, bool)> {
    let digits = |at: usize| {
        tokens
            .get(at)
            .filter(|token| token.kind == TokenKind::Number)
            .filter(|token| token.folded.len() <= 2)
            .and_then(|token| token.folded.parse::<u8>().ok())
    };
    digits(at).filter(|hour| *hour <= 24)?;
    let colon = tokens.get(at + 1).is_some_and(|token| token.is(":") && token.glued);
    let minutes = colon && digits(at + 2).is_some_and(|minute| minute < 60);
    let end = if minutes { at + 3 } else { at + 1 };
    // "pm", "p.m.", "o'clock": letters with signs between them.
    let mut spelt = String::new();
    let mut mark = None;
    let signs = |at: usize| tokens.get(at).is_some_and(|token| token.is(".") || token.is("'"));
    let mut rest = end;
    while spelt.len() < 6 && (signs(rest) && rest > end || !word(tokens, rest).is_empty()) {
        if !signs(rest) {
            spelt.push_str(word(tokens, rest));
        }
        rest += 1;
        if lexicon.is(&spelt, Word::Clock) {
            mark = Some(rest);
            break;
        }
    }
    Some((mark.unwrap_or(end), minutes || mark.is_some()))
}

/// From one time of day to another, `6 and 9 pm`: the end of the second.
fn clock_range(tokens: &[Token], at: usize, lexicon: &Lexicon) -> Option<usize> {
    let (first_end, first_sure) = clock(tokens, at, lexicon)?;
    let joins = tokens
        .get(first_end)
        .is_some_and(|token| token.is("-") || lexicon.is(&token.folded, Word::ToTime));
    let (end, sure) = clock(tokens, first_end + 1, lexicon).filter(|_| joins)?;
    (first_sure || sure).then_some(end)
}

fn end(tokens: &[Token], at: usize, numbers: &[Number], lexicon: &Lexicon) -> Option<usize> {
    let number_at = |at: usize| numbers.iter().find(|number| number.tokens.start == at);
    let mut cursor = at;
    // "over the last", "in the past", "since"
    let says = |at: usize, class: Word| lexicon.is(word(tokens, at), class);
    let lead = says(cursor, Word::BeforeTime);
    let since = says(cursor, Word::FromTime);
    if lead {
        cursor += 1;
        if says(cursor, Word::Definite) {
            cursor += 1;
        }
    }
    let relative = says(cursor, Word::Relative);
    if relative {
        cursor += 1;
        if let Some(number) = number_at(cursor) {
            let timed = number.unit.is_some_and(|unit| unit.dimension == TIME);
            return (timed).then_some(number.tokens.end).or_else(|| {
                is_span(word(tokens, number.tokens.end), lexicon).then_some(number.tokens.end + 1)
            });
        }
        // "the last couple of days"
        if says(cursor, Word::Few) {
            cursor += 1;
            cursor += usize::from(says(cursor, Word::OfFew));
        }
        return (is_span(word(tokens, cursor), lexicon) || says(cursor, Word::Day))
            .then_some(cursor + 1);
    }
    if lead && since && says(cursor, Word::Day) || says(cursor, Word::AlwaysTime) {
        return Some(cursor + 1 + usize::from(says(cursor + 1, Word::PartOfDay)));
    }
    if let Some(end) = clock_range(tokens, cursor, lexicon) {
        return Some(end);
    }
    if let Some((end, true)) = clock(tokens, cursor, lexicon).filter(|_| lead) {
        return Some(end);
    }
    if let Some(number) = number_at(cursor) {
        let timed = number.unit.is_some_and(|unit| unit.dimension == TIME);
        if says(number.tokens.end, Word::Ago) && timed {
            return Some(number.tokens.end + 1);
        }
        if lead && says(number.tokens.end, Word::Clock) {
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
            ("between 6 and 9 pm", 5),
            ("from 10pm to 6am", 6),
            ("before 9:30 am", 5),
            ("at 14:00", 4),
            ("around 5 o'clock", 3),
            ("6-9pm", 4),
        ] {
            assert_eq!(ignored(query), tokens, "{query}");
        }
    }

    #[test]
    fn leaves_measures_alone() {
        for query in
            ["over 5 minutes", "more than two hours", "since 2.4.0", "from 6 to 9", "ratio 16:9"]
        {
            assert_eq!(ignored(query), 0, "{query}");
        }
    }
}
