//! Converts ua-parser's rules (`crates/errors/src/user_agent/data/README.md`) to the table with
//! which functions parse User-Agent headers.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write;

use serde::Deserialize;

use crate::required_texts::{Alternatives, COMMON, required_texts};

/// Length of an indexed text. Shorter texts select too many rules.
const INDEXED_LENGTH: usize = 3;
/// Maximum number of parts that a text must contain before its pattern is tried.
const MAX_CONDITIONS: usize = 4;
/// Cost of a common text, in rare texts.
const WEIGHT_OF_COMMON: usize = 1_000;

#[derive(Deserialize)]
struct Published {
    #[serde(rename = "user_agent_parsers")]
    user_agent: Vec<Parser>,
    #[serde(rename = "os_parsers")]
    os: Vec<Parser>,
    #[serde(rename = "device_parsers")]
    device: Vec<Parser>,
}

/// A rule with the replacements of all three kinds.
#[derive(Deserialize)]
struct Parser {
    regex: String,
    regex_flag: Option<String>,
    #[serde(alias = "os_replacement", alias = "device_replacement")]
    family_replacement: Option<String>,
    #[serde(alias = "os_v1_replacement", alias = "brand_replacement")]
    v1_replacement: Option<String>,
    #[serde(alias = "os_v2_replacement", alias = "model_replacement")]
    v2_replacement: Option<String>,
    #[serde(alias = "os_v3_replacement")]
    v3_replacement: Option<String>,
    #[serde(alias = "os_v4_replacement")]
    v4_replacement: Option<String>,
}

struct Rule {
    kind: char,
    parser: Parser,
    required: Vec<Alternatives>,
}

/// Returns the table, with a line per rule in the original order: kind, case sensitivity, required
/// texts, pattern and replacements.
pub(crate) fn generated(published: &str) -> Result<String, String> {
    let published: Published =
        yaml_serde::from_str(published).map_err(|error| error.to_string())?;
    let kinds = [('b', published.user_agent), ('o', published.os), ('d', published.device)];
    let mut rules = Vec::new();
    for (kind, parsers) in kinds {
        for parser in parsers {
            let required = required_texts(&parser.regex, parser.regex_flag.is_some())?;
            rules.push(Rule { kind, parser, required });
        }
    }
    let frequency = frequency(&rules);
    let mut table = String::new();
    for rule in &rules {
        let Parser { regex, regex_flag, .. } = &rule.parser;
        if regex.contains(['\t', '\n']) {
            return Err(format!("{regex}: has a tab or line break"));
        }
        let case = if regex_flag.is_some() { 'i' } else { '-' };
        let required = conditions(&rule.required, &frequency);
        let _ = write!(table, "{}\t{case}\t{required}\t{regex}", rule.kind);
        let parser = &rule.parser;
        let replacements = [
            &parser.family_replacement,
            &parser.v1_replacement,
            &parser.v2_replacement,
            &parser.v3_replacement,
            &parser.v4_replacement,
        ];
        let last = replacements.iter().rposition(|it| it.is_some()).map_or(0, |last| last + 1);
        for replacement in replacements.iter().take(last) {
            let _ = write!(table, "\t{}", replacement.as_deref().unwrap_or_default());
        }
        table.push('\n');
    }
    Ok(table)
}

type Frequency<'r> = HashMap<&'r [u8], usize>;

/// Counts each sequence of three letters in the required texts.
fn frequency(rules: &[Rule]) -> Frequency<'_> {
    let mut frequency = Frequency::new();
    for text in rules.iter().flat_map(|rule| rule.required.iter().flatten()) {
        for letters in text.as_bytes().windows(INDEXED_LENGTH) {
            *frequency.entry(letters).or_default() += 1;
        }
    }
    for letters in COMMON.as_bytes().windows(INDEXED_LENGTH).collect::<HashSet<_>>() {
        *frequency.entry(letters).or_default() += WEIGHT_OF_COMMON;
    }
    frequency
}

/// Returns the required parts, separated by U+001E, with alternatives separated by U+001F. The
/// first part is the index: the three rarest letters of each alternative of the rarest part. It is
/// empty if every part has a shorter alternative.
fn conditions(required: &[Alternatives], frequency: &Frequency<'_>) -> String {
    let of = |letters: &str| frequency.get(letters.as_bytes()).copied().unwrap_or_default();
    let rarest = |text: &str| {
        let ends = text.char_indices().map(|(start, _)| start..start + INDEXED_LENGTH);
        let letters = ends.filter_map(|range| text.get(range));
        letters.min_by_key(|letters| of(letters)).map(str::to_owned)
    };
    let cost = |part: &Alternatives| {
        let costs = part.iter().map(|text| rarest(text).map_or(usize::MAX, |it| of(&it)));
        costs.max().unwrap_or(usize::MAX)
    };
    let mut parts: Vec<&Alternatives> =
        required.iter().filter(|part| part.iter().all(|text| text.len() > 1)).collect();
    parts.sort_by_key(|part| cost(part));
    let indexed = parts.first().map(|part| part.iter().map(|text| rarest(text)).collect());
    let indexed: BTreeSet<String> = indexed.flatten().unwrap_or_default();
    let indexed = indexed.into_iter().collect::<Vec<_>>().join("\u{1f}");
    let others = parts.iter().take(MAX_CONDITIONS).map(|part| part.join("\u{1f}"));
    std::iter::once(indexed).chain(others).collect::<Vec<_>>().join("\u{1e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_a_line_for_each_rule() {
        let published = "
user_agent_parsers:
  - regex: '(Namoroka|Shiretoko)/(\\d+)'
    family_replacement: 'Firefox ($1)'
os_parsers:
  - regex: 'Tizen[/ ](\\d+)'
    os_replacement: 'Tizen'
    os_v2_replacement: '0'
device_parsers:
  - regex: '; (x\\d)'
    regex_flag: 'i'
    device_replacement: 'X $1'
    brand_replacement: 'X'
    model_replacement: '$1'
";
        let expected = "b\t-\tnam\u{1f}shi\u{1e}namoroka/\u{1f}shiretoko/\t(Namoroka|Shiretoko)/(\\d+)\tFirefox ($1)\n\
            o\t-\ten \u{1f}en/\u{1e}tizen \u{1f}tizen/\tTizen[/ ](\\d+)\tTizen\t\t0\n\
            d\ti\t\u{1e}; \t; (x\\d)\tX $1\tX\t$1\n";
        assert_eq!(generated(published).as_deref(), Ok(expected));
    }
}
