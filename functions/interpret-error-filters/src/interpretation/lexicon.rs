//! World knowledge, read from `data/` once per process: which words mean the same, which are
//! ordinary, what units measure, and the phrases that steer.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::sync::OnceLock;

use crate::interpretation::cue::{Class, CueSet};
use crate::interpretation::fold::{self, Key, KeyHasher};

/// A group of words that mean the same.
pub(crate) type Concept = u16;

/// How a word belongs to its concept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is a name: a request's value may be called so.
    Name,
    /// It only leads there: `iphone` to iOS, `german` to Germany.
    Alias,
    /// It makes the thing: `apple` of Safari. It leads there only beside the category's label.
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

type ByKey<T> = HashMap<Key, T, BuildHasherDefault<KeyHasher>>;

/// All that the interpreter knows before it sees a request.
pub(crate) struct Lexicon {
    words: ByKey<Vec<(Concept, Role)>>,
    concepts: Vec<Vec<&'static str>>,
    phrases: ByKey<CueSet>,
    longest_phrase: usize,
    phrase_words: Vec<&'static str>,
    steering_words: HashSet<&'static str>,
    common: HashSet<&'static str>,
    verbs: HashSet<&'static str>,
    function_words: HashSet<&'static str>,
    generic_labels: HashSet<&'static str>,
    stop_words: HashSet<&'static str>,
    participles: HashSet<&'static str>,
    units: HashMap<&'static str, Unit>,
    dimensions: HashMap<&'static str, Vec<&'static str>>,
    comparatives: HashMap<&'static str, Comparative>,
    antonyms: HashMap<&'static str, Vec<&'static str>>,
    absences: HashMap<&'static str, Vec<&'static str>>,
}

const CONCEPT_FILES: [&str; 7] = [
    include_str!("../../data/technology.txt"),
    include_str!("../../data/everyday.txt"),
    include_str!("../../data/countries.txt"),
    include_str!("../../data/languages.txt"),
    include_str!("../../data/currencies.txt"),
    include_str!("../../data/http-statuses.txt"),
    include_str!("../../data/cloud-regions.txt"),
];

fn lines(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("# "))
}

/// The key of a phrase, by the same cutting as values and queries have.
pub(crate) fn phrase_key(phrase: &str) -> Key {
    let pieces = fold::atoms(phrase);
    if pieces.is_empty() {
        return Key::of([phrase]);
    }
    Key::of(pieces.iter().map(|piece| piece.folded.as_str()))
}

/// The key of a steering phrase: its words with spaces, so that `at least` is not `atleast`.
pub(crate) fn steering_key<'a>(words: impl IntoIterator<Item = &'a str>) -> Key {
    words.into_iter().fold(Key::of([]), |key, word| key.then(word).then(" "))
}

/// Splits at commas; `","` is the comma itself.
fn items(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.split(", ").map(str::trim).map(|item| if item == "\",\"" { "," } else { item })
}

