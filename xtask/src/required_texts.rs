//! Derives texts that every match of a pattern contains. With them, most patterns need not be tried
//! or even compiled.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// Character before a searched text, so that `^` is a character too.
pub(crate) const START: char = '\u{2}';
/// Character after a searched text, so that `$` is a character too.
pub(crate) const END: char = '\u{3}';

/// Parts of most User-Agents, which narrow the search little.
pub(crate) const COMMON: &str = "mozilla/5.0 (linux; android 10; mobile; macintosh; intel mac os x 10; \
    iphone; cpu iphone os like; windows nt 10.0; win64; x64; build/; k) applewebkit/537.36 (khtml, \
    like gecko) version/ chrome/ mobile safari/537.36 firefox/ http:// https:// .com compatible; bot";

/// Maximum number of texts that a part of a pattern is expanded to.
const MAX_EXPANSIONS: usize = 24;
/// Maximum number of letters of an expanded class.
const MAX_LETTERS: usize = 4;
/// Maximum number of expanded repetitions.
const MAX_REPETITIONS: u32 = 2;

/// Lower-case texts. Each match contains at least one of them.
pub(crate) type Alternatives = Vec<String>;

/// Returns the alternatives of several parts of a pattern. A match contains one text of each.
pub(crate) fn required_texts(pattern: &str, any_case: bool) -> Result<Vec<Alternatives>, String> {
    let mut parser = regex_syntax::ParserBuilder::new();
    let parser = parser.unicode(false).utf8(false).case_insensitive(any_case);
    let hir = parser.build().parse(pattern).map_err(|error| error.to_string())?;
    let mut required = texts(&hir).required();
    for alternatives in &mut required {
        alternatives.sort_unstable();
        alternatives.dedup();
        // A text that contains a shorter alternative is redundant.
        let all = alternatives.clone();
        alternatives
            .retain(|text| !all.iter().any(|other| other != text && text.contains(other.as_str())));
    }
    required.sort_unstable();
    required.dedup();
    Ok(required)
}

/// The texts that a part of a pattern matches.
enum Texts {
    /// Exactly these lower-case texts.
    Exactly(Alternatives),
    /// Texts that contain one alternative of each list.
    Containing(Vec<Alternatives>),
}

impl Texts {
    fn nothing() -> Self {
        Self::Exactly(vec![String::new()])
    }

    fn anything() -> Self {
        Self::Containing(Vec::new())
    }

    fn required(self) -> Vec<Alternatives> {
        match self {
            Self::Exactly(texts) if texts.iter().any(String::is_empty) => Vec::new(),
            Self::Exactly(texts) => vec![texts],
            Self::Containing(required) => required,
        }
    }
}

fn texts(hir: &Hir) -> Texts {
    match hir.kind() {
        HirKind::Look(Look::Start) => Texts::Exactly(vec![START.to_string()]),
        HirKind::Look(Look::End) => Texts::Exactly(vec![END.to_string()]),
        HirKind::Empty | HirKind::Look(_) => Texts::nothing(),
        HirKind::Literal(literal) => Texts::Exactly(vec![lower_case(&literal.0)]),
        HirKind::Class(class) => letters(class).map_or_else(Texts::anything, Texts::Exactly),
        HirKind::Capture(capture) => texts(&capture.sub),
        HirKind::Repetition(repetition) => match (repetition.max, texts(&repetition.sub)) {
            (Some(max @ ..=MAX_REPETITIONS), Texts::Exactly(once)) => {
                let times = repetition.min..=max;
                let expanded = times.map(|times| vec![once.as_slice(); times as usize]);
                let expanded: Option<Vec<_>> = expanded.map(|parts| expand(&parts)).collect();
                expanded.map(|all| all.concat()).map_or_else(Texts::anything, Texts::Exactly)
            }
            (_, once) if repetition.min > 0 => Texts::Containing(once.required()),
            _ => Texts::anything(),
        },
        HirKind::Concat(parts) => sequence(parts),
        HirKind::Alternation(parts) => one_of(parts.iter().map(texts).collect()),
    }
}

/// Lowercases ASCII letters. Searches do not depend on other bytes.
fn lower_case(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).to_ascii_lowercase()
}

