//! The request's own vocabulary: the values and labels of its categories, indexed once by the
//! folded texts of their parts, so that no word of the query is ever compared with all of them.

mod postings;

use std::rc::Rc;

use crate::interpretation::fold::{self, Key, Piece, PieceKind, Stems};
use crate::interpretation::lexicon::{Lexicon, Role};
use crate::interpretation::model::{Category, Filter, Kind, Operator, Request};
use crate::interpretation::word::Word;

pub(crate) use postings::{Likeness, Posting};

use postings::Postings;

/// What a form names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The value `index` of a category.
    Value { category: usize, index: usize },
    /// A category. `positive` is false where the form says the opposite of a boolean label.
    Label { category: usize, positive: bool },
}

/// One way in which a value or a category is called.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) owner: Owner,
    /// Its words and numbers.
    pub(crate) atoms: Vec<Piece>,
    /// The atoms that a full mention has to cover.
    pub(crate) required: u64,
}

/// Some neighbouring atoms of a form.
struct Part<'p> {
    form: u32,
    start: u8,
    len: u8,
    atoms: &'p [Piece],
    /// The keys of the atoms, of their stems, and of all atoms but the last.
    key: Key,
    stem_key: Key,
    lead_key: Key,
    /// The atoms with their numbers as they are said; none where they are already written so.
    said: &'p [&'p str],
    whole: bool,
    /// It holds all that a full mention has to cover.
    sufficient: bool,
    /// It may be called by words of the same meaning.
    synonyms: bool,
}

impl Part<'_> {
    fn posting(&self, likeness: Likeness) -> Posting {
        let &Part { form, start, len, sufficient: whole, .. } = self;
        Posting { form, start, len, likeness, whole }
    }

    /// Longer parts are found by their pairs.
    fn is_short(&self) -> bool {
        self.whole || self.len <= 2
    }
}

/// Longer names are indexed by their single words and as a whole.
const MOST_ATOMS_IN_PARTS: usize = 8;
/// Of longer names the rest is not indexed: nobody says it, and a request may hold thousands.
const MOST_ATOMS: usize = 12;
const MOST_CHARACTERS: usize = 160;
const LONGEST_PART: usize = 4;
/// How many postings a value has, about.
const POSTINGS_OF_A_VALUE: usize = 16;

/// The key under which a name with a version in it is stored without the version's dots, which are
/// not always said (`seven two one` for 7.2.1). Digits that are written keep their dots.
pub(crate) fn without_dots(key: Key) -> Key {
    key.then("\u{1}")
}

/// The index of one request.
pub(crate) struct Catalog<'a> {
    pub(crate) request: &'a Request,
    pub(crate) forms: Vec<Form>,
    postings: Postings,
    stems: Stems,
    spellings: Option<Vec<String>>,
}

impl<'a> Catalog<'a> {
    pub(crate) fn new(request: &'a Request, lexicon: &Lexicon) -> Self {
        let values: usize = request.categories.iter().map(|category| category.values.len()).sum();
        let mut catalog = Self {
            request,
            forms: Vec::new(),
            postings: Postings::expecting(values * POSTINGS_OF_A_VALUE),
            stems: Stems::default(),
            spellings: None,
        };
        for (index, category) in request.categories.iter().enumerate() {
            catalog.add_labels(index, category, lexicon);
            if matches!(category.kind, Kind::Text | Kind::Array) {
                catalog.add_values(index, category, lexicon);
            }
        }
        catalog.postings.sort();
        catalog
    }

