//! The index of a request's values and labels, by the folded texts of their parts.
//!
//! A lookup replaces comparing each word of the query with every name.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use crate::fold::{self, CamelCase, Inflections, Key, KeyState, Piece, PieceKind, Vocabulary};
use crate::lexicon::{Lexicon, Role};
use crate::model::{Category, Filter, Kind, Request};
use crate::word::Word;

/// The value or category that a form names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The value `index` of a category.
    Value { category: usize, index: usize },
    /// A category. `positive` is `false` if the form is the opposite of a boolean label.
    Label { category: usize, positive: bool },
}

/// The way in which a stored key matches a part of a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchKind {
    /// The same folded text.
    Exact,
    /// The same stem.
    Stem,
    /// A word with the same meaning.
    Concept,
    /// The initials.
    Initials,
    /// The first numbers of a version.
    VersionPrefix,
}

/// A part of a form: its atoms `start..start + len`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) form: u32,
    pub(crate) start: u8,
    pub(crate) len: u8,
    pub(crate) likeness: MatchKind,
    /// `true` if the part covers all required atoms of the form.
    pub(crate) whole: bool,
}

impl Posting {
    pub(crate) fn cover(self) -> u64 {
        ((1_u64 << self.len) - 1) << self.start
    }
}

/// One name of a value or a category.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) owner: Owner,
    /// The words and numbers of the name.
    pub(crate) atoms: Vec<Piece>,
    /// A bit mask of the atoms that a full mention must cover.
    pub(crate) required: u64,
}

/// A run of neighboring atoms of a form.
struct Part<'p> {
    posting: Posting,
    atoms: &'p [Piece],
    /// Keys of the atoms, of their stems, and with the last atom as a singular.
    key: Key,
    stem_key: Key,
    singular_key: Option<Key>,
    /// The atoms, with numbers in plain digits: `3` for `III`.
    said: &'p [&'p str],
    whole: bool,
    /// `true` if synonyms can name the part.
    synonyms: bool,
}

impl Part<'_> {
    fn posting(&self, likeness: MatchKind) -> Posting {
        Posting { likeness, ..self.posting }
    }
}

/// Maximum atoms of a name that is indexed by several neighboring atoms. Longer names are indexed
/// by their single atoms and as a whole.
const MOST_ATOMS_IN_PARTS: usize = 8;
/// Maximum atoms of a name that are indexed. Users say no more, and a request can have thousands of
/// names.
const MOST_ATOMS: usize = 12;
const MOST_CHARACTERS: usize = 160;
const LONGEST_PART: usize = 3;

/// Returns the key of a name whose version is stored without its dots, which speakers can omit
/// (`seven two one` for 7.2.1). Written digits keep their dots.
pub(crate) fn without_dots(key: Key) -> Key {
    key.then("\u{1}")
}

/// The index of one request.
pub(crate) struct Catalog<'a> {
    pub(crate) request: &'a Request,
    pub(crate) forms: Vec<Form>,
    /// The parts of all names by the keys of their texts, whole forms first.
    postings: Vec<(Key, Posting)>,
    vocabulary: Vocabulary,
    spellings: OnceCell<Vec<String>>,
    lexicon: &'static Lexicon,
}

/// Returns the values in request order, without duplicates.
pub(crate) fn in_order(values: impl IntoIterator<Item = (usize, usize)>) -> Vec<(usize, usize)> {
    let values: BTreeSet<_> = values.into_iter().collect();
    values.into_iter().collect()
}

impl<'a> Catalog<'a> {
    pub(crate) fn new(request: &'a Request, lexicon: &'static Lexicon) -> Self {
        let mut catalog = Self {
            request,
            forms: Vec::new(),
            postings: Vec::new(),
            vocabulary: Vocabulary::default(),
            spellings: OnceCell::new(),
            lexicon,
        };
        let names_of = |it: &Category| it.values.iter().map(|value| name(value)).collect();
        let names: Vec<Vec<Vec<Piece>>> = request.categories.iter().map(names_of).collect();
        let families = families(request, &names);
        for ((index, category), names) in request.categories.iter().enumerate().zip(names) {
            catalog.add_labels(index, category, &families);
            if matches!(category.kind, Kind::Text | Kind::Array) {
                for ((at, value), name) in category.values.iter().enumerate().zip(names) {
                    catalog.add_form(Owner::Value { category: index, index: at }, value, name);
                }
            }
        }
        catalog.postings.sort_by_key(|&(key, posting)| (key, !posting.whole));
        catalog
    }

