//! Stage 2: numbers in the query: digits with signs, suffixes and units (`$1.5k`, `500ms`), and
//! spoken ones (`two thousand`, `twelve oh six`, `a dozen`).

mod words;

use std::ops::Range;

use crate::interpretation::decimal::Decimal;
use crate::interpretation::fold;
use crate::interpretation::lexicon::{Lexicon, Unit};
use crate::interpretation::token::{Token, TokenKind};
use crate::interpretation::word::Word;

pub(crate) use words::NumberWord;

use words::{digits, list_break, value};

/// A number of the query.
#[derive(Debug, Clone)]
pub(crate) struct Number {
    pub(crate) tokens: Range<usize>,
    pub(crate) value: Decimal,
    /// The digits as said one after the other, for values that are spelt with them.
    pub(crate) digits: String,
    pub(crate) unit: Option<Unit>,
    /// The factor said after the digits: of `4 thousand`, 1000.
    pub(crate) scale: i128,
    /// Written with digits, not with words.
    pub(crate) written: bool,
    /// `one` or `a`: a number only where a number is expected.
    pub(crate) weak: bool,
}

impl Number {
    /// Whether it looks like a year.
    pub(crate) fn is_year(&self) -> bool {
        let century = ["19", "20"].iter().any(|century| self.digits.starts_with(century));
        self.written && self.unit.is_none() && self.digits.len() == 4 && century
    }
}

/// Words that spell digits: `twelve oh six`, `seven point two point one`, `iii`.
#[derive(Debug, Clone)]
pub(crate) struct Spelt {
    pub(crate) tokens: Range<usize>,
    pub(crate) digits: String,
    /// A number, and a weak one.
    pub(crate) weak: bool,
}

/// All that is spelt with words, in order: numbers, and versions, which are none.
pub(crate) fn spelt(tokens: &[Token], numbers: &[Number], lexicon: &Lexicon) -> Vec<Spelt> {
    let numbers = numbers.iter().filter(|number| !number.written && number.unit.is_none());
    let mut found: Vec<Spelt> = numbers
        .map(|number| Spelt {
            tokens: number.tokens.clone(),
            digits: number.digits.clone(),
            weak: number.weak,
        })
        .collect();
    let numerals = tokens.iter().enumerate().filter(|(_, token)| {
        token.folded.len() > 1 && token.kind == TokenKind::Word && !token.joint
    });
    found.extend(numerals.filter_map(|(at, token)| {
        let digits = lexicon.roman(&token.folded)?.to_owned();
        Some(Spelt { tokens: at..at + 1, digits, weak: true })
    }));
    let mut at = 0;
    while at < tokens.len() {
        let version = number_words(tokens, at, lexicon)
            .filter(|(words, _)| {
                words.iter().filter(|word| **word == NumberWord::Point).count() > 1
            })
            .and_then(|(words, end)| Some((digits(&words)?, end)));
        if let Some((digits, end)) = version {
            found.push(Spelt { tokens: at..end, digits, weak: false });
            at = end;
        } else {
            at += 1;
        }
    }
    found.sort_by_key(|spelt| spelt.tokens.start);
    found
}

/// All numbers of the query, in order, without overlap.
pub(crate) fn numbers(tokens: &[Token], lexicon: &Lexicon) -> Vec<Number> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if let Some(number) = written(tokens, at, lexicon).or_else(|| spoken(tokens, at, lexicon)) {
            at = number.tokens.end.max(at + 1);
            found.push(number);
        } else {
            at += 1;
        }
    }
    found
}

fn is_currency(token: &Token) -> bool {
    matches!(token.folded.as_str(), "$" | "€" | "£" | "¥" | "₹")
}