    pub(crate) fn category(&self, index: usize) -> Option<&'a Category> {
        self.request.categories.get(index)
    }

    pub(crate) fn kind(&self, index: usize) -> Kind {
        self.category(index).map_or(Kind::Text, |category| category.kind)
    }

    /// Whether any text may be a value of the category.
    pub(crate) fn is_open(&self, index: usize) -> bool {
        self.category(index).is_some_and(|category| {
            matches!(category.kind, Kind::Text | Kind::Array) && category.values.is_empty()
        })
    }

    pub(crate) fn value(&self, category: usize, index: usize) -> &'a str {
        self.category(category)
            .and_then(|category| category.values.get(index))
            .map_or("", String::as_str)
    }

    /// The category that holds how long ago what is searched was: `Age (days)`, `Days since
    /// release`; not the age of something else, `Account age`.
    pub(crate) fn age_category(&self, lexicon: &Lexicon) -> Option<usize> {
        let is_age = |facts: &Category| {
            let plain = facts.label.split(['(', '[']).next().unwrap_or_default();
            let has = |text: &str, class: Word| {
                fold::atoms(text).iter().any(|atom| lexicon.is(&atom.folded, class))
            };
            has(&facts.label, Word::Ago) || fold::atoms(plain).len() == 1 && has(plain, Word::Age)
        };
        let categories = &self.request.categories;
        categories.iter().position(|facts| facts.kind == Kind::Numeric && is_age(facts))
    }

    /// The filter of a condition.
    pub(crate) fn filter(
        &self,
        category: usize,
        operator: Operator,
        value: &str,
    ) -> Option<Filter> {
        let category_id = self.category(category)?.id.clone();
        Some(Filter { category_id, operator, value: value.to_owned() })
    }

    /// The current filters of a category.
    pub(crate) fn current(&self, category: usize) -> impl Iterator<Item = &'a Filter> {
        let id = self.category(category).map(|facts| facts.id.as_str());
        let filters = self.request.current_filters.iter();
        filters.filter(move |filter| id == Some(filter.category_id.as_str()))
    }

    /// Whether a current filter is of the category.
    pub(crate) fn has_filter(&self, category: usize) -> bool {
        self.current(category).next().is_some()
    }

    /// Whether a current filter has the value.
    pub(crate) fn holds(&self, category: usize, value: &str) -> bool {
        self.current(category).any(|filter| filter.value == value)
    }

    /// Whether a current filter asks for the value.
    pub(crate) fn wants(&self, category: usize, value: &str) -> bool {
        self.current(category).any(|filter| filter.value == value && !filter.operator.is_negative())
    }

    pub(crate) fn form(&self, index: u32) -> Option<&Form> {
        self.forms.get(index as usize)
    }

    /// The parts stored under a key, whole forms first.
    pub(crate) fn lookup(&self, key: Key) -> impl Iterator<Item = Posting> {
        self.postings.of(key)
    }

    /// Whether anything is stored under a key.
    pub(crate) fn has(&self, key: Key) -> bool {
        self.lookup(key).next().is_some()
    }

    fn add_values(&mut self, category: usize, facts: &Category, lexicon: &Lexicon) {
        for (index, value) in facts.values.iter().enumerate() {
            let end =
                value.char_indices().nth(MOST_CHARACTERS).map_or(value.len(), |(byte, _)| byte);
            let atoms = fold::first_atoms(value.get(..end).unwrap_or(value), 2 * MOST_ATOMS);
            self.add_form(Owner::Value { category, index }, value, atoms, lexicon);
        }
    }

    fn add_labels(&mut self, category: usize, facts: &Category, lexicon: &Lexicon) {
        let label = facts.label.as_str();
        let plain = label.split(['(', '[']).next().unwrap_or(label);
        let owner = Owner::Label { category, positive: true };
        let atoms = fold::atoms(plain);
        if facts.kind == Kind::Boolean {
            self.add_opposites(category, &atoms, lexicon);
        }
        let label_key: Vec<String> = atoms.iter().map(|atom| atom.folded.clone()).collect();
        self.add_form(owner, label, atoms, lexicon);
        let id_atoms = fold::atoms(&facts.id);
        let id_key: Vec<String> = id_atoms.iter().map(|atom| atom.folded.clone()).collect();
        if id_key != label_key {
            self.add_form(owner, &facts.id, id_atoms, lexicon);
        }
    }

    /// `unhandled` for Handled, `logged out` for Logged in, `updates enabled` for Updates disabled.
    fn add_opposites(&mut self, category: usize, atoms: &[Piece], lexicon: &Lexicon) {
        let owner = Owner::Label { category, positive: false };
        for (index, atom) in atoms.iter().enumerate() {
            let mut opposites: Vec<String> =
                lexicon.antonyms(&atom.folded).iter().map(|&word| word.replace(' ', "")).collect();
            if atom.folded.len() > 3 {
                opposites.extend(lexicon.opposites(&atom.folded));
            }
            for opposite in opposites {
                let mut changed = atoms.to_vec();
                if let Some(piece) = changed.get_mut(index) {
                    piece.folded = opposite;
                }
                self.add_form(owner, "", changed, lexicon);
            }
        }
    }

    fn add_form(&mut self, owner: Owner, text: &str, mut atoms: Vec<Piece>, lexicon: &Lexicon) {
        atoms.truncate(MOST_ATOMS);
        let Ok(form) = u32::try_from(self.forms.len()) else { return };
        if atoms.is_empty() {
            return;
        }
        let is_label = matches!(owner, Owner::Label { .. });
        // Nobody uses another word for an id, or for a syllable of a word.
        let synonyms = match owner {
            Owner::Label { category, .. } => {
                self.category(category).is_none_or(|facts| facts.id != text || facts.label == text)
            }
            Owner::Value { .. } => true,
        };
        let parts = if atoms.len() <= MOST_ATOMS_IN_PARTS { LONGEST_PART } else { 1 };
        let is_glued = |atom: &Piece| atom.kind == PieceKind::Number && atom.joint;
        let mut required = 0;
        for (index, atom) in atoms.iter().enumerate() {
            let word = atom.folded.as_str();
            let idle = lexicon.is(word, Word::IdleAtom)
                || is_label && lexicon.is(word, Word::IdleLabelAtom)
                || word == "v" && atoms.len() > 2 && atoms.get(index + 1).is_some_and(is_glued);
            if !idle {
                required |= 1 << index;
            }
        }
        if required == 0 {
            required = (1 << atoms.len()) - 1;
        }
        let stems: Vec<Option<Rc<str>>> =
            atoms.iter().map(|atom| self.stems.of(&atom.folded)).collect();
        let mut said: Vec<&str> = Vec::new();
        if atoms.iter().any(|atom| in_digits(atom, text, lexicon) != atom.folded) {
            said.extend(atoms.iter().map(|atom| in_digits(atom, text, lexicon)));
        }
        let dotted = atoms.iter().any(|atom| atom.folded.contains('.'));
        let is_joint = |at: usize| {
            let word = |at| atoms.get(at).filter(|atom: &&Piece| atom.kind == PieceKind::Word);
            word(at).is_some_and(|atom| atom.joint) && at.checked_sub(1).and_then(word).is_some()
        };
        for start in 0..atoms.len() {
            let (mut key, mut stem_key) = (Key::of([]), Key::of([]));
            let longest = if start == 0 { atoms.len() } else { parts };
            let rest = atoms.iter().zip(&stems).skip(start);
            for (len, (atom, stem)) in (1..=longest).zip(rest) {
                let lead_key = key;
                key = key.then(&atom.folded);
                stem_key = stem_key.then(stem.as_deref().unwrap_or(&atom.folded));
                let whole = len == atoms.len();
                let part = atoms.get(start..start + len).unwrap_or_default();
                if !whole && (len > parts || !is_part(part)) {
                    continue;
                }
                let cover = ((1 << len) - 1) << start;
                let (Ok(first), Ok(count)) = (u8::try_from(start), u8::try_from(len)) else {
                    break;
                };
                let part = Part {
                    form,
                    start: first,
                    len: count,
                    atoms: part,
                    key,
                    stem_key,
                    lead_key,
                    said: said.get(start..start + len).unwrap_or_default(),
                    whole,
                    sufficient: required & !cover == 0,
                    synonyms: synonyms
                        && (len > 1 || whole || !is_joint(start) && !is_joint(start + 1)),
                };
                self.add_part(&part, text, lexicon);
                if dotted {
                    self.add_version(&part);
                }
            }
        }
        // The opposite of a label is made up here: nobody shortens it.
        if !matches!(owner, Owner::Label { positive: false, .. }) {
            self.add_initials(form, &atoms, lexicon);
        }
        self.forms.push(Form { owner, atoms, required });
    }

    /// The initials of a name of several words: `ip` of Intellectual property.
    fn add_initials(&mut self, form: u32, atoms: &[Piece], lexicon: &Lexicon) {
        let Ok(len) = u8::try_from(atoms.len()) else { return };
        // Two humps of a camelCase name are too short to be called by their initials.
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
                let posting =
                    Posting { form, start: 0, len, likeness: Likeness::Initials, whole: true };
                self.postings.push(Key::of([initials.as_str()]), posting);
            }
        }
    }

    fn add_part(&mut self, part: &Part<'_>, text: &str, lexicon: &Lexicon) {
        let &Part { atoms, key, stem_key, said, whole, .. } = part;
        let mut add = |key, likeness| self.postings.push(key, part.posting(likeness));
        add(key, Likeness::Exact);
        if stem_key != key {
            add(stem_key, Likeness::Stem);
        }
        // A code of two letters has a plural too: `CDs`.
        if let [code] = atoms
            && code.folded.len() == 2
            && text.get(code.span.clone()).is_some_and(|raw| raw.chars().all(char::is_uppercase))
        {
            let plural = format!("{}s", code.folded);
            if !lexicon.is(&plural, Word::Function) && !lexicon.is(&plural, Word::Common) {
                add(Key::of([plural.as_str()]), Likeness::Stem);
            }
        }
        let singular = atoms.last().and_then(|last| fold::singular(&last.folded));
        let depluralised = singular.map(|base| part.lead_key.then(&base));
        if let ([single], Some(base_key)) = (atoms, depluralised)
            && single.kind == PieceKind::Word
        {
            add(base_key, Likeness::Stem);
        }
        if atoms.len() > 1
            && atoms.iter().skip(1).any(|atom| atom.joint)
            && atoms.iter().all(|atom| atom.kind == PieceKind::Word)
        {
            let joined: String = atoms.iter().map(|atom| atom.folded.as_str()).collect();
            let joined_key = Key::of([self.stems.of(&joined).as_deref().unwrap_or(&joined)]);
            if joined_key != key && joined_key != stem_key {
                add(joined_key, Likeness::Stem);
            }
        }
        if part.is_short() && said.iter().zip(atoms).any(|(said, atom)| *said != atom.folded) {
            add(Key::of(said.iter().copied()), Likeness::Stem);
        }
        if part.synonyms && (whole || is_concept_part(atoms, text)) {
            for key in [Some(key), depluralised].into_iter().flatten() {
                for &(concept, role) in lexicon.concepts_of(key) {
                    let code = || text.chars().all(|it| !it.is_lowercase());
                    if role == Role::Name || role == Role::Code && code() {
                        add(Key::of_concept(concept), Likeness::Concept);
                    }
                }
            }
        }
    }

    /// Indexes the versions of a part without their dots and by their first numbers.
    fn add_version(&mut self, part: &Part<'_>) {
        let mut add = |key, likeness| self.postings.push(key, part.posting(likeness));
        if part.is_short() && part.atoms.iter().any(|atom| atom.folded.contains('.')) {
            let parts = part.atoms.iter().flat_map(|atom| atom.folded.split('.'));
            add(without_dots(Key::of(parts)), Likeness::Exact);
        }
        if let [version] = part.atoms
            && version.folded.contains('.')
        {
            let mut prefix = version.folded.as_str();
            while let Some((shorter, _)) = prefix.rsplit_once('.') {
                add(Key::of([shorter]), Likeness::VersionPrefix);
                prefix = shorter;
            }
        }
    }

    /// The words that a misspelt word may be meant for, made on first use: those of the request,
    /// their synonyms, and long steering words.
    pub(crate) fn spellings(&mut self, lexicon: &Lexicon) -> &[String] {
        self.spellings.get_or_insert_with(|| {
            let mut words: Vec<String> = Vec::new();
            for form in &self.forms {
                let mut joined = String::new();
                for atom in &form.atoms {
                    if atom.kind == PieceKind::Word && atom.folded.chars().count() >= 4 {
                        words.push(atom.folded.clone());
                    }
                    joined.push_str(&atom.folded);
                }
                if form.atoms.len() > 1 && joined.len() <= 32 {
                    words.push(joined);
                }
            }
            for form in &self.forms {
                if let Owner::Label { category, positive: true } = form.owner
                    && !matches!(
                        self.request.categories.get(category).map(|facts| facts.kind),
                        Some(Kind::Numeric | Kind::Boolean)
                    )
                {
                    for atom in &form.atoms {
                        for &(concept, _) in lexicon.concepts_of(Key::of([atom.folded.as_str()])) {
                            let participles = lexicon
                                .members(concept)
                                .iter()
                                .filter(|word| lexicon.is_past(word) && !word.contains(' '));
                            words.extend(participles.flat_map(|word| lexicon.absent(word)));
                        }
                    }
                }
            }
            let postings = self.postings.all();
            for (key, posting) in postings.filter(|found| found.1.likeness == Likeness::Concept) {
                let Some(form) = self.forms.get(posting.form as usize) else { continue };
                let start = usize::from(posting.start);
                let part =
                    form.atoms.get(start..start + usize::from(posting.len)).unwrap_or_default();
                for &(concept, _) in
                    lexicon.concepts_of(Key::of(part.iter().map(|atom| atom.folded.as_str())))
                {
                    if Key::of_concept(concept) == key {
                        let names = lexicon
                            .members(concept)
                            .iter()
                            .filter(|name| name.len() >= 5 && !name.contains(' '));
                        words.extend(names.map(|name| fold::fold(name)));
                    }
                }
            }
            words.extend(lexicon.phrase_words().iter().map(|&word| word.to_owned()));
            words.sort_unstable();
            words.dedup();
            words
        })
    }
}

/// Whether some atoms of a name are worth an entry: a single letter that is glued to others is not.
fn is_part(part: &[Piece]) -> bool {
    match part {
        [single] => {
            single.kind == PieceKind::Number
                || single.folded.chars().nth(1).is_some()
                || !single.joint
        }
        _ => true,
    }
}

/// A number of a name as it is said: the `III` of Phase III as 3, the `01` of Site 01 as 1.
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

/// Whether a part of a name may stand for its synonyms. Two letters inside a longer name are a
/// code only in a name made of codes (`pt-BR`, `twilio-us`) or in capitals.
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