/// Returns the letters of a class, if there are at most [`MAX_LETTERS`].
fn letters(class: &Class) -> Option<Alternatives> {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Bytes(class) => {
            let ranges = class.ranges().iter();
            ranges.map(|range| (range.start().into(), range.end().into())).collect()
        }
        Class::Unicode(class) => {
            let ranges = class.ranges().iter();
            ranges.map(|range| (range.start().into(), range.end().into())).collect()
        }
    };
    let mut letters = Vec::new();
    for number in ranges.into_iter().flat_map(|(start, end)| start..=end) {
        let letter =
            char::from_u32(number).filter(char::is_ascii)?.to_ascii_lowercase().to_string();
        if !letters.contains(&letter) {
            letters.push(letter);
        }
        if letters.len() > MAX_LETTERS {
            return None;
        }
    }
    Some(letters)
}

/// Returns all concatenations of one text per part, if there are at most [`MAX_EXPANSIONS`].
fn expand(parts: &[&[String]]) -> Option<Alternatives> {
    let start = vec![String::new()];
    parts.iter().try_fold(start, |starts, part| {
        if starts.len() * part.len() > MAX_EXPANSIONS {
            return None;
        }
        let with = |start: &String| part.iter().map(|end| format!("{start}{end}")).collect();
        Some(starts.iter().flat_map(|start| -> Vec<String> { with(start) }).collect())
    })
}

fn sequence(parts: &[Hir]) -> Texts {
    let mut required = Vec::new();
    let mut is_exact = true;
    let mut run = vec![String::new()];
    for part in parts {
        let part = texts(part);
        if let Texts::Exactly(texts) = &part
            && let Some(longer) = expand(&[&run, texts])
        {
            run = longer;
            continue;
        }
        is_exact = false;
        let before = std::mem::replace(&mut run, vec![String::new()]);
        required.extend(Texts::Exactly(before).required());
        match part {
            Texts::Exactly(texts) => run = texts,
            Texts::Containing(more) => required.extend(more),
        }
    }
    if is_exact {
        return Texts::Exactly(run);
    }
    required.extend(Texts::Exactly(run).required());
    Texts::Containing(required)
}

fn one_of(parts: Vec<Texts>) -> Texts {
    let mut exact = Vec::new();
    let mut any = Vec::new();
    let mut is_exact = true;
    for part in parts {
        if let Texts::Exactly(texts) = &part {
            exact.extend(texts.iter().cloned());
        } else {
            is_exact = false;
        }
        // One required list of each part is enough.
        any.push(part.required().into_iter().max_by_key(selectivity));
    }
    if is_exact && exact.len() <= MAX_EXPANSIONS {
        return Texts::Exactly(exact);
    }
    let any: Option<Vec<Alternatives>> = any.into_iter().collect();
    any.map_or_else(Texts::anything, |any| Texts::Containing(vec![any.concat()]))
}

/// Ranks alternatives: rare texts first, then longer ones.
fn selectivity(texts: &Alternatives) -> (bool, Option<usize>) {
    let is_rare = !texts.iter().any(|text| COMMON.contains(text.as_str()));
    (is_rare, texts.iter().map(String::len).min())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_required_texts_of_patterns() {
        for (pattern, expected) in [
            ("Chrome/(\\d+)", &[&["chrome/"][..]][..]),
            ("(Foo|Bar)Baz [0-9]+ end", &[&[" end"], &["barbaz ", "foobaz "]]),
            ("^LG", &[&["\u{2}lg"]]),
            ("a?b{1,2}$", &[&["b\u{3}"]]),
            ("x(?:yz)?", &[&["x"]]),
            ("(ab.*cd|ef+gh)", &[&["cd", "gh"]]),
            (".*", &[]),
            ("", &[]),
        ] {
            let expected: Vec<Vec<String>> =
                expected.iter().map(|it| it.iter().map(ToString::to_string).collect()).collect();
            assert_eq!(required_texts(pattern, false), Ok(expected), "{pattern}");
        }
        assert_eq!(required_texts("aB", true), Ok(vec![vec!["ab".to_owned()]]));
        assert!(required_texts("(", false).is_err());
    }
}
