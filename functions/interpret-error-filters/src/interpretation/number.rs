//! Stage 2: numbers in the query: digits with signs, suffixes and units (`$1.5k`, `500ms`), and
//! spoken ones (`two thousand`, `twelve oh six`, `a dozen`).

use std::ops::Range;

use crate::interpretation::decimal::Decimal;
use crate::interpretation::lexicon::{Lexicon, Unit};
use crate::interpretation::token::{Token, TokenKind};

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

/// Words that spell digits: `twelve oh six`, `seven point two point one`, `iii`.
#[derive(Debug, Clone)]
pub(crate) struct Spelt {
    pub(crate) tokens: Range<usize>,
    pub(crate) digits: String,
    /// A number, and a weak one.
    pub(crate) weak: bool,
}

/// All that is spelt with words, in order: numbers, and versions, which are none.
pub(crate) fn spelt(tokens: &[Token], numbers: &[Number]) -> Vec<Spelt> {
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
        let digits = roman(&token.folded)?.to_owned();
        Some(Spelt { tokens: at..at + 1, digits, weak: true })
    }));
    let mut at = 0;
    while at < tokens.len() {
        let version = number_words(tokens, at)
            .filter(|(words, _)| words.iter().filter(|word| **word == Word::Point).count() > 1)
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

/// What a Roman numeral up to twelve is in digits.
pub(crate) fn roman(numeral: &str) -> Option<&'static str> {
    const NUMERALS: [(&str, &str); 12] = [
        ("i", "1"),
        ("ii", "2"),
        ("iii", "3"),
        ("iv", "4"),
        ("v", "5"),
        ("vi", "6"),
        ("vii", "7"),
        ("viii", "8"),
        ("ix", "9"),
        ("x", "10"),
        ("xi", "11"),
        ("xii", "12"),
    ];
    NUMERALS.iter().find(|(roman, _)| *roman == numeral).map(|(_, digits)| *digits)
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
    } else if (sign.is("minus") || sign.is("negative"))
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
    scale(tokens, &mut number);
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
fn scale(tokens: &[Token], number: &mut Number) {
    while let Some(token) = tokens.get(number.tokens.end) {
        let factor: i128 = match token.folded.as_str() {
            "k" | "thousand" | "grand" | "thousands" => 1_000,
            "hundred" => 100,
            "m" if token.joint => 1_000_000,
            "mn" | "mio" | "million" | "millions" | "mil" | "mln" => 1_000_000,
            "bn" | "b" | "billion" | "billions" if token.joint || token.folded.len() > 1 => {
                1_000_000_000
            }
            "trillion" => 1_000_000_000_000,
            "dozen" => 12,
            _ => return,
        };
        let Some(value) = number.value.times(factor, 1) else { return };
        number.value = value;
        number.scale = number.scale.saturating_mul(factor);
        number.digits = value.to_string();
        number.tokens.end += 1;
    }
}

fn unit(tokens: &[Token], number: &mut Number, lexicon: &Lexicon) {
    let Some(token) = tokens.get(number.tokens.end) else { return };
    let short = token.folded.chars().count() <= 1 && !token.glued && token.kind == TokenKind::Word;
    if short || number.tokens.end == 0 {
        return;
    }
    if token.is("°")
        && tokens
            .get(number.tokens.end + 1)
            .is_some_and(|next| next.glued && (next.is("c") || next.is("f")))
    {
        number.unit = lexicon.unit("°");
        number.tokens.end += 2;
        return;
    }
    // "80 square metres"
    if matches!(token.folded.as_str(), "square" | "sq")
        && let Some(length) = tokens.get(number.tokens.end + 1)
        && let Some(area) = lexicon.unit(square(&length.folded))
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

/// The unit of area that is made of a unit of length.
fn square(length: &str) -> &'static str {
    match length {
        "m" | "meter" | "meters" | "metre" | "metres" => "m2",
        "ft" | "foot" | "feet" => "ft2",
        _ => "",
    }
}

/// What a number word is worth, and whether it stands for a single digit, a number below twenty,
/// a multiple of ten, or a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Digit(i64),
    Teen(i64),
    Tens(i64),
    Factor(i64),
    Half,
    Article,
    And,
    Point,
}