impl Lexicon {
    /// The one lexicon of the process.
    pub(crate) fn get() -> &'static Self {
        static LEXICON: OnceLock<Lexicon> = OnceLock::new();
        LEXICON.get_or_init(Self::read)
    }

    fn read() -> Self {
        let mut lexicon = Self {
            words: ByKey::with_capacity_and_hasher(8192, BuildHasherDefault::new()),
            concepts: Vec::with_capacity(1024),
            phrases: ByKey::with_capacity_and_hasher(2048, BuildHasherDefault::new()),
            longest_phrase: 1,
            phrase_words: Vec::new(),
            steering_words: HashSet::with_capacity(1024),
            common: include_str!("../../data/common-words.txt")
                .lines()
                .filter(|line| !line.starts_with('#'))
                .flat_map(str::split_whitespace)
                .collect(),
            verbs: word_set(include_str!("../../data/verbs.txt")),
            function_words: word_set(include_str!("../../data/function-words.txt")),
            generic_labels: word_set(include_str!("../../data/generic-labels.txt")),
            participles: word_set(include_str!("../../data/participles.txt")),
            stop_words: word_set(include_str!("../../data/stop-words.txt")),
            units: read_units(),
            dimensions: HashMap::new(),
            comparatives: HashMap::new(),
            antonyms: HashMap::new(),
            absences: HashMap::new(),
        };
        for file in CONCEPT_FILES {
            lines(file).for_each(|line| lexicon.read_group(line, Role::Alias));
        }
        for line in lines(include_str!("../../data/makers.txt")) {
            lexicon.read_group(line, Role::Maker);
        }
        lexicon.read_phrases();
        for line in lines(include_str!("../../data/dimensions.txt")) {
            if let Some((dimension, words)) = line.split_once('\t') {
                for word in words.split(' ') {
                    lexicon.dimensions.entry(word).or_default().push(dimension);
                }
            }
        }
        for line in lines(include_str!("../../data/comparatives.txt")) {
            let mut fields = line.split('\t');
            let (Some(sign), Some(words), Some(dimensions)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            for word in words.split(' ') {
                let dimensions = dimensions.split(' ').collect();
                lexicon
                    .comparatives
                    .insert(word, Comparative { greater: sign == "gt", dimensions });
            }
        }
        for line in lines(include_str!("../../data/antonyms.txt")) {
            if let Some((one, other)) = line.split_once('\t') {
                lexicon.antonyms.entry(one).or_default().push(other);
                lexicon.antonyms.entry(other).or_default().push(one);
            }
        }
        for line in lines(include_str!("../../data/absences.txt")) {
            if let Some((word, labels)) = line.split_once('\t') {
                lexicon.absences.insert(word, labels.split(' ').collect());
            }
        }
        lexicon
    }

    /// Reads `names > others`, the others in the given role.
    fn read_group(&mut self, line: &'static str, others: Role) {
        let Ok(concept) = Concept::try_from(self.concepts.len()) else { return };
        let (names, aliases) = line.split_once(" > ").unwrap_or((line, ""));
        let mut members = Vec::new();
        for (list, role) in [(names, Role::Name), (aliases, others)] {
            for word in items(list).filter(|word| !word.is_empty()) {
                self.words.entry(phrase_key(word)).or_default().push((concept, role));
                members.push(word);
            }
        }
        self.concepts.push(members);
    }

    fn read_phrases(&mut self) {
        for line in lines(include_str!("../../data/phrases.txt")) {
            let Some((name, list)) = line.split_once('\t') else { continue };
            let Some(class) = Class::parse(name) else { continue };
            for phrase in items(list) {
                let words: Vec<&str> = phrase.split(' ').collect();
                self.longest_phrase = self.longest_phrase.max(words.len());
                self.steering_words.extend(words.iter().copied());
                let key = steering_key(words.iter().copied());
                self.phrases.entry(key).or_default().insert(class);
                if let [word] = words[..]
                    && word.len() >= 6
                    && class.bears_typos()
                {
                    self.phrase_words.push(word);
                }
            }
        }
    }

    /// The concepts that a text, given by its key, belongs to.
    pub(crate) fn concepts_of(&self, key: Key) -> &[(Concept, Role)] {
        self.words.get(&key).map_or(&[], Vec::as_slice)
    }

    /// All words of a concept.
    pub(crate) fn members(&self, concept: Concept) -> &[&'static str] {
        self.concepts.get(usize::from(concept)).map_or(&[], Vec::as_slice)
    }

    /// What a steering phrase steers; none when it is none.
    pub(crate) fn phrase(&self, key: Key) -> Option<CueSet> {
        self.phrases.get(&key).copied()
    }

    /// Whether the word stands in any steering phrase.
    pub(crate) fn is_steering_word(&self, word: &str) -> bool {
        self.steering_words.contains(word)
    }

    /// The most words that a steering phrase has.
    pub(crate) fn longest_phrase(&self) -> usize {
        self.longest_phrase
    }

    /// Steering words that are long enough to be recognised when misspelt.
    pub(crate) fn phrase_words(&self) -> &[&'static str] {
        &self.phrase_words
    }

    pub(crate) fn is_common(&self, word: &str) -> bool {
        self.common.contains(word)
    }

    /// Whether the word is mostly an ordinary verb or function word.
    pub(crate) fn is_verb(&self, word: &str) -> bool {
        self.verbs.contains(word) || self.function_words.contains(word)
    }

    pub(crate) fn is_function_word(&self, word: &str) -> bool {
        self.function_words.contains(word)
    }

    pub(crate) fn is_generic_label(&self, word: &str) -> bool {
        self.generic_labels.contains(word)
    }

    /// Whether the word is too ordinary to name a value that it is a part of.
    pub(crate) fn is_weak_part(&self, word: &str) -> bool {
        self.stop_words.contains(word)
    }

    /// Whether the word is an irregular participle.
    pub(crate) fn is_participle(&self, word: &str) -> bool {
        self.participles.contains(word)
    }

    pub(crate) fn unit(&self, word: &str) -> Option<Unit> {
        self.units.get(word).copied()
    }

    /// What a word of a label says about what is measured.
    pub(crate) fn dimensions(&self, word: &str) -> &[&'static str] {
        self.dimensions.get(word).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn comparative(&self, word: &str) -> Option<&Comparative> {
        self.comparatives.get(word)
    }

    /// The label words of which a word says that there is no value.
    pub(crate) fn absences(&self, word: &str) -> &[&'static str] {
        self.absences.get(word).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn antonyms(&self, word: &str) -> &[&'static str] {
        self.antonyms.get(word).map_or(&[], Vec::as_slice)
    }
}

fn word_set(file: &'static str) -> HashSet<&'static str> {
    lines(file).flat_map(str::split_whitespace).collect()
}

fn read_units() -> HashMap<&'static str, Unit> {
    let mut units = HashMap::new();
    for line in lines(include_str!("../../data/units.txt")) {
        let mut fields = line.split('\t');
        let (Some(dimension), Some(factor), Some(names)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let fraction = factor.split_once('/').and_then(|(numerator, denominator)| {
            Some((numerator.parse().ok()?, denominator.parse().ok()?))
        });
        let Some(factor) = fraction else { continue };
        for name in names.split(' ') {
            units.entry(name).or_insert(Unit { dimension, factor });
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_class_of_each_line_of_phrases() {
        for line in lines(include_str!("../../data/phrases.txt")) {
            let (name, list) = line.split_once('\t').unwrap();
            assert!(Class::parse(name).is_some(), "{name}");
            assert!(
                items(list).all(|phrase| !phrase.is_empty() && !phrase.contains('\'')),
                "{name}"
            );
        }
    }

    #[test]
    fn reads_each_line_of_the_tables() {
        assert_eq!(read_units().get("ms").map(|unit| unit.factor), Some((1, 1000)));
        for file in [
            include_str!("../../data/dimensions.txt"),
            include_str!("../../data/antonyms.txt"),
            include_str!("../../data/absences.txt"),
        ] {
            assert!(lines(file).all(|line| line.split('\t').count() == 2));
        }
        for file in
            [include_str!("../../data/units.txt"), include_str!("../../data/comparatives.txt")]
        {
            assert!(lines(file).all(|line| line.split('\t').count() == 3));
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