fn written(tokens: &[Token], at: usize, lexicon: &Lexicon) -> Option<Number> {
    let mut start = at;
    let mut cursor = at;
    let mut sign = tokens.get(cursor)?;
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    let mut negative = false;
    if sign.is("-") && tokens.get(cursor + 1)?.glued {
        let free = before.is_none_or(|token| {
            !sign.glued
                || token.kind == TokenKind::Symbol && !token.is("-")
                || token.kind == TokenKind::Separator
        });
        if !free {
            return None;
        }
        negative = true;
        cursor += 1;
        sign = tokens.get(cursor)?;
    } else if lexicon.is(&sign.folded, Word::Minus)
        && tokens.get(cursor + 1)?.kind == TokenKind::Number
    {
        negative = true;
        cursor += 1;
        sign = tokens.get(cursor)?;
    }
    if is_currency(sign) && tokens.get(cursor + 1)?.kind == TokenKind::Number {
        cursor += 1;
    } else if sign.is("#") {
        return None;
    }
    let digits = tokens.get(cursor)?;
    if digits.kind != TokenKind::Number || digits.joint {
        return None;
    }
    if negative
        && tokens.get(at).is_some_and(|token| token.is("-"))
        && !digits.glued
        && cursor == at + 1
    {
        return None;
    }
    let mut value = Decimal::parse(&digits.folded)?;
    let mut spelled = digits.folded.clone();
    let mut end = cursor + 1;
    // 10 000
    while let Some(group) = tokens.get(end)
        && group.kind == TokenKind::Number
        && group.folded.len() == 3
        && spelled.len() <= 9
        && !spelled.contains('.')
        && (spelled.len() <= 3 || end > cursor + 1)
        && group.folded.bytes().all(|byte| byte.is_ascii_digit())
        && query_groups(tokens, cursor, end)
    {
        spelled.push_str(&group.folded);
        value = Decimal::parse(&spelled)?;
        end += 1;
    }
    if negative {
        value = value.negated();
    }
    let mut number = Number {
        tokens: start..end,
        value,
        digits: spelled,
        unit: None,
        scale: 1,
        written: true,
        weak: false,
    };
    if tokens.get(start).is_some_and(is_currency)
        || tokens.get(start + 1).is_some_and(is_currency) && negative
    {
        number.unit = lexicon.unit("$");
    }
    scale(tokens, &mut number, lexicon);
    unit(tokens, &mut number, lexicon);
    // A number that runs on into letters (5xx, 3D) is part of a name.
    if tokens.get(number.tokens.end).is_some_and(|token| token.joint) {
        return None;
    }
    start = number.tokens.start;
    debug_assert_eq!(start, at);
    Some(number)
}

/// Only `1 000`-like groups: the first has at most three digits and the second follows a space.
fn query_groups(tokens: &[Token], first: usize, group: usize) -> bool {
    let lead = tokens.get(first).map_or(0, |token| token.folded.len());
    let spaced = tokens.get(group).is_some_and(|token| !token.glued);
    let zeros =
        tokens.get(group).is_some_and(|token| token.folded == "000" || token.folded == "500");
    lead <= 3 && spaced && zeros
}

/// `k`, `million` and the like after a number.
fn scale(tokens: &[Token], number: &mut Number, lexicon: &Lexicon) {
    while let Some(token) = tokens.get(number.tokens.end) {
        let Some(factor) = lexicon.scale(&token.folded, token.joint) else { return };
        let Some(value) = number.value.times(factor, 1) else { return };
        number.value = value;
        number.scale = number.scale.saturating_mul(factor);
        number.digits = value.to_string();
        number.tokens.end += 1;
    }
}

fn unit(tokens: &[Token], number: &mut Number, lexicon: &Lexicon) {
    let Some(token) = tokens.get(number.tokens.end) else { return };
    let short = token.folded.chars().count() <= 1
        && !token.glued
        && token.kind == TokenKind::Word
        && !(lexicon.is(&token.folded, Word::ShortUnit) && number.written);
    if short || number.tokens.end == 0 {
        return;
    }
    if token.is("°")
        && tokens
            .get(number.tokens.end + 1)
            .is_some_and(|next| next.glued && lexicon.unit(&next.folded).is_some())
    {
        number.unit = lexicon.unit("°");
        number.tokens.end += 2;
        return;
    }
    // "80 square metres"
    if lexicon.is(&token.folded, Word::Square)
        && let Some(length) = tokens.get(number.tokens.end + 1)
        && let Some(area) = lexicon.unit(&format!("{}2", length.folded))
    {
        number.unit = Some(area);
        number.tokens.end += 2;
        return;
    }
    if let Some(found) = lexicon.unit(&token.folded) {
        number.unit = Some(found);
        number.tokens.end += 1;
    }
}