fn number_word(text: &str) -> Option<Word> {
    Some(match text {
        "zero" | "oh" | "nought" => Word::Digit(0),
        "one" | "single" | "once" => Word::Digit(1),
        "two" | "twice" => Word::Digit(2),
        "three" | "thrice" => Word::Digit(3),
        "four" => Word::Digit(4),
        "five" => Word::Digit(5),
        "six" => Word::Digit(6),
        "seven" => Word::Digit(7),
        "eight" => Word::Digit(8),
        "nine" => Word::Digit(9),
        "ten" => Word::Teen(10),
        "eleven" => Word::Teen(11),
        "twelve" => Word::Teen(12),
        "thirteen" => Word::Teen(13),
        "fourteen" => Word::Teen(14),
        "fifteen" => Word::Teen(15),
        "sixteen" => Word::Teen(16),
        "seventeen" => Word::Teen(17),
        "eighteen" => Word::Teen(18),
        "nineteen" => Word::Teen(19),
        "twenty" => Word::Tens(20),
        "thirty" => Word::Tens(30),
        "forty" | "fourty" => Word::Tens(40),
        "fifty" => Word::Tens(50),
        "sixty" => Word::Tens(60),
        "seventy" => Word::Tens(70),
        "eighty" => Word::Tens(80),
        "ninety" => Word::Tens(90),
        "hundred" | "hundreds" => Word::Factor(100),
        "thousand" | "thousands" | "grand" => Word::Factor(1_000),
        "million" | "millions" => Word::Factor(1_000_000),
        "billion" | "billions" => Word::Factor(1_000_000_000),
        "dozen" | "dozens" => Word::Factor(12),
        "couple" => Word::Factor(2),
        "half" => Word::Half,
        "a" | "an" => Word::Article,
        "and" => Word::And,
        "point" | "dot" => Word::Point,
        _ => return None,
    })
}

/// The plural of a number word, which ends a number: the `threes` of `five oh threes`.
fn plural_number_word(text: &str) -> Option<Word> {
    let singular = match text {
        "zeros" | "zeroes" => "zero",
        "sixes" => "six",
        _ => match text.strip_suffix("ies") {
            Some(tens) => return number_word(&format!("{tens}y")),
            None => text.strip_suffix('s')?,
        },
    };
    number_word(singular)
        .filter(|word| matches!(word, Word::Digit(_) | Word::Teen(_)) && singular != "oh")
}

/// The number words that stand together from here on, and where they end.
fn number_words(tokens: &[Token], at: usize) -> Option<(Vec<Word>, usize)> {
    let mut words: Vec<Word> = Vec::new();
    let mut end = at;
    while let Some(token) = tokens.get(end)
        && words.len() < 12
    {
        let hyphen = token.kind == TokenKind::Separator && !words.is_empty();
        if hyphen || token.is("of") && matches!(words.last(), Some(Word::Factor(_))) {
            end += 1;
            continue;
        }
        if token.kind != TokenKind::Word || token.joint {
            break;
        }
        let Some(word) = number_word(&token.folded) else {
            if matches!(words.last(), Some(Word::Digit(_) | Word::Teen(_) | Word::Tens(_)))
                && let Some(word) = plural_number_word(&token.folded)
            {
                words.push(word);
                end += 1;
            }
            break;
        };
        if word == Word::Article
            && !words.is_empty()
            && words.last() != Some(&Word::Half)
            && words.last() != Some(&Word::And)
        {
            break;
        }
        words.push(word);
        end += 1;
    }
    // Links at the end belong to what follows.
    while let Some(Word::And | Word::Point | Word::Article) = words.last() {
        words.pop();
        end -= 1;
    }
    while end > at
        && tokens.get(end - 1).is_some_and(|token| {
            token.kind == TokenKind::Separator
                || token.is("of")
                || token.is("and")
                || token.is("point")
                || token.is("a")
        })
    {
        end -= 1;
    }
    let begins = !matches!(words.first(), None | Some(Word::And | Word::Point));
    begins.then_some((words, end))
}

fn spoken(tokens: &[Token], at: usize, lexicon: &Lexicon) -> Option<Number> {
    if tokens.get(at)?.is("minus") || tokens.get(at)?.is("negative") {
        let number = spoken(tokens, at + 1, lexicon).filter(|number| !number.weak)?;
        let (value, tokens) = (number.value.negated(), at..number.tokens.end);
        return Some(Number { tokens, value, digits: value.to_string(), ..number });
    }
    let Some((mut words, mut end)) = number_words(tokens, at) else {
        return article_unit(tokens, at, lexicon);
    };
    if let Some(list_end) = list_break(&words) {
        // "five and six" are two numbers.
        words.truncate(list_end);
        end = nth_word_end(tokens, at, list_end);
    }
    let bare_article = words.iter().all(|word| *word == Word::Article);
    if bare_article || words == [Word::Half] {
        return article_unit(tokens, at, lexicon);
    }
    let digits = digits(&words);
    let value = value(&words).or_else(|| Decimal::parse(digits.as_deref()?))?;
    let digits = digits.unwrap_or_else(|| value.to_string());
    let weak = words == [Word::Digit(1)];
    let scale = match words[..] {
        [Word::Digit(_) | Word::Teen(_) | Word::Tens(_), Word::Factor(factor)] => factor.into(),
        _ => 1,
    };
    let mut number =
        Number { tokens: at..end, value, digits, unit: None, scale, written: false, weak };
    unit(tokens, &mut number, lexicon);
    Some(number)
}

