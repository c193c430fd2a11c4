//! Texts that just match a pattern, and texts that just do not match.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Number of repetitions if there is no maximum.
const UNBOUNDED_REPETITIONS: u32 = 1;

/// Characters that patterns might not allow.
const OTHERS: [char; 14] =
    ['/', 'ß', '\0', ' ', '!', '0', 'G', '_', 'a', '-', '.', '\n', '\u{7f}', '😀'];

/// The desired text of a pattern.
#[derive(Clone, Copy)]
struct Wanted {
    /// `true` for the most repetitions, `false` for the fewest.
    longest: bool,
    /// Index of the alternative, and of the end of a character class.
    index: usize,
}

/// Returns texts at the edges of a pattern: the shortest and longest of each alternative, with the
/// first and last characters of all classes.
pub(super) fn matching(pattern: &str) -> Vec<String> {
    let hir = regex_syntax::parse(pattern).expect("the pattern is valid");
    let mut texts = Vec::new();
    for index in 0..3 {
        for longest in [false, true] {
            let mut text = String::new();
            write(&hir, Wanted { longest, index }, &mut text);
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
    }
    texts
}

fn write(hir: &Hir, wanted: Wanted, text: &mut String) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).expect("text")),
        HirKind::Class(Class::Unicode(class)) => {
            let mut ends: Vec<char> =
                class.ranges().iter().flat_map(|range| [range.start(), range.end()]).collect();
            ends.dedup();
            text.push(ends[(wanted.index + text.chars().count()) % ends.len()]);
        }
        HirKind::Class(Class::Bytes(_)) => unreachable!("patterns are of text"),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(repetition.min + UNBOUNDED_REPETITIONS);
            for _ in 0..if wanted.longest { most } else { repetition.min } {
                write(&repetition.sub, wanted, text);
            }
        }
        HirKind::Capture(capture) => write(&capture.sub, wanted, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(part, wanted, text)),
        HirKind::Alternation(parts) => write(&parts[wanted.index % parts.len()], wanted, text),
    }
}

/// Returns invalid texts that differ from a text in one character. At the beginning, middle and
/// end, one character is removed, inserted and replaced, if possible.
pub(super) fn neighbours(text: &str, is_allowed: impl Fn(&str) -> bool) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let end = characters.len();
    let mut texts = Vec::new();
    for at in [0, end / 2, end.saturating_sub(1), end] {
        let (before, after) = characters.split_at(at);
        let join = |middle: Option<char>, after: &[char]| -> String {
            before.iter().copied().chain(middle).chain(after.iter().copied()).collect()
        };
        let others = OTHERS.iter().cycle().skip(at + end).take(OTHERS.len());
        let put_in = others.clone().map(|other| join(Some(*other), after));
        texts.extend(put_in.into_iter().find(|text| !is_allowed(text)));
        if let Some(rest) = after.get(1..) {
            let replaced = others.map(|other| join(Some(*other), rest));
            texts.extend(replaced.into_iter().find(|text| !is_allowed(text)));
            texts.extend([join(None, rest)].into_iter().find(|text| !is_allowed(text)));
        }
    }
    texts.sort();
    texts.dedup();
    texts
}
