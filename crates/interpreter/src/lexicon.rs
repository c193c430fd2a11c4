//! World knowledge, read from `data/en/` once per process: synonyms, ordinary words, units and cue
//! phrases.

use std::array;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use crate::cue::{Class, CueSet};
use crate::fold::{self, ByKey, Key, KeyState};
use crate::number::NumberWord;
use crate::word::Word;

/// A group of synonyms.
pub(crate) type Concept = u16;

/// The relation of a word to its concept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A name, which a value of a request can have.
    Name,
    /// A word that only leads to the concept: `iphone` to iOS, `german` to Germany.
    Alias,
    /// A name only in capitals: `LHR` for an airport.
    Code,
    /// The maker of a product: `apple` for Safari. It counts only next to the category's label.
    Maker,
}

/// A unit of measure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    pub(crate) dimension: &'static str,
    /// The factor to the dimension's base unit, as a fraction.
    pub(crate) factor: (i128, i128),
}

/// A comparative adjective: `slower`, `cheaper`.
#[derive(Debug, Clone)]
pub(crate) struct Comparative {
    pub(crate) greater: bool,
    pub(crate) dimensions: Vec<&'static str>,
}

classes! {
    /// The effect of an affix.
    Affix: Absence, Gerund, Opposite, Participle, Past,
}

type ByWord<T> = HashMap<&'static str, T, KeyState>;

/// All knowledge that does not depend on a request.
#[derive(Default)]
pub(crate) struct Lexicon {
    words: ByKey<Vec<(Concept, Role)>>,
    concepts: Vec<Vec<&'static str>>,
    phrases: ByKey<CueSet>,
    /// The number of words in the longest cue phrase.
    pub(crate) longest_phrase: usize,
    /// Cue words that are long enough to be recognized when misspelled.
    pub(crate) phrase_words: Vec<&'static str>,
    /// Words with a slash, the longest first.
    pub(crate) slashed: Vec<&'static str>,
    cue_words: HashSet<&'static str, KeyState>,
    classes: ByWord<Vec<Word>>,
    units: ByWord<Unit>,
    dimensions: ByWord<Vec<&'static str>>,
    comparatives: ByWord<Comparative>,
    antonyms: ByWord<Vec<&'static str>>,
    number_words: ByWord<NumberWord>,
    /// Factors after digits. `true`: the factor must be joined to the digits.
    scales: ByWord<(i128, bool)>,
    numerals: ByWord<&'static str>,
    affixes: Vec<(Affix, &'static str)>,
    absences: ByWord<Vec<&'static str>>,
}

/// Files of synonym groups, with the roles of the names and of the other words.
const CONCEPT_FILES: [(&str, Role, Role); 6] = [
    (include_str!("../data/en/technology.txt"), Role::Name, Role::Alias),
    (include_str!("../data/en/everyday.txt"), Role::Name, Role::Alias),
    (include_str!("../data/en/http-statuses.txt"), Role::Name, Role::Alias),
    (include_str!("../data/en/cloud-regions.txt"), Role::Name, Role::Alias),
    (include_str!("../data/en/airports.txt"), Role::Code, Role::Alias),
    (include_str!("../data/en/makers.txt"), Role::Name, Role::Maker),
];

/// Pairs of files with groups: from published data, and written by hand to extend them.
const PUBLISHED_FILES: [[&str; 2]; 3] = [
    [include_str!("../data/en/countries.txt"), include_str!("../data/en/countries-said.txt")],
    [include_str!("../data/en/languages.txt"), include_str!("../data/en/languages-said.txt")],
    [include_str!("../data/en/currencies.txt"), include_str!("../data/en/currencies-said.txt")],
];

fn lines(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("# "))
}

/// Returns the rows of a file, each with `N` fields.
fn rows<const N: usize>(file: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    lines(file).map(|line| {
        let mut fields = line.split('\t');
        array::from_fn(|_| fields.next().unwrap_or_default())
    })
}

/// Returns a word without an affix, or `None` if the word does not have it.
fn without<'w>(word: &'w str, affix: &str) -> Option<&'w str> {
    match affix.strip_prefix('-') {
        Some(suffix) => word.strip_suffix(suffix),
        None => word.strip_prefix(affix.trim_end_matches('-')),
    }
}