/// A word that ends a number as a plural: the `threes` of `five oh threes`.
fn plural_number_word(text: &str, lexicon: &Lexicon) -> Option<NumberWord> {
    let found = lexicon.number_word(fold::singular(text)?.as_ref())?;
    let spelt = matches!(found, NumberWord::Digit(_) | NumberWord::Teen(_) | NumberWord::Tens(_));
    spelt.then_some(found)
}

/// The number words that stand together from here on, and where they end.
fn number_words(
    tokens: &[Token],
    at: usize,
    lexicon: &Lexicon,
) -> Option<(Vec<NumberWord>, usize)> {
    let mut words: Vec<NumberWord> = Vec::new();
    let mut end = at;
    while let Some(token) = tokens.get(end)
        && words.len() < 12
    {
        let hyphen = token.kind == TokenKind::Separator && !words.is_empty();
        if hyphen
            || lexicon.is(&token.folded, Word::OfFew)
                && matches!(words.last(), Some(NumberWord::Factor(_)))
        {
            end += 1;
            continue;
        }
        if token.kind != TokenKind::Word || token.joint {
            break;
        }
        let Some(word) = lexicon.number_word(&token.folded) else {
            if matches!(
                words.last(),
                Some(NumberWord::Digit(_) | NumberWord::Teen(_) | NumberWord::Tens(_))
            ) && let Some(word) = plural_number_word(&token.folded, lexicon)
            {
                words.push(word);
                end += 1;
            }
            break;
        };
        if word == NumberWord::Article
            && !words.is_empty()
            && words.last() != Some(&NumberWord::Half)
            && words.last() != Some(&NumberWord::And)
        {
            break;
        }
        words.push(word);
        end += 1;
    }
    // Links at the end belong to what follows.
    while let Some(NumberWord::And | NumberWord::Point | NumberWord::Article) = words.last() {
        words.pop();
        end -= 1;
    }
    while end > at
        && tokens.get(end - 1).is_some_and(|token| {
            token.kind == TokenKind::Separator
                || lexicon.is(&token.folded, Word::OfFew)
                || lexicon.number_word(&token.folded).is_some_and(NumberWord::is_link)
        })
    {
        end -= 1;
    }
    let begins = !matches!(words.first(), None | Some(NumberWord::And | NumberWord::Point));
    begins.then_some((words, end))
}

fn spoken(tokens: &[Token], at: usize, lexicon: &Lexicon) -> Option<Number> {
    if lexicon.is(&tokens.get(at)?.folded, Word::Minus) {
        let number = spoken(tokens, at + 1, lexicon).filter(|number| !number.weak)?;
        let (value, tokens) = (number.value.negated(), at..number.tokens.end);
        return Some(Number { tokens, value, digits: value.to_string(), ..number });
    }
    let Some((mut words, mut end)) = number_words(tokens, at, lexicon) else {
        return article_unit(tokens, at, lexicon);
    };
    if let Some(list_end) = list_break(&words) {
        // "five and six" are two numbers.
        words.truncate(list_end);
        end = nth_word_end(tokens, at, list_end, lexicon);
    }
    let bare_article = words.iter().all(|word| *word == NumberWord::Article);
    if bare_article || words == [NumberWord::Half] {
        return article_unit(tokens, at, lexicon);
    }
    let digits = digits(&words);
    let value = value(&words).or_else(|| Decimal::parse(digits.as_deref()?))?;
    let digits = digits.unwrap_or_else(|| value.to_string());
    let weak = words == [NumberWord::Digit(1)];
    let scale = match words[..] {
        [
            NumberWord::Digit(_) | NumberWord::Teen(_) | NumberWord::Tens(_),
            NumberWord::Factor(factor),
        ] => factor.into(),
        _ => 1,
    };
    let mut number =
        Number { tokens: at..end, value, digits, unit: None, scale, written: false, weak };
    unit(tokens, &mut number, lexicon);
    Some(number)
}