    pub(crate) fn category(&self, index: usize) -> Option<&'a Category> {
        self.request.categories.get(index)
    }

    pub(crate) fn kind(&self, index: usize) -> Kind {
        self.category(index).map_or(Kind::Text, |category| category.kind)
    }

    /// `true` if any text can be a value of the category.
    pub(crate) fn is_open(&self, index: usize) -> bool {
        self.category(index).is_some_and(Category::is_open)
    }

    pub(crate) fn value(&self, category: usize, index: usize) -> &'a str {
        let value = self.category(category).and_then(|facts| facts.values.get(index));
        value.map_or("", String::as_str)
    }

    /// Returns the number of different values. A value in two categories counts once.
    pub(crate) fn distinct(&self, values: impl IntoIterator<Item = (usize, usize)>) -> usize {
        let values = values.into_iter().map(|(category, index)| self.value(category, index));
        values.map(fold::fold).collect::<HashSet<_>>().len()
    }

    /// Returns the category with the age of the searched item: `Age (days)`, `Days since release`.
    /// The age of something else does not count: `Account age`.
    pub(crate) fn age_category(&self) -> Option<usize> {
        let is_age = |facts: &Category| {
            let plain = fold::atoms(facts.plain_label());
            let has = |atom: &Piece, class: Word| self.lexicon.is(&atom.folded, class);
            fold::atoms(&facts.label).iter().any(|atom| has(atom, Word::Ago))
                || matches!(&plain[..], [atom] if has(atom, Word::Age))
        };
        let categories = &self.request.categories;
        categories.iter().position(|facts| facts.kind == Kind::Numeric && is_age(facts))
    }

    /// Returns the current filters of a category.
    pub(crate) fn current(&self, category: usize) -> impl Iterator<Item = &'a Filter> {
        let id = self.category(category).map(|facts| facts.id.as_str());
        let filters = self.request.current_filters.iter();
        filters.filter(move |filter| id == Some(filter.category_id.as_str()))
    }

    /// `true` if the category has a current filter.
    pub(crate) fn has_filter(&self, category: usize) -> bool {
        self.current(category).next().is_some()
    }

    /// `true` if a current filter of the category is not negative.
    pub(crate) fn has_wanted(&self, category: usize) -> bool {
        self.current(category).any(|filter| !filter.operator.is_negative())
    }

    /// `true` if a current filter of the category has the value.
    pub(crate) fn holds(&self, category: usize, value: &str) -> bool {
        self.current(category).any(|filter| filter.value == value)
    }

    /// Returns whether a current filter with the value is negative, if there is one.
    pub(crate) fn excludes(&self, category: usize, value: &str) -> Option<bool> {
        let mut current = self.current(category).filter(|filter| filter.value == value);
        current.next().map(|filter| filter.operator.is_negative())
    }

    pub(crate) fn form(&self, index: u32) -> Option<&Form> {
        self.forms.get(index as usize)
    }

    /// Returns the parts stored under a key, whole forms first.
    pub(crate) fn lookup(&self, key: Key) -> impl Iterator<Item = Posting> {
        let start = self.postings.partition_point(|found| found.0 < key);
        let rest = self.postings.get(start..).unwrap_or_default();
        rest.iter().take_while(move |found| found.0 == key).map(|&(_, posting)| posting)
    }

    /// `true` if a part is stored under a key.
    pub(crate) fn has(&self, key: Key) -> bool {
        self.lookup(key).next().is_some()
    }

    fn add_labels(&mut self, category: usize, facts: &Category, families: &HashSet<String>) {
        let owner = Owner::Label { category, positive: true };
        let (label, id) = (fold::atoms(facts.plain_label()), fold::atoms(&facts.id));
        if facts.kind == Kind::Boolean {
            self.add_opposites(category, &label);
        }
        let same = label.iter().map(|it| &it.folded).eq(id.iter().map(|it| &it.folded));
        self.add_form(owner, &facts.label, label);
        let family = matches!(&id[..], [only] if families.contains(&only.folded));
        if !same && !family {
            self.add_form(owner, &facts.id, id);
        }
    }

    /// Indexes the opposites of a boolean label: `unhandled` for Handled, `logged out` for Logged
    /// in, `updates enabled` for Updates disabled.
    fn add_opposites(&mut self, category: usize, atoms: &[Piece]) {
        let owner = Owner::Label { category, positive: false };
        for (index, atom) in atoms.iter().enumerate() {
            let antonyms = self.lexicon.antonyms(&atom.folded).iter();
            let mut opposites: Vec<String> = antonyms.map(|word| word.replace(' ', "")).collect();
            if atom.folded.len() > 3 {
                opposites.extend(self.lexicon.opposites(&atom.folded));
            }
            for opposite in opposites {
                let mut changed = atoms.to_vec();
                if let Some(piece) = changed.get_mut(index) {
                    piece.folded = opposite;
                }
                self.add_form(owner, "", changed);
            }
        }
    }

    fn add_form(&mut self, owner: Owner, text: &str, mut atoms: Vec<Piece>) {
        let lexicon = self.lexicon;
        atoms.truncate(MOST_ATOMS);
        let Ok(form) = u32::try_from(self.forms.len()) else { return };
        if atoms.is_empty() {
            return;
        }
        let is_label = matches!(owner, Owner::Label { .. });
        // An id, or a syllable of a word, has no synonyms.
        let synonyms = match owner {
            Owner::Label { category, .. } => {
                self.category(category).is_none_or(|facts| facts.id != text || facts.label == text)
            }
            Owner::Value { .. } => true,
        };
        let parts = if atoms.len() <= MOST_ATOMS_IN_PARTS { LONGEST_PART } else { 1 };
        let mut required = 0;
        for (index, atom) in atoms.iter().enumerate() {
            let word = atom.folded.as_str();
            let idle = lexicon.is(word, Word::IdleAtom)
                || is_label && lexicon.is(word, Word::IdleLabelAtom);
            if !idle {
                required |= 1 << index;
            }
        }
        if required == 0 {
            required = (1 << atoms.len()) - 1;
        }
        let inflections: Vec<Inflections> =
            atoms.iter().map(|atom| self.vocabulary.inflections(&atom.folded)).collect();
        let said: Vec<&str> = atoms.iter().map(|atom| in_digits(atom, text, lexicon)).collect();
        let dotted = atoms.iter().any(|atom| atom.folded.contains('.'));
        let is_joint = |at: usize| {
            let word = |at| atoms.get(at).filter(|atom: &&Piece| atom.kind == PieceKind::Word);
            word(at).is_some_and(|atom| atom.joint) && at.checked_sub(1).and_then(word).is_some()
        };
        for start in 0..atoms.len() {
            let (mut key, mut stem_key) = (Key::of([]), Key::of([]));
            let longest = if start == 0 { atoms.len() } else { parts };
            for (len, inflected) in (1..=longest).zip(inflections.iter().skip(start)) {
                let lead_key = key;
                key = key.then_all(inflected.word);
                stem_key = stem_key.then_all(inflected.stem);
                let whole = len == atoms.len();
                let part = atoms.get(start..start + len).unwrap_or_default();
                if !whole && len > parts {
                    continue;
                }
                let (Ok(first), Ok(count)) = (u8::try_from(start), u8::try_from(len)) else {
                    break;
                };
                let likeness = MatchKind::Exact;
                let posting = Posting { form, start: first, len: count, likeness, whole };
                let part = Part {
                    posting: Posting { whole: required & !posting.cover() == 0, ..posting },
                    atoms: part,
                    key,
                    stem_key,
                    singular_key: inflected.singular.map(|base| lead_key.then_all(base)),
                    said: said.get(start..start + len).unwrap_or_default(),
                    whole,
                    synonyms: synonyms
                        && (len > 1 || whole || !is_joint(start) && !is_joint(start + 1)),
                };
                self.add_part(&part, text);
                if dotted {
                    self.add_version(&part);
                }
            }
        }
        // Users do not abbreviate the opposites that are built here.
        if !matches!(owner, Owner::Label { positive: false, .. }) {
            self.add_initials(form, &atoms);
        }
        self.forms.push(Form { owner, atoms, required });
    }

    /// Indexes the initials of a name with several words: `ip` for Intellectual property.
    fn add_initials(&mut self, form: u32, atoms: &[Piece]) {
        let lexicon = self.lexicon;
        let Ok(len) = u8::try_from(atoms.len()) else { return };
        // Initials of two camelCase humps are too short.
        let humps = atoms.iter().any(|atom| atom.joint);
        if !(if humps { 3..=5 } else { 2..=5 }).contains(&len)
            || atoms.iter().any(|atom| atom.kind != PieceKind::Word || atom.folded.len() < 2)
        {
            return;
        }
        let initials = |idle: bool| -> String {
            let is_idle = |atom: &&Piece| lexicon.is(&atom.folded, Word::IdleAtom);
            let said = atoms.iter().filter(|atom| idle || !is_idle(atom));
            said.filter_map(|atom| atom.folded.chars().next()).collect()
        };
        let (all, weighty) = (initials(true), initials(false));
        let shorter = (weighty != all && weighty.len() > 1).then_some(weighty);
        for initials in [Some(all), shorter].into_iter().flatten() {
            let taken = lexicon.is_verb(&initials) || lexicon.is(&initials, Word::Common);
            if !taken && lexicon.unit(&initials).is_none() {
                let likeness = MatchKind::Initials;
                let posting = Posting { form, start: 0, len, likeness, whole: true };
                self.postings.push((Key::of([initials.as_str()]), posting));
            }
        }
    }

    fn add_part(&mut self, part: &Part<'_>, text: &str) {
        let lexicon = self.lexicon;
        let &Part { atoms, key, stem_key, singular_key, said, whole, .. } = part;
        let mut add = |key, likeness| self.postings.push((key, part.posting(likeness)));
        add(key, MatchKind::Exact);
        if stem_key != key {
            add(stem_key, MatchKind::Stem);
        }
        // A code of two letters also has a plural: `CDs`.
        if let [code] = atoms
            && code.folded.len() == 2
            && text.get(code.span.clone()).is_some_and(|raw| raw.chars().all(char::is_uppercase))
        {
            let plural = format!("{}s", code.folded);
            if !lexicon.is(&plural, Word::Function) && !lexicon.is(&plural, Word::Common) {
                add(Key::of([plural.as_str()]), MatchKind::Stem);
            }
        }
        if said.iter().zip(atoms).any(|(said, atom)| *said != atom.folded) {
            add(Key::of(said.iter().copied()), MatchKind::Stem);
        }
        if part.synonyms && (whole || is_concept_part(atoms, text)) {
            for key in [Some(key), singular_key].into_iter().flatten() {
                for &(concept, role) in lexicon.concepts_of(key) {
                    let code = || text.chars().all(|it| !it.is_lowercase());
                    if role == Role::Name || role == Role::Code && code() {
                        add(Key::of_concept(concept), MatchKind::Concept);
                    }
                }
            }
        }
    }

    /// Indexes the versions in a part without their dots and by their first numbers.
    fn add_version(&mut self, part: &Part<'_>) {
        let mut add = |key, likeness| self.postings.push((key, part.posting(likeness)));
        let parts = part.atoms.iter().flat_map(|atom| atom.folded.split('.'));
        add(without_dots(Key::of(parts)), MatchKind::Exact);
        if let [version] = part.atoms {
            let mut prefix = version.folded.as_str();
            while let Some((shorter, _)) = prefix.rsplit_once('.') {
                add(Key::of([shorter]), MatchKind::VersionPrefix);
                prefix = shorter;
            }
        }
    }

    /// Returns the words that a misspelled word can mean: those of the request, their synonyms, and
    /// long cue words. Built on first use.
    pub(crate) fn spellings(&self) -> &[String] {
        self.spellings.get_or_init(|| {
            let mut words: Vec<String> = Vec::new();
            let mut seen = HashSet::<Key, KeyState>::default();
            let mut add = |word: Cow<'_, str>| {
                if seen.insert(Key::of([word.as_ref()])) {
                    words.push(word.into_owned());
                }
            };
            for form in &self.forms {
                for atom in &form.atoms {
                    if atom.kind == PieceKind::Word && atom.folded.chars().count() >= 4 {
                        add(Cow::Borrowed(&atom.folded));
                    }
                }
                if form.atoms.len() > 1
                    && form.atoms.iter().map(|atom| atom.folded.len()).sum::<usize>() <= 32
                {
                    add(form.atoms.iter().map(|atom| atom.folded.as_str()).collect());
                }
                if let Owner::Label { category, positive: true } = form.owner
                    && matches!(self.kind(category), Kind::Text | Kind::Array)
                {
                    let absences = form.atoms.iter().flat_map(|atom| self.absences(atom));
                    absences.for_each(|word| add(word.into()));
                }
            }
            for &(key, posting) in &self.postings {
                if posting.likeness == MatchKind::Concept {
                    self.names(key, posting).for_each(|name| add(name.into()));
                }
            }
            self.lexicon.phrase_words.iter().for_each(|&word| add(word.into()));
            words.sort_unstable();
            words
        })
    }

    /// Returns words for the absence of a label's word: `unassigned`.
    fn absences(&self, atom: &Piece) -> impl Iterator<Item = String> {
        let lexicon = self.lexicon;
        let concepts = lexicon.concepts_of(Key::of([atom.folded.as_str()])).iter();
        let words = concepts.flat_map(|found| lexicon.members(found.0));
        words.flat_map(|word| lexicon.absent(word))
    }

    /// Returns the long names of the concept under which a posting is stored.
    fn names(&self, key: Key, posting: Posting) -> impl Iterator<Item = String> {
        let atoms = self.form(posting.form).map_or(&[][..], |form| &form.atoms);
        let start = usize::from(posting.start);
        let part = atoms.get(start..start + usize::from(posting.len)).unwrap_or_default();
        let said = Key::of(part.iter().map(|atom| atom.folded.as_str()));
        let concepts = self.lexicon.concepts_of(said).iter().map(|found| found.0);
        let own = concepts.filter(move |&concept| Key::of_concept(concept) == key);
        let names = own.flat_map(|concept| self.lexicon.members(concept));
        names.filter(|name| name.len() >= 5 && !name.contains(' ')).map(|name| fold::fold(name))
    }
}