/// Returns the key of a phrase, which is split like values and queries.
pub(crate) fn phrase_key(phrase: &str) -> Key {
    let pieces = fold::atoms(phrase);
    if pieces.is_empty() {
        return Key::of([phrase]);
    }
    Key::of(pieces.iter().map(|piece| piece.folded.as_str()))
}

/// Returns the key of a cue phrase. The key includes spaces, so `at least` is not `atleast`.
pub(crate) fn cue_key<'a>(words: impl IntoIterator<Item = &'a str>) -> Key {
    words.into_iter().fold(Key::of([]), |key, word| key.then(word).then(" "))
}

/// Splits a list at commas; `","` is the comma itself.
fn items(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split(", ").map(str::trim).map(|item| if item == "\",\"" { "," } else { item })
}

/// The rule or class that an ablation switches off.
static ABLATED: OnceLock<String> = OnceLock::new();

/// Switches off a rule, or a class of phrases or words, for the rest of the process. Call it before
/// the first interpretation, to measure what the rule or class is needed for.
pub fn ablate(name: &str) {
    let _ = ABLATED.set(name.to_owned());
}

/// `false` if the process runs without this rule or class.
pub(crate) fn is_enabled(name: &&str) -> bool {
    ABLATED.get().is_none_or(|ablated| ablated != name)
}