fn nth_word_end(tokens: &[Token], at: usize, count: usize, lexicon: &Lexicon) -> usize {
    let mut seen = 0;
    let mut end = at;
    while let Some(token) = tokens.get(end) {
        if token.kind != TokenKind::Separator && !lexicon.is(&token.folded, Word::OfFew) {
            seen += 1;
        }
        end += 1;
        if seen == count {
            break;
        }
    }
    end
}

/// `an hour`, `half a minute`.
fn article_unit(tokens: &[Token], at: usize, lexicon: &Lexicon) -> Option<Number> {
    let is = |at: usize, word: NumberWord| {
        tokens.get(at).is_some_and(|token| lexicon.number_word(&token.folded) == Some(word))
    };
    let (value, next) = if is(at, NumberWord::Half) && is(at + 1, NumberWord::Article) {
        (Decimal::parse("0.5")?, at + 2)
    } else if is(at, NumberWord::Article) {
        (Decimal::from_integer(1), at + 1)
    } else {
        return None;
    };
    let unit = lexicon
        .unit(&tokens.get(next)?.folded)
        .filter(|_| tokens.get(next).is_some_and(|token| token.folded.len() > 2))?;
    Some(Number {
        tokens: at..next + 1,
        value,
        digits: value.to_string(),
        unit: Some(unit),
        scale: 1,
        written: false,
        weak: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpretation::token::tokenise;

    fn read(query: &str) -> Vec<(String, String)> {
        numbers(&tokenise(query), Lexicon::get())
            .into_iter()
            .map(|number| (number.value.to_string(), number.digits))
            .collect()
    }

    #[test]
    fn reads_written_numbers() {
        for (query, value) in [
            ("1.5k", "1500"),
            ("$1,500", "1500"),
            ("2 million", "2000000"),
            ("10 000", "10000"),
            ("-20", "-20"),
            ("below minus 20", "-20"),
            ("2.50", "2.5"),
        ] {
            assert_eq!(read(query).first().map(|number| number.0.as_str()), Some(value), "{query}");
        }
    }

    #[test]
    fn reads_spoken_numbers() {
        for (query, value) in [
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
            assert_eq!(read(query).first().map(|number| number.0.as_str()), Some(value), "{query}");
        }
    }

    #[test]
    fn reads_digits_said_one_after_the_other() {
        for (query, digits) in [
            ("twelve oh six", "1206"),
            ("one thirty seven", "137"),
            ("four oh four", "404"),
            ("five oh threes", "503"),
            ("oh three hundred", "0300"),
            ("ten nineties", "1090"),
        ] {
            assert_eq!(
                read(query).first().map(|number| number.1.as_str()),
                Some(digits),
                "{query}"
            );
        }
    }

    #[test]
    fn reads_two_numbers_joined_by_and() {
        assert_eq!(read("one thirty seven and one thirty nine").len(), 2);
        assert_eq!(read("five and six").len(), 2);
        assert_eq!(read("a dozen and a hundred").len(), 2);
        assert_eq!(read("a dozen and fifty").len(), 2);
        assert_eq!(read("a hundred and a million").len(), 2);
        assert_eq!(read("five hundred and five oh two").len(), 2);
        assert_eq!(read("five hundred and five hundred").len(), 2);
        assert_eq!(read("five hundred and five thousand").len(), 1);
        assert_eq!(read("a hundred and two").len(), 1);
        assert_eq!(read("two and a half").len(), 1);
    }

    #[test]
    fn reads_a_version_as_digits_but_not_as_a_number() {
        let tokens = tokenise("seven point two point one");
        let numbers = numbers(&tokens, Lexicon::get());
        let spelt = spelt(&tokens, &numbers, Lexicon::get());
        assert!(spelt.iter().any(|spelt| spelt.digits == "7.2.1"));
        assert!(numbers.iter().all(|number| number.tokens.len() < 5));
    }

    #[test]
    fn takes_no_number_out_of_a_name() {
        assert!(read("5xx p1 h264").is_empty());
    }
}