/// Returns the ids with which several, but not all, values of a category begin: `lab` for lab-a,
/// lab-b and field. Such an id names those values; the label names the category.
fn families(request: &Request, names: &[Vec<Vec<Piece>>]) -> HashSet<String> {
    let ids: HashSet<String> = request.categories.iter().map(|it| fold::fold(&it.id)).collect();
    let mut families = HashSet::new();
    for names in names {
        let mut begun: HashMap<&String, usize> = HashMap::new();
        for name in names {
            if let [first, _, ..] = &name[..]
                && let Some(id) = ids.get(&first.folded)
            {
                *begun.entry(id).or_default() += 1;
            }
        }
        let shared = begun.into_iter().filter(|it| (2..names.len()).contains(&it.1));
        families.extend(shared.map(|it| it.0.clone()));
    }
    families
}

/// Returns the first words and numbers of a value.
fn name(value: &str) -> Vec<Piece> {
    let end = value.char_indices().nth(MOST_CHARACTERS).map_or(value.len(), |it| it.0);
    let pieces = fold::pieces(value.get(..end).unwrap_or(value), CamelCase::Split);
    let mut atoms = Vec::with_capacity(MOST_ATOMS_IN_PARTS);
    atoms.extend(pieces.take(2 * MOST_ATOMS).filter(Piece::is_atom).take(MOST_ATOMS));
    atoms
}