fn nth_word_end(tokens: &[Token], at: usize, count: usize) -> usize {
    let mut seen = 0;
    let mut end = at;
    while let Some(token) = tokens.get(end) {
        if token.kind != TokenKind::Separator && !token.is("of") {
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
    let first = tokens.get(at)?;
    let (value, next) = if first.is("half")
        && tokens.get(at + 1).is_some_and(|token| token.is("a") || token.is("an"))
    {
        (Decimal::parse("0.5")?, at + 2)
    } else if first.is("a") || first.is("an") {
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

/// Where a list of two numbers parts: at an `and` that joins no rest to a hundred or more.
fn list_break(words: &[Word]) -> Option<usize> {
    (0..words.len()).find(|&and| words.get(and) == Some(&Word::And) && !adds_rest(words, and))
}

/// Whether what follows an `and` belongs to the round number before it: `a hundred and two`; not
/// `a dozen and a hundred`, `five hundred and five oh two`.
fn adds_rest(words: &[Word], and: usize) -> bool {
    let rest = words.get(and + 1..).unwrap_or_default();
    let rest = rest.split(|word| *word == Word::And).next().unwrap_or_default();
    let first = rest.iter().find(|word| **word != Word::Article);
    match (first, and.checked_sub(1).and_then(|before| words.get(before))) {
        (Some(Word::Half), _) => true,
        (Some(Word::Factor(_)), _) => false,
        (_, Some(&Word::Factor(round))) if round >= 100 => {
            value(rest).is_some() && !rest.contains(&Word::Factor(round))
        }
        _ => false,
    }
}

/// The value by the grammar of number words; none when they only make sense one after the other.
fn value(words: &[Word]) -> Option<Decimal> {
    if words.contains(&Word::Point) {
        return None;
    }
    let mut total = Decimal::ZERO;
    let mut group: Option<Decimal> = None;
    let mut last: Option<Word> = None;
    let mut half = false;
    for &word in words {
        match word {
            Word::And | Word::Article => {}
            Word::Half => half = true,
            Word::Digit(digit) => match last {
                None | Some(Word::Tens(_) | Word::Factor(_) | Word::And | Word::Article)
                    if digit != 0 || last.is_none() =>
                {
                    group =
                        Some(group.unwrap_or(Decimal::ZERO).plus(Decimal::from_integer(digit))?);
                }
                _ => return None,
            },
            Word::Teen(number) | Word::Tens(number) => match last {
                None | Some(Word::Factor(_) | Word::And | Word::Article) => {
                    group =
                        Some(group.unwrap_or(Decimal::ZERO).plus(Decimal::from_integer(number))?);
                }
                _ => return None,
            },
            Word::Factor(factor) => {
                let times = if std::mem::take(&mut half) {
                    group.unwrap_or(Decimal::ZERO).plus(Decimal::parse("0.5")?)?
                } else {
                    group.unwrap_or(Decimal::from_integer(1))
                };
                let product = times.times(i128::from(factor), 1)?;
                if factor >= 1_000 {
                    total = total.plus(product)?;
                    group = None;
                } else {
                    group = Some(product);
                }
            }

            Word::Point => return None,
        }
        if word != Word::And || last.is_none() {
            last = Some(word);
        } else {
            last = Some(Word::And);
        }
    }
    if half {
        group = Some(group.unwrap_or(Decimal::ZERO).plus(Decimal::parse("0.5")?)?);
    }
    total.plus(group.unwrap_or(Decimal::ZERO))
}

/// The digits one after the other: `twelve oh six` is 1206, `two point four` is 2.4.
fn digits(words: &[Word]) -> Option<String> {
    if let [Word::Digit(0), rest @ ..] = words
        && !rest.is_empty()
    {
        return Some(format!("0{}", digits(rest)?));
    }
    let mut digits = String::new();
    let mut tens: Option<i64> = None;
    for &word in words {
        if let (Some(number), Word::Digit(digit)) = (tens, word)
            && digit != 0
        {
            digits.push_str(&(number + digit).to_string());
            tens = None;
            continue;
        }
        if let Some(number) = tens.take() {
            digits.push_str(&number.to_string());
        }
        match word {
            Word::Digit(digit) => digits.push_str(&digit.to_string()),
            Word::Teen(number) => digits.push_str(&number.to_string()),
            Word::Tens(number) => tens = Some(number),
            Word::Point => digits.push('.'),
            _ => {
                return value(words)
                    .filter(|value| value.is_integer())
                    .map(|value| value.to_string());
            }
        }
    }
    if let Some(number) = tens {
        digits.push_str(&number.to_string());
    }
    Some(digits)
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
        let spelt = spelt(&tokens, &numbers);
        assert!(spelt.iter().any(|spelt| spelt.digits == "7.2.1"));
        assert!(numbers.iter().all(|number| number.tokens.len() < 5));
    }

    #[test]
    fn takes_no_number_out_of_a_name() {
        assert!(read("5xx p1 h264").is_empty());
    }
}
