//! Stage 2: numbers in the query, written (`$1.5k`, `500ms`) or spoken (`two thousand`,
//! `twelve oh six`, `a dozen`).

mod words;

use std::ops::Range;

use crate::decimal::Decimal;
use crate::fold;
use crate::lexicon::Unit;
use crate::token::{TokenKind, Tokens};
use crate::word::Word;

pub(crate) use words::NumberWord;

use words::{digits, list_break, value};

/// A number in the query.
#[derive(Debug, Clone)]
pub(crate) struct Number {
    pub(crate) tokens: Range<usize>,
    pub(crate) value: Decimal,
    /// The digits in spoken order, for values that are spelled with them.
    pub(crate) digits: String,
    pub(crate) unit: Option<Unit>,
    /// The factor after the digits: 1000 for `4 thousand`.
    pub(crate) scale: i128,
    /// `true` if written with digits, not with words.
    pub(crate) written: bool,
    /// `true` for `one` and `a`, which are numbers only if a number is expected.
    pub(crate) weak: bool,
}

impl Number {
    fn of(tokens: Range<usize>, value: Decimal) -> Self {
        let (digits, written, weak) = (value.to_string(), false, false);
        Self { tokens, value, digits, unit: None, scale: 1, written, weak }
    }

    pub(crate) fn is_weak(&self) -> bool {
        self.weak && self.unit.is_none()
    }

    /// `true` if it looks like a year.
    pub(crate) fn is_year(&self) -> bool {
        let century = ["19", "20"].iter().any(|century| self.digits.starts_with(century));
        self.written && self.unit.is_none() && self.digits.len() == 4 && century
    }
}

/// Words that spell digits: `twelve oh six`, `seven point two point one`, `iii`.
#[derive(Debug, Clone)]
pub(crate) struct SpelledNumber {
    pub(crate) tokens: Range<usize>,
    pub(crate) digits: String,
}

const CURRENCIES: [&str; 5] = ["$", "€", "£", "¥", "₹"];

impl Tokens {
    /// Returns all spelled-out numbers and versions, in order.
    pub(crate) fn spelled(&self, numbers: &[Number]) -> Vec<SpelledNumber> {
        let said = numbers.iter().filter(|number| !number.written && number.unit.is_none());
        let said = said.map(|number| SpelledNumber {
            tokens: number.tokens.clone(),
            digits: number.digits.clone(),
        });
        let numerals = self.iter().enumerate().filter_map(|(at, token)| {
            let plain = token.kind == TokenKind::Word && !token.joint && token.folded.len() > 1;
            let digits = self.lexicon.roman(&token.folded).filter(|_| plain)?.to_owned();
            Some(SpelledNumber { tokens: at..at + 1, digits })
        });
        let mut found: Vec<SpelledNumber> = said.chain(numerals).collect();
        let mut at = 0;
        while at < self.len() {
            let version = self.version(at);
            at = version.as_ref().map_or(at + 1, |version| version.tokens.end);
            found.extend(version);
        }
        found.sort_by_key(|spelled| spelled.tokens.start);
        found
    }

    /// Returns the spelled-out version that begins at `at`.
    fn version(&self, at: usize) -> Option<SpelledNumber> {
        let (words, end) = self.number_words(at)?;
        let points = words.iter().filter(|word| **word == NumberWord::Point).count();
        let digits = digits(&words).filter(|_| points > 1)?;
        Some(SpelledNumber { tokens: at..end, digits })
    }

