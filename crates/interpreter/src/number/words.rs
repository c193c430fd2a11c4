//! The joint meaning of number words: `two thousand`, `twelve oh six`.

use crate::decimal::Decimal;

/// The kind of a number word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberWord {
    /// Below ten.
    Digit(i64),
    /// Below twenty.
    Teen(i64),
    /// A multiple of ten.
    Tens(i64),
    Factor(i64),
    /// The place in a sequence: `third`.
    Ordinal(i64),
    Half,
    Article,
    And,
    Point,
}

impl NumberWord {
    /// Returns the number word that a line of `data/en/numbers.txt` describes.
    pub(crate) fn parse(kind: &str, value: i64) -> Option<Self> {
        Some(match kind {
            "digit" => Self::Digit(value),
            "teen" => Self::Teen(value),
            "tens" => Self::Tens(value),
            "factor" => Self::Factor(value),
            "ordinal" => Self::Ordinal(value),
            "half" => Self::Half,
            "article" => Self::Article,
            "and" => Self::And,
            "point" => Self::Point,
            _ => return None,
        })
    }

    /// `true` for a number below a hundred.
    pub(super) fn spells(self) -> bool {
        matches!(self, Self::Digit(_) | Self::Teen(_) | Self::Tens(_))
    }

    pub(super) fn is_link(self) -> bool {
        matches!(self, Self::And | Self::Point | Self::Article)
    }
}

/// Returns the index of the `and` between two numbers, which adds nothing to a hundred or more.
pub(super) fn list_break(words: &[NumberWord]) -> Option<usize> {
    (0..words.len()).find(|&and| words.get(and) == Some(&NumberWord::And) && !adds_rest(words, and))
}

/// `true` if the words after an `and` add to the round number before it: `a hundred and two`.
/// `false` for `a dozen and a hundred` and `five hundred and five oh two`.
fn adds_rest(words: &[NumberWord], and: usize) -> bool {
    let rest = words.get(and + 1..).unwrap_or_default();
    let rest = rest.split(|word| *word == NumberWord::And).next().unwrap_or_default();
    let first = rest.iter().find(|word| **word != NumberWord::Article);
    match (first, and.checked_sub(1).and_then(|before| words.get(before))) {
        (Some(NumberWord::Half), _) => true,
        (Some(NumberWord::Factor(_)), _) => false,
        (_, Some(&NumberWord::Factor(round))) if round >= 100 => {
            value(rest).is_some() && !rest.contains(&NumberWord::Factor(round))
        }
        _ => false,
    }
}

/// Returns the value by the grammar of numbers, or `None` if the words are only a sequence of
/// digits.
pub(super) fn value(words: &[NumberWord]) -> Option<Decimal> {
    let mut total = Decimal::ZERO;
    let mut group: Option<Decimal> = None;
    let mut last: Option<NumberWord> = None;
    let mut half = false;
    let or_zero = |group: Option<Decimal>| group.unwrap_or(Decimal::ZERO);
    for &word in words {
        let begins = matches!(
            last,
            None | Some(NumberWord::Factor(_) | NumberWord::And | NumberWord::Article)
        );
        match word {
            NumberWord::And | NumberWord::Article => {}
            NumberWord::Half => half = true,
            NumberWord::Digit(0) if last.is_some() => return None,
            NumberWord::Digit(number) if begins || matches!(last, Some(NumberWord::Tens(_))) => {
                group = Some(or_zero(group).plus(Decimal::from_integer(number))?);
            }
            NumberWord::Teen(number) | NumberWord::Tens(number) if begins => {
                group = Some(or_zero(group).plus(Decimal::from_integer(number))?);
            }
            NumberWord::Factor(factor) => {
                let times = if std::mem::take(&mut half) {
                    or_zero(group).plus(Decimal::parse("0.5")?)?
                } else {
                    group.unwrap_or(Decimal::from_integer(1))
                };
                group = Some(times.times(i128::from(factor), 1)?);
                if factor >= 1_000 {
                    total = total.plus(or_zero(group.take()))?;
                }
            }
            _ => return None,
        }
        last = Some(word);
    }
    let half = if half { Decimal::parse("0.5")? } else { Decimal::ZERO };
    total.plus(or_zero(group))?.plus(half)
}

/// Returns the digits in sequence: 1206 for `twelve oh six`, 2.4 for `two point four`.
pub(super) fn digits(words: &[NumberWord]) -> Option<String> {
    if let [NumberWord::Digit(0), rest @ ..] = words
        && !rest.is_empty()
    {
        return Some(format!("0{}", digits(rest)?));
    }
    if !words.iter().all(|word| word.spells() || *word == NumberWord::Point) {
        return value(words).filter(|value| value.is_integer()).map(|value| value.to_string());
    }
    let mut digits = String::new();
    let mut rest = words;
    loop {
        let text;
        (text, rest) = match rest {
            [] => return Some(digits),
            [NumberWord::Tens(tens), NumberWord::Digit(digit @ 1..), rest @ ..] => {
                ((tens + digit).to_string(), rest)
            }
            [
                NumberWord::Digit(number) | NumberWord::Teen(number) | NumberWord::Tens(number),
                rest @ ..,
            ] => (number.to_string(), rest),
            [_, rest @ ..] => (".".to_owned(), rest),
        };
        digits.push_str(&text);
    }
}