/// Returns a number in a name as plain digits: 3 for the `III` of Phase III, 1 for the `01` of Site
/// 01.
fn in_digits<'p>(atom: &'p Piece, text: &str, lexicon: &Lexicon) -> &'p str {
    let folded = atom.folded.as_str();
    let shorter = folded.trim_start_matches('0');
    match atom.kind {
        PieceKind::Number if !shorter.is_empty() && !shorter.starts_with('.') => shorter,
        PieceKind::Word if folded.len() <= 4 && atom.span.start > 0 => {
            let raw = text.get(atom.span.clone()).unwrap_or_default();
            let capital = raw.bytes().all(|byte| byte.is_ascii_uppercase());
            capital.then(|| lexicon.roman(folded)).flatten().unwrap_or(folded)
        }
        _ => folded,
    }
}

/// `true` if synonyms can name a part of a name. Two letters inside a longer name are a code only
/// in capitals or in a name without spaces (`pt-BR`, `twilio-us`).
fn is_concept_part(part: &[Piece], text: &str) -> bool {
    let [single] = part else { return true };
    let letters = single.folded.chars().count();
    if letters > 2 {
        return single.kind == PieceKind::Word;
    }
    let raw = text.get(single.span.clone()).unwrap_or_default();
    let capital = raw.chars().all(char::is_uppercase);
    let cut = !text.contains(char::is_whitespace) && !single.joint;
    letters == 2 && single.kind == PieceKind::Word && (capital || cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_under_a_key_start_with_whole_forms() {
        let values = ["red wine", "red", "dark red", "Red"].map(str::to_owned).into();
        let (id, label) = ("color".to_owned(), "Color".to_owned());
        let categories = vec![Category { id, label, values, kind: Kind::Text }];
        let request = Request { categories, ..Request::default() };
        let catalog = Catalog::new(&request, Lexicon::get());
        let found = catalog.lookup(Key::of(["red"])).filter(|it| it.likeness == MatchKind::Exact);
        let value = |it: Posting| match catalog.form(it.form).map(|form| form.owner) {
            Some(Owner::Value { index, .. }) => (index, it.whole),
            _ => panic!("a label"),
        };
        let found: Vec<_> = found.map(value).collect();
        assert_eq!(found, [(1, true), (3, true), (0, false), (2, false)]);
        assert!(!catalog.has(Key::of(["yellow"])));
    }
}
