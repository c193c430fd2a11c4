//! The table of rules.
//!
//! A rule's pattern is tried only on a text with the rule's required parts, which few texts have.
//! It is compiled on first use: compiling all patterns takes a quarter of a second.

use std::borrow::Cow;
use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Captures, Regex, RegexBuilder};

/// Marks for the start and the end of a text in required parts.
const START: char = '\u{2}';
const END: char = '\u{3}';
/// Separators of required parts, and of their alternatives.
const AND: char = '\u{1e}';
const OR: char = '\u{1f}';
/// Maximum replacements of a rule.
const REPLACEMENTS: usize = 5;
/// Maximum bytes of a compiled pattern. The largest takes a tenth of it.
const MAX_COMPILED_BYTES: usize = 1 << 20;

static KNOWN: LazyLock<Rules> = LazyLock::new(|| Rules::parse(include_str!("data/rules.txt")));

/// The kind of value that a rule finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Browser,
    Os,
    Device,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Browser, Self::Os, Self::Device];

    fn parse(letter: &str) -> Option<Self> {
        match letter {
            "b" => Some(Self::Browser),
            "o" => Some(Self::Os),
            "d" => Some(Self::Device),
            _ => None,
        }
    }
}

struct Rule {
    kind: Kind,
    any_case: bool,
    /// Parts that a text must contain, except the indexed one.
    required: &'static str,
    /// The pattern and the replacements, with a tab before each replacement. Few rules are tried, so
    /// a cold start does not split the others.
    fields: &'static str,
    /// `None` for an invalid pattern. A test checks that there is none.
    compiled: OnceLock<Option<Regex>>,
}

/// All rules, with an index of those that can match.
pub(super) struct Rules {
    all: Vec<Rule>,
    /// Three letters and a rule that requires them, in ascending order.
    index: Vec<(Letters, u16)>,
    /// Rules that are not in the index.
    unindexed: Vec<u16>,
}

type Letters = [u8; 3];

/// The match of a rule in a text.
pub(super) struct Matched<'t> {
    replacements: [&'static str; REPLACEMENTS],
    captures: Captures<'t>,
}

impl Rules {
    /// Returns the rules of ua-parser.
    pub(super) fn known() -> &'static Self {
        &KNOWN
    }

    fn parse(table: &'static str) -> Self {
        let mut known = Self { all: Vec::new(), index: Vec::new(), unindexed: Vec::new() };
        for line in table.lines() {
            known.add(line);
        }
        known.index.sort_unstable();
        known
    }

    /// Adds the rule of a line. Skips a line without a rule; a test checks that there is none.
    fn add(&mut self, line: &'static str) -> Option<()> {
        let (kind, line) = line.split_once('\t')?;
        let (case, line) = line.split_once('\t')?;
        let (required, fields) = line.split_once('\t')?;
        let (kind, number) = (Kind::parse(kind)?, u16::try_from(self.all.len()).ok()?);
        let (first, required) = required.split_once(AND).unwrap_or((required, ""));
        if first.is_empty() {
            self.unindexed.push(number);
        }
        let letters = first.split(OR).filter_map(|text| text.as_bytes().first_chunk());
        self.index.extend(letters.map(|letters| (*letters, number)));
        let (any_case, compiled) = (case == "i", OnceLock::new());
        self.all.push(Rule { kind, any_case, required, fields, compiled });
        Some(())
    }

    /// Returns the match of the first rule of each kind.
    pub(super) fn first_matches<'t>(&self, text: &'t str) -> [Option<Matched<'t>>; 3] {
        let lower_case = format!("{START}{}{END}", text.to_ascii_lowercase());
        let candidates = self.candidates(&lower_case);
        Kind::ALL.map(|kind| {
            let mut rules = candidates.iter().filter_map(|it| self.all.get(usize::from(*it)));
            rules.find_map(|rule| {
                let may_match = rule.kind == kind && rule.has_required_parts(&lower_case);
                may_match.then(|| rule.matched(text)).flatten()
            })
        })
    }

    /// Returns the numbers of rules that can match a text, in order.
    fn candidates(&self, lower_case: &str) -> Vec<u16> {
        let mut candidates = self.unindexed.clone();
        for letters in lower_case.as_bytes().array_windows() {
            let first = self.index.partition_point(|(known, _)| known < letters);
            let found = self.index.iter().skip(first).take_while(|(known, _)| known == letters);
            candidates.extend(found.map(|(_, rule)| *rule));
        }
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }
}

impl Rule {
    fn has_required_parts(&self, lower_case: &str) -> bool {
        let mut parts = self.required.split(AND).filter(|part| !part.is_empty());
        parts.all(|part| part.split(OR).any(|text| lower_case.contains(text)))
    }

    fn matched<'t>(&self, text: &'t str) -> Option<Matched<'t>> {
        let mut fields = self.fields.split('\t');
        let pattern = fields.next().unwrap_or_default();
        let compiled = self.compiled.get_or_init(|| {
            RegexBuilder::new(pattern)
                .unicode(false)
                .case_insensitive(self.any_case)
                .size_limit(MAX_COMPILED_BYTES)
                .build()
                .ok()
        });
        let captures = compiled.as_ref()?.captures(text.as_bytes())?;
        let replacements = std::array::from_fn(|_| fields.next().unwrap_or_default());
        Some(Matched { replacements, captures })
    }
}

impl Matched<'_> {
    /// Returns the replacement with this number, filled with matched groups, or else a matched
    /// group.
    pub(super) fn text(&self, replacement: usize, group: Option<usize>) -> Option<String> {
        let text = match (self.replacements.get(replacement), group) {
            (None | Some(&""), None) => return None,
            (None | Some(&""), Some(group)) => self.group(group).into_owned(),
            (Some(template), _) => self.fill(template),
        };
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Returns a template with matched groups in place of `$1` to `$9`.
    fn fill(&self, template: &str) -> String {
        let mut parts = template.split('$');
        let mut filled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let number = part.chars().next().and_then(|digit| digit.to_digit(10));
            match number.and_then(|number| usize::try_from(number).ok()) {
                Some(number) => {
                    filled.push_str(&self.group(number));
                    filled.push_str(part.get(1..).unwrap_or_default());
                }
                None => filled.extend(["$", part]),
            }
        }
        filled
    }

    fn group(&self, number: usize) -> Cow<'_, str> {
        let bytes = self.captures.get(number).map(|group| group.as_bytes());
        String::from_utf8_lossy(bytes.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_valid_rule() {
        let rules = Rules::known();
        assert_eq!(rules.all.len(), include_str!("data/rules.txt").lines().count());
        for rule in &rules.all {
            rule.matched("");
            assert!(matches!(rule.compiled.get(), Some(Some(_))), "{}", rule.fields);
        }
        // The index contains all other rules.
        assert!(rules.unindexed.len() < 10, "{}", rules.unindexed.len());
    }
}
