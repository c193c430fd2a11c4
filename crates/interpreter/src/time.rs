//! Time expressions (`last 24 hours`, `since yesterday`), which are found to be ignored (rule 13).

use std::ops::Range;

use crate::lexicon::Unit;
use crate::number::Number;
use crate::token::{TokenKind, Tokens};
use crate::word::Word;

impl Unit {
    pub(crate) fn is_time(&self) -> bool {
        self.dimension == "time"
    }
}

impl Tokens {
    /// Returns the spans of all time expressions.
    pub(crate) fn times(&self, numbers: &[Number]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.len() {
            let end = self.time_end(at, numbers).filter(|end| *end > at);
            found.extend(end.map(|end| at..end));
            at = end.unwrap_or(at + 1);
        }
        found
    }

    fn is_span(&self, at: usize) -> bool {
        let unit = self.unit(at).filter(|_| self.folded(at).len() > 2);
        self.kind(at) == Some(TokenKind::Word)
            && (unit.is_some_and(|unit| unit.is_time()) || self.says(at, Word::Span))
    }

    /// Returns the end of a time of day, and `true` if it cannot be a plain number (`9:30`, `6 pm`,
    /// not `6`).
    fn clock(&self, at: usize) -> Option<(usize, bool)> {
        let digits = |at: usize| {
            let number = self.get(at).filter(|token| token.kind == TokenKind::Number)?;
            number.folded.parse::<u8>().ok().filter(|_| number.folded.len() <= 2)
        };
        digits(at).filter(|hour| *hour <= 24)?;
        let minutes = self.is(at + 1, ":")
            && self.is_glued(at + 1)
            && digits(at + 2).is_some_and(|minute| minute < 60);
        let end = if minutes { at + 3 } else { at + 1 };
        // "pm", "p.m.", "o'clock": letters with signs between them.
        let mut spelled = String::new();
        for (rest, token) in self.iter().enumerate().skip(end) {
            let sign = token.is(".") || token.is("'");
            if spelled.len() >= 6 || !(sign && rest > end || token.kind == TokenKind::Word) {
                break;
            }
            if !sign {
                spelled.push_str(&token.folded);
            }
            if self.lexicon.is(&spelled, Word::Clock) {
                return Some((rest + 1, true));
            }
        }
        Some((end, minutes))
    }

    /// Returns the end of a range between two times of day: `6 and 9 pm`.
    fn clock_range(&self, at: usize) -> Option<usize> {
        let (between, first_sure) = self.clock(at)?;
        let joins = self.is(between, "-") || self.says(between, Word::ToTime);
        let (end, sure) = self.clock(between + 1).filter(|_| joins)?;
        (first_sure || sure).then_some(end)
    }

    fn time_end(&self, at: usize, numbers: &[Number]) -> Option<usize> {
        let says =
            |at: usize, class: Word| self.kind(at) == Some(TokenKind::Word) && self.says(at, class);
        // "over the last", "in the past", "since"
        let lead = says(at, Word::BeforeTime);
        let since = says(at, Word::FromTime);
        let mut cursor = at + usize::from(lead);
        cursor += usize::from(lead && says(cursor, Word::Definite));
        let relative = says(cursor, Word::Relative);
        cursor += usize::from(relative);
        let number = numbers.iter().find(|number| number.tokens.start == cursor);
        let after = number.map_or(cursor, |number| number.tokens.end);
        let timed = number.and_then(|number| number.unit).is_some_and(|unit| unit.is_time());
        if relative && number.is_some() {
            return if timed { Some(after) } else { self.is_span(after).then_some(after + 1) };
        }
        if relative {
            // "the last couple of days"
            let few = says(cursor, Word::Few);
            cursor += usize::from(few);
            cursor += usize::from(few && says(cursor, Word::OfFew));
            return (self.is_span(cursor) || says(cursor, Word::Day)).then_some(cursor + 1);
        }
        if lead && since && says(cursor, Word::Day) || says(cursor, Word::AlwaysTime) {
            return Some(cursor + 1 + usize::from(says(cursor + 1, Word::PartOfDay)));
        }
        if let Some(end) = self.clock_range(cursor) {
            return Some(end);
        }
        if let Some((end, true)) = self.clock(cursor).filter(|_| lead) {
            return Some(end);
        }
        let ends = timed && says(after, Word::Ago) || lead && says(after, Word::Clock);
        number.filter(|_| ends).map(|_| after + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::tokenize;

    fn ignored(query: &str) -> usize {
        let tokens = tokenize(query);
        tokens.times(&tokens.numbers()).iter().map(Range::len).sum()
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