impl Lexicon {
    /// Returns the only lexicon of the process.
    pub(crate) fn get() -> &'static Self {
        static LEXICON: OnceLock<Lexicon> = OnceLock::new();
        LEXICON.get_or_init(Self::read)
    }

    fn read() -> Self {
        let mut lexicon = Self::default();
        lexicon.words.reserve(8192);
        lexicon.concepts.reserve(3072);
        for (file, names, others) in CONCEPT_FILES {
            lines(file).for_each(|line| lexicon.read_group(line, names, others, None));
        }
        for files in PUBLISHED_FILES {
            let first = lexicon.concepts.len();
            for line in files.into_iter().flat_map(lines) {
                lexicon.read_group(line, Role::Name, Role::Alias, Some(first));
            }
        }
        lexicon.read_words();
        lexicon.read_phrases();
        lexicon.read_units();
        lexicon.read_numbers();
        let words = lexicon.units.keys().chain(&lexicon.cue_words);
        let is_slashed = |it: &&str| it.contains('/') && it.contains(char::is_alphabetic);
        lexicon.slashed = words.copied().filter(is_slashed).collect();
        lexicon.slashed.sort_unstable_by_key(|it| (usize::MAX - it.len(), *it));
        lexicon
    }

    /// Reads `names > others` in these roles. The words extend the group with the same first name,
    /// if a group from index `first` on has it.
    fn read_group(&mut self, line: &'static str, names: Role, others: Role, first: Option<usize>) {
        let (list, aliases) = line.split_once(" > ").unwrap_or((line, ""));
        let name = items(list).next().map_or(Key::of([]), phrase_key);
        let mut same = self.concepts_of(name).iter().map(|found| found.0);
        let group = same.find(|&it| first.is_some_and(|first| usize::from(it) >= first));
        let Ok(concept) = group.map_or_else(|| self.concepts.len().try_into(), Ok) else { return };
        let mut members = Vec::new();
        for (list, role) in [(list, names), (aliases, others)] {
            for word in items(list).filter(|word| !word.is_empty()) {
                let roles = self.words.entry(phrase_key(word)).or_default();
                if !roles.contains(&(concept, role)) {
                    roles.push((concept, role));
                    members.push(word);
                }
            }
        }
        match self.concepts.get_mut(usize::from(concept)) {
            Some(group) => group.append(&mut members),
            None => self.concepts.push(members),
        }
    }

    fn read_words(&mut self) {
        self.classes.reserve(2048);
        let names = Word::by_name();
        for [word, classes] in rows(include_str!("../data/en/words.txt")) {
            let classes = classes.split(' ').filter(is_enabled).filter_map(|it| names.get(it));
            self.classes.entry(word).or_default().extend(classes.copied());
        }
        for [one, other] in rows(include_str!("../data/en/antonyms.txt")) {
            self.antonyms.entry(one).or_default().push(other);
            self.antonyms.entry(other).or_default().push(one);
        }
        let names = Affix::by_name();
        for [use_of, affix] in rows(include_str!("../data/en/affixes.txt")) {
            self.affixes.extend(names.get(use_of).map(|use_of| (*use_of, affix)));
        }
        for [word, labels] in rows(include_str!("../data/en/absences.txt")) {
            self.absences.insert(word, labels.split(' ').collect());
        }
    }

    fn read_phrases(&mut self) {
        self.phrases.reserve(2048);
        self.cue_words.reserve(1024);
        let names = Class::by_name();
        for [phrase, classes] in rows(include_str!("../data/en/phrases.txt")) {
            let words: Vec<&str> = phrase.split(' ').collect();
            self.longest_phrase = self.longest_phrase.max(words.len());
            self.cue_words.extend(words.iter().copied());
            let cue = self.phrases.entry(cue_key(words.iter().copied())).or_default();
            let mut bears_typos = false;
            for &class in classes.split(' ').filter(is_enabled).filter_map(|it| names.get(it)) {
                cue.insert(class);
                bears_typos |= class.bears_typos();
            }
            if let [word] = words[..]
                && word.len() >= 6
                && bears_typos
            {
                self.phrase_words.push(word);
            }
        }
    }

    fn read_units(&mut self) {
        for [dimension, factor, names] in rows(include_str!("../data/en/units.txt")) {
            let fraction = factor.split_once('/').and_then(|(numerator, denominator)| {
                Some((numerator.parse().ok()?, denominator.parse().ok()?))
            });
            let Some(factor) = fraction else { continue };
            for name in names.split(' ') {
                self.units.entry(name).or_insert(Unit { dimension, factor });
            }
        }
        for [dimension, words] in rows(include_str!("../data/en/dimensions.txt")) {
            for word in words.split(' ') {
                self.dimensions.entry(word).or_default().push(dimension);
            }
        }
        for [sign, words, dimensions] in rows(include_str!("../data/en/comparatives.txt")) {
            for word in words.split(' ') {
                let dimensions = dimensions.split(' ').collect();
                self.comparatives.insert(word, Comparative { greater: sign == "gt", dimensions });
            }
        }
    }

    fn read_numbers(&mut self) {
        for [word, kind, value] in rows(include_str!("../data/en/numbers.txt")) {
            let Ok(number) = value.parse::<i64>() else { continue };
            match kind {
                "roman" => _ = self.numerals.insert(word, value),
                "scale" | "joint_scale" => {
                    self.scales.insert(word, (number.into(), kind != "scale"));
                }
                _ => {
                    let found = NumberWord::parse(kind, number);
                    self.number_words.extend(found.map(|found| (word, found)));
                }
            }
        }
    }

    pub(crate) fn number_word(&self, word: &str) -> Option<NumberWord> {
        self.number_words.get(word).copied()
    }

    /// Returns the factor of a word after digits. `joint`: the word is joined to the digits.
    pub(crate) fn scale(&self, word: &str, joint: bool) -> Option<i128> {
        self.scales.get(word).filter(|scale| joint || !scale.1).map(|scale| scale.0)
    }

    /// Returns the digits of a Roman numeral up to twelve.
    pub(crate) fn roman(&self, numeral: &str) -> Option<&'static str> {
        self.numerals.get(numeral).copied()
    }

    /// Returns the concepts of a text, given by its key.
    pub(crate) fn concepts_of(&self, key: Key) -> &[(Concept, Role)] {
        self.words.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Returns all words of a concept.
    pub(crate) fn members(&self, concept: Concept) -> &[&'static str] {
        self.concepts.get(usize::from(concept)).map_or(&[], Vec::as_slice)
    }

    /// Returns the classes of a cue phrase, or `None` if the text is none.
    pub(crate) fn phrase(&self, key: Key) -> Option<CueSet> {
        self.phrases.get(&key).copied()
    }

    /// `true` if a cue phrase contains the word.
    pub(crate) fn is_cue_word(&self, word: &str) -> bool {
        self.cue_words.contains(word)
    }

    /// `true` if a word has the class.
    pub(crate) fn is(&self, word: &str, class: Word) -> bool {
        self.classes.get(word).is_some_and(|classes| classes.contains(&class))
    }

    /// `true` if the word is mostly an ordinary verb or function word.
    pub(crate) fn is_verb(&self, word: &str) -> bool {
        self.is(word, Word::Verb) || self.is(word, Word::Function)
    }

    pub(crate) fn unit(&self, word: &str) -> Option<Unit> {
        self.units.get(word).copied()
    }

    /// Returns the dimensions that a label's word indicates.
    pub(crate) fn dimensions(&self, word: &str) -> &[&'static str] {
        self.dimensions.get(word).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn comparative(&self, word: &str) -> Option<&Comparative> {
        self.comparatives.get(word)
    }

    /// Returns the label words for which a word states that there is no value.
    pub(crate) fn absences(&self, word: &str) -> &[&'static str] {
        self.absences.get(word).map_or(&[], Vec::as_slice)
    }

    fn affixes(&self, use_of: Affix) -> impl Iterator<Item = &'static str> {
        self.affixes.iter().filter(move |affix| affix.0 == use_of).map(|affix| affix.1)
    }

    /// Returns a word without its affix of absence: `assigned` for `unassigned`.
    pub(crate) fn absence_base<'w>(&self, word: &'w str) -> Option<&'w str> {
        let mut bases = self.affixes(Affix::Absence).filter_map(|affix| without(word, affix));
        bases.find(|base| base.len() > 2)
    }

    /// Returns a word with each prefix of absence.
    pub(crate) fn absent(&self, word: &str) -> impl Iterator<Item = String> {
        let prefixes = self.affixes(Affix::Absence).filter_map(|affix| affix.strip_suffix('-'));
        prefixes.map(move |prefix| format!("{prefix}{word}"))
    }

    /// Returns possible opposites of a word: `unhandled` for `handled`, `loaded` for `unloaded`.
    pub(crate) fn opposites(&self, word: &str) -> Vec<String> {
        let prefixes = self.affixes(Affix::Opposite).map(|affix| affix.trim_end_matches('-'));
        match self.opposite_base(word) {
            Some(base) => vec![base.to_owned()],
            None => prefixes.map(|prefix| format!("{prefix}{word}")).collect(),
        }
    }

    /// Returns a word without the prefix that turns it into its opposite.
    pub(crate) fn opposite_base<'w>(&self, word: &'w str) -> Option<&'w str> {
        let prefixes = self.affixes(Affix::Opposite).map(|affix| affix.trim_end_matches('-'));
        prefixes
            .filter(|it| !self.is(it, Word::InOpposite))
            .find_map(|prefix| word.strip_prefix(prefix).filter(|base| base.len() > 3))
    }

    /// `true` if the word has such an affix, or is one.
    pub(crate) fn has_affix(&self, word: &str, use_of: Affix) -> bool {
        self.affixes(use_of).any(|affix| match affix.strip_prefix('-') {
            Some(suffix) => word.ends_with(suffix),
            None => word == affix.trim_end_matches('-'),
        })
    }

    pub(crate) fn antonyms(&self, word: &str) -> &[&'static str] {
        self.antonyms.get(word).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_files_use_only_defined_classes() {
        let (cues, words) = (Class::by_name(), Word::by_name());
        for [phrase, classes] in rows(include_str!("../data/en/phrases.txt")) {
            assert!(!phrase.contains('\''), "{phrase}");
            assert!(classes.split(' ').all(|class| cues.contains_key(class)), "{phrase}");
        }
        for [word, classes] in rows(include_str!("../data/en/words.txt")) {
            assert!(classes.split(' ').all(|class| words.contains_key(class)), "{word}");
        }
    }

    #[test]
    fn reads_each_line_of_the_tables() {
        assert_eq!(Lexicon::get().unit("ms").map(|unit| unit.factor), Some((1, 1000)));
        for (file, fields) in [
            (include_str!("../data/en/absences.txt"), 2),
            (include_str!("../data/en/affixes.txt"), 2),
            (include_str!("../data/en/antonyms.txt"), 2),
            (include_str!("../data/en/comparatives.txt"), 3),
            (include_str!("../data/en/dimensions.txt"), 2),
            (include_str!("../data/en/numbers.txt"), 3),
            (include_str!("../data/en/units.txt"), 3),
        ] {
            assert!(lines(file).all(|line| line.split('\t').count() == fields));
        }
    }

    #[test]
    fn finds_a_concept_by_each_of_its_words() {
        let lexicon = Lexicon::get();
        let concepts = |word: &str| {
            lexicon.concepts_of(phrase_key(word)).iter().map(|found| found.0).collect::<Vec<_>>()
        };
        let germany = concepts("Germany");
        for word in ["DE", "german", "Deutschland"] {
            assert!(concepts(word).iter().any(|concept| germany.contains(concept)), "{word}");
        }
    }
}