    /// Returns all numbers of the query, in order, without overlap.
    pub(crate) fn numbers(&self) -> Vec<Number> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.len() {
            let number = self.written(at).or_else(|| self.spoken(at));
            at = number.as_ref().map_or(at + 1, |number| number.tokens.end.max(at + 1));
            found.extend(number);
        }
        found
    }

    fn written(&self, start: usize) -> Option<Number> {
        let is_number = |at: usize| self.kind(at) == Some(TokenKind::Number);
        let hyphen = self.is(start, "-");
        let negative = hyphen || self.says(start, Word::Minus) && is_number(start + 1);
        let sign = start + usize::from(negative);
        let currency = is_number(sign + 1) && CURRENCIES.contains(&self.folded(sign));
        let first = sign + usize::from(currency);
        let digits = self.get(first).filter(|it| it.kind == TokenKind::Number && !it.joint)?;
        if hyphen && (!self.is_glued(sign) || self.is_glued(start)) {
            return None;
        }
        let mut spelled = digits.folded.clone();
        let mut end = first + 1;
        let grouped = digits.folded.len() <= 3 && !digits.folded.contains('.');
        while grouped && spelled.len() <= 9 && self.is_group(end) {
            spelled.push_str(self.folded(end));
            end += 1;
        }
        let value = Decimal::parse(&spelled)?;
        let value = if negative { value.negated() } else { value };
        let unit = currency.then(|| self.lexicon.unit("$")).flatten();
        let number = Number::of(start..end, value);
        let mut number = Number { digits: spelled, unit, written: true, ..number };
        self.scale(&mut number);
        self.measure(&mut number);
        // A number that continues in letters (5xx, 3D) is part of a name.
        (!self.is_joint(number.tokens.end)).then_some(number)
    }

    /// `true` if three digits continue a number after a space: `10 000`.
    fn is_group(&self, at: usize) -> bool {
        let number = self.kind(at) == Some(TokenKind::Number) && !self.is_glued(at);
        number && matches!(self.folded(at), "000" | "500")
    }

    /// Applies the factors after a number: `k`, `million`.
    fn scale(&self, number: &mut Number) {
        while let Some(token) = self.get(number.tokens.end) {
            let Some(factor) = self.lexicon.scale(&token.folded, token.joint) else { return };
            let Some(value) = number.value.times(factor, 1) else { return };
            number.value = value;
            number.scale = number.scale.saturating_mul(factor);
            number.digits = value.to_string();
            number.tokens.end += 1;
        }
    }

    /// Reads the unit after a number.
    fn measure(&self, number: &mut Number) {
        let at = number.tokens.end;
        let Some(token) = self.get(at) else { return };
        let short = token.folded.chars().count() <= 1
            && !token.glued
            && token.kind == TokenKind::Word
            && !(self.says(at, Word::ShortUnit) && number.written);
        if let Some(unit) = self.unit(at).filter(|_| !short) {
            number.unit = Some(unit);
            number.tokens.end += 1;
            self.add_half(number);
        }
    }

    /// Adds the half after a unit: `a minute and a half`.
    fn add_half(&self, number: &mut Number) {
        let is = |offset: usize, word: NumberWord| {
            let folded = self.folded(number.tokens.end + offset);
            self.lexicon.number_word(folded) == Some(word)
        };
        if is(0, NumberWord::And)
            && is(1, NumberWord::Article)
            && is(2, NumberWord::Half)
            && let Some(half) = Decimal::parse("0.5")
            && let Some(value) = number.value.plus(half)
        {
            number.value = value;
            number.digits = value.to_string();
            number.tokens.end += 3;
        }
    }

    /// Returns the consecutive number words from `at`, and the end of them.
    fn number_words(&self, at: usize) -> Option<(Vec<NumberWord>, usize)> {
        let mut words: Vec<NumberWord> = Vec::new();
        let mut end = at;
        while let Some(token) = self.get(end).filter(|_| words.len() < 12) {
            let hyphen = token.kind == TokenKind::Separator && !words.is_empty();
            let of =
                self.says(end, Word::OfFew) && matches!(words.last(), Some(NumberWord::Factor(_)));
            if hyphen || of {
                end += 1;
                continue;
            }
            if token.kind != TokenKind::Word || token.joint {
                break;
            }
            let last = words.last().copied();
            let known = self.lexicon.number_word(&token.folded);
            let known = known.filter(|word| !matches!(word, NumberWord::Ordinal(_)));
            // A plural ends a number: the `threes` of `five oh threes`.
            let plural = || {
                let found = self.lexicon.number_word(&fold::singular(&token.folded)?)?;
                (found.spells() && last?.spells()).then_some(found)
            };
            let Some(word) = known.or_else(plural) else { break };
            words.push(word);
            end += 1;
        }
        // Link words at the end belong to the next words.
        let content = words.iter().rposition(|word| !word.is_link()).map_or(0, |last| last + 1);
        words.truncate(content);
        let idle = |at: usize| {
            self.kind(at) == Some(TokenKind::Separator)
                || self.says(at, Word::OfFew)
                || self.lexicon.number_word(self.folded(at)).is_some_and(NumberWord::is_link)
        };
        while end > at && idle(end - 1) {
            end -= 1;
        }
        let begins = !matches!(words.first(), None | Some(NumberWord::And | NumberWord::Point));
        begins.then_some((words, end))
    }

    fn spoken(&self, at: usize) -> Option<Number> {
        if self.says(at, Word::Minus) {
            let number = self.spoken(at + 1).filter(|number| !number.weak)?;
            let value = number.value.negated();
            let (tokens, digits) = (at..number.tokens.end, value.to_string());
            return Some(Number { tokens, value, digits, ..number });
        }
        let Some((mut words, mut end)) = self.number_words(at) else {
            return self.article_unit(at);
        };
        if let Some(list_end) = list_break(&words) {
            // "five and six" are two numbers.
            words.truncate(list_end);
            end = self.nth_word_end(at, list_end);
        }
        let bare_article = words.iter().all(|word| *word == NumberWord::Article);
        if bare_article || words == [NumberWord::Half] {
            return self.article_unit(at);
        }
        let digits = digits(&words);
        let value = value(&words).or_else(|| Decimal::parse(digits.as_deref()?))?;
        let scale = match words[..] {
            [one, NumberWord::Factor(factor)] if one.spells() => factor.into(),
            _ => 1,
        };
        let number = Number::of(at..end, value);
        let digits = digits.unwrap_or_else(|| number.digits.clone());
        let weak = words == [NumberWord::Digit(1)];
        let mut number = Number { digits, scale, weak, ..number };
        self.measure(&mut number);
        Some(number)
    }

    fn nth_word_end(&self, at: usize, count: usize) -> usize {
        let is_word = |&at: &usize| {
            self.kind(at) != Some(TokenKind::Separator) && !self.says(at, Word::OfFew)
        };
        let mut words = (at..self.len()).filter(is_word);
        words.nth(count.saturating_sub(1)).map_or(self.len(), |last| last + 1)
    }

    /// Returns the number of `an hour` or `half a minute`.
    fn article_unit(&self, at: usize) -> Option<Number> {
        let is =
            |at: usize, word: NumberWord| self.lexicon.number_word(self.folded(at)) == Some(word);
        let half = is(at, NumberWord::Half);
        let next = at + usize::from(half);
        let value = if half { Decimal::parse("0.5")? } else { Decimal::from_integer(1) };
        let unit = self.unit(next + 1).filter(|_| self.folded(next + 1).len() > 2);
        let said = unit.is_some() && is(next, NumberWord::Article);
        let mut number = Number { unit, weak: true, ..Number::of(at..next + 2, value) };
        self.add_half(&mut number);
        said.then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use crate::token::tokenize;

    fn read(query: &str) -> Vec<(String, String)> {
        let numbers = tokenize(query).numbers().into_iter();
        numbers.map(|number| (number.value.to_string(), number.digits)).collect()
    }

    #[test]
    fn reads_written_and_spoken_numbers() {
        for (query, value) in [
            ("1.5k", "1500"),
            ("$1,500", "1500"),
            ("2 million", "2000000"),
            ("10 000", "10000"),
            ("-20", "-20"),
            ("below minus 20", "-20"),
            ("2.50", "2.5"),
            ("two thousand", "2000"),
            ("a dozen", "12"),
            ("a hundred and five", "105"),
            ("half a million", "500000"),
            ("a couple of hundred", "200"),
            ("twenty-five", "25"),
            ("three point five", "3.5"),
            ("minus twenty", "-20"),
            ("twice", "2"),
            ("two and a half thousand", "2500"),
        ] {
            assert_eq!(read(query)[0].0, value, "{query}");
        }
    }

    #[test]
    fn reads_digits_in_spoken_order() {
        for (query, digits) in [
            ("twelve oh six", "1206"),
            ("one thirty seven", "137"),
            ("four oh four", "404"),
            ("five oh threes", "503"),
            ("oh three hundred", "0300"),
            ("ten nineties", "1090"),
        ] {
            assert_eq!(read(query)[0].1, digits, "{query}");
        }
    }

    #[test]
    fn reads_two_numbers_joined_by_and() {
        for (query, numbers) in [
            ("one thirty seven and one thirty nine", 2),
            ("five and six", 2),
            ("a dozen and a hundred", 2),
            ("a dozen and fifty", 2),
            ("a hundred and a million", 2),
            ("five hundred and five oh two", 2),
            ("five hundred and five hundred", 2),
            ("five hundred and five thousand", 1),
            ("a hundred and two", 1),
            ("two and a half", 1),
        ] {
            assert_eq!(read(query).len(), numbers, "{query}");
        }
    }

    #[test]
    fn versions_are_digits_but_not_numbers() {
        let tokens = tokenize("seven point two point one");
        let numbers = tokens.numbers();
        assert!(tokens.spelled(&numbers).iter().any(|spelled| spelled.digits == "7.2.1"));
        assert!(numbers.iter().all(|number| number.tokens.len() < 5));
    }

    #[test]
    fn names_contain_no_numbers() {
        assert!(read("5xx p1 h264").is_empty());
    }
}
