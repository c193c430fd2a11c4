//! What words of numbers say together: `two thousand`, `twelve oh six`.

use crate::interpretation::decimal::Decimal;

/// What a word of a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberWord {
    /// Below ten.
    Digit(i64),
    /// Below twenty.
    Teen(i64),
    /// A multiple of ten.
    Tens(i64),
    Factor(i64),
    Half,
    Article,
    And,
    Point,
}

impl NumberWord {
    /// The one that a line of `data/en/numbers.txt` describes.
    pub(crate) fn parse(kind: &str, value: i64) -> Option<Self> {
        Some(match kind {
            "digit" => Self::Digit(value),
            "teen" => Self::Teen(value),
            "tens" => Self::Tens(value),
            "factor" => Self::Factor(value),
            "half" => Self::Half,
            "article" => Self::Article,
            "and" => Self::And,
            "point" => Self::Point,
            _ => return None,
        })
    }

    pub(super) fn is_link(self) -> bool {
        matches!(self, Self::And | Self::Point | Self::Article)
    }
}

/// Where a list of two numbers parts: at an `and` that joins no rest to a hundred or more.
pub(super) fn list_break(words: &[NumberWord]) -> Option<usize> {
    (0..words.len()).find(|&and| words.get(and) == Some(&NumberWord::And) && !adds_rest(words, and))
}

/// Whether what follows an `and` belongs to the round number before it: `a hundred and two`; not
/// `a dozen and a hundred`, `five hundred and five oh two`.
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

/// The value by the grammar of number words; none when they only make sense one after the other.
pub(super) fn value(words: &[NumberWord]) -> Option<Decimal> {
    if words.contains(&NumberWord::Point) {
        return None;
    }
    let mut total = Decimal::ZERO;
    let mut group: Option<Decimal> = None;
    let mut last: Option<NumberWord> = None;
    let mut half = false;
    for &word in words {
        match word {
            NumberWord::And | NumberWord::Article => {}
            NumberWord::Half => half = true,
            NumberWord::Digit(digit) => match last {
                None
                | Some(
                    NumberWord::Tens(_)
                    | NumberWord::Factor(_)
                    | NumberWord::And
                    | NumberWord::Article,
                ) if digit != 0 || last.is_none() => {
                    group =
                        Some(group.unwrap_or(Decimal::ZERO).plus(Decimal::from_integer(digit))?);
                }
                _ => return None,
            },
            NumberWord::Teen(number) | NumberWord::Tens(number) => match last {
                None | Some(NumberWord::Factor(_) | NumberWord::And | NumberWord::Article) => {
                    group =
                        Some(group.unwrap_or(Decimal::ZERO).plus(Decimal::from_integer(number))?);
                }
                _ => return None,
            },
            NumberWord::Factor(factor) => {
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

            NumberWord::Point => return None,
        }
        if word != NumberWord::And || last.is_none() {
            last = Some(word);
        } else {
            last = Some(NumberWord::And);
        }
    }
    if half {
        group = Some(group.unwrap_or(Decimal::ZERO).plus(Decimal::parse("0.5")?)?);
    }
    total.plus(group.unwrap_or(Decimal::ZERO))
}

/// The digits one after the other: `twelve oh six` is 1206, `two point four` is 2.4.
pub(super) fn digits(words: &[NumberWord]) -> Option<String> {
    if let [NumberWord::Digit(0), rest @ ..] = words
        && !rest.is_empty()
    {
        return Some(format!("0{}", digits(rest)?));
    }
    let mut digits = String::new();
    let mut tens: Option<i64> = None;
    for &word in words {
        if let (Some(number), NumberWord::Digit(digit)) = (tens, word)
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
            NumberWord::Digit(digit) => digits.push_str(&digit.to_string()),
            NumberWord::Teen(number) => digits.push_str(&number.to_string()),
            NumberWord::Tens(number) => tens = Some(number),
            NumberWord::Point => digits.push('.'),
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
