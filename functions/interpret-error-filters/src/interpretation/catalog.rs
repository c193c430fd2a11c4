//! The request's own vocabulary: the values and labels of its categories, indexed once by the
//! folded texts of their parts, so that no word of the query is ever compared with all of them.

use crate::interpretation::fold::{self, Key, Piece, PieceKind};
use crate::interpretation::lexicon::{Lexicon, Role};
use crate::interpretation::model::{Category, Kind, Request};
use crate::interpretation::number;

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

/// How a part of a form is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likeness {
    /// The same folded text.
    Exact,
    /// The same stem.
    Stem,
    /// A word of the same meaning.
    Concept,
    /// Its initials.
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
    pub(crate) likeness: Likeness,
    /// The part is the whole form, but for words that need not be said.
    pub(crate) whole: bool,
}

impl Posting {
    pub(crate) fn cover(self) -> u64 {
        ((1_u64 << self.len) - 1) << self.start
    }
}

/// Some neighbouring atoms of a form.
struct Part<'p> {
    start: usize,
    atoms: &'p [Piece],
    stems: &'p [String],
    /// The atoms with their numbers as they are said; none where they are already written so.
    said: &'p [&'p str],
    whole: bool,
    /// It may be called by words of the same meaning.
    synonyms: bool,
}

/// Longer names are indexed by their single words and as a whole.
const MOST_ATOMS_IN_PARTS: usize = 8;
/// Of longer names the rest is not indexed: nobody says it, and a request may hold thousands.
const MOST_ATOMS: usize = 12;
const MOST_CHARACTERS: usize = 160;
const LONGEST_PART: usize = 4;

/// The key under which a name with a version in it is stored without the version's dots, which are
/// not always said (`seven two one` for 7.2.1). Digits that are written keep their dots.
pub(crate) fn without_dots(key: Key) -> Key {
    key.then("\u{1}")
}

/// The index of one request.
pub(crate) struct Catalog<'a> {
    pub(crate) request: &'a Request,
    pub(crate) forms: Vec<Form>,
    postings: Vec<(Key, Posting)>,
    spellings: Option<Vec<String>>,
}

impl<'a> Catalog<'a> {
    pub(crate) fn new(request: &'a Request, lexicon: &Lexicon) -> Self {
        let mut catalog =
            Self { request, forms: Vec::new(), postings: Vec::new(), spellings: None };
        for (index, category) in request.categories.iter().enumerate() {
            catalog.add_labels(index, category, lexicon);
            if matches!(category.kind, Kind::Text | Kind::Array) {
                catalog.add_values(index, category, lexicon);
            }
        }
        catalog.postings.sort_unstable_by_key(|&(key, posting)| {
            (key, !posting.whole, posting.form, posting.start, posting.likeness)
        });
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

    pub(crate) fn form(&self, index: u32) -> Option<&Form> {
        self.forms.get(index as usize)
    }

    /// The parts stored under a key.
    pub(crate) fn lookup(&self, key: Key) -> &[(Key, Posting)] {
        let start = self.postings.partition_point(|&(other, _)| other < key);
        let rest = self.postings.get(start..).unwrap_or_default();
        let len = rest.partition_point(|&(other, _)| other == key);
        rest.get(..len).unwrap_or_default()
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
                match ["un", "non", "dis"]
                    .into_iter()
                    .find_map(|prefix| atom.folded.strip_prefix(prefix))
                {
                    Some(base) if base.len() > 3 => opposites.push(base.to_owned()),
                    _ => opposites.extend(
                        ["un", "non", "dis", "in"].map(|prefix| format!("{prefix}{}", atom.folded)),
                    ),
                }
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
            let idle = matches!(word, "the" | "of" | "and")
                || is_label && matches!(word, "a" | "an" | "is" | "has" | "was" | "number")
                || word == "v" && atoms.len() > 2 && atoms.get(index + 1).is_some_and(is_glued);
            if !idle {
                required |= 1 << index;
            }
        }
        if required == 0 {
            required = (1 << atoms.len()) - 1;
        }
        let stems: Vec<String> =
            atoms.iter().map(|atom| fold::stem(&atom.folded).into_owned()).collect();
        let mut said: Vec<&str> = atoms.iter().map(|atom| in_digits(atom, text)).collect();
        if said.iter().zip(&atoms).all(|(said, atom)| *said == atom.folded) {
            said.clear();
        }
        let is_joint = |at: usize| {
            let word = |at| atoms.get(at).filter(|atom: &&Piece| atom.kind == PieceKind::Word);
            word(at).is_some_and(|atom| atom.joint) && at.checked_sub(1).and_then(word).is_some()
        };
        let first_posting = self.postings.len();
        for start in 0..atoms.len() {
            for len in (1..=parts).chain((start == 0 && atoms.len() > parts).then_some(atoms.len()))
            {
                let Some(part) = atoms.get(start..start + len) else { break };
                let whole = len == atoms.len();
                if !whole && !is_part(part) {
                    continue;
                }
                let part = Part {
                    start,
                    atoms: part,
                    stems: stems.get(start..start + len).unwrap_or_default(),
                    said: said.get(start..start + len).unwrap_or_default(),
                    whole,
                    synonyms: synonyms
                        && (len > 1 || whole || !is_joint(start) && !is_joint(start + 1)),
                };
                self.add_part(form, &part, text, lexicon);
            }
        }
        self.add_initials(form, &atoms, lexicon);
        for (_, posting) in self.postings.get_mut(first_posting..).into_iter().flatten() {
            posting.whole = required & !posting.cover() == 0;
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
        let initials = |idle: &[&str]| -> String {
            let said = atoms.iter().filter(|atom| !idle.contains(&atom.folded.as_str()));
            said.filter_map(|atom| atom.folded.chars().next()).collect()
        };
        let (all, weighty) = (initials(&[]), initials(&["and", "of", "the"]));
        let shorter = (weighty != all && weighty.len() > 1).then_some(weighty);
        for initials in [Some(all), shorter].into_iter().flatten() {
            let taken = lexicon.is_verb(&initials) || lexicon.is_common(&initials);
            if !taken && lexicon.unit(&initials).is_none() {
                let posting =
                    Posting { form, start: 0, len, likeness: Likeness::Initials, whole: true };
                self.postings.push((Key::of([initials.as_str()]), posting));
            }
        }
    }

    fn add_part(
        &mut self,
        form: u32,
        &Part { start, atoms: part, stems, said, whole, synonyms }: &Part<'_>,
        text: &str,
        lexicon: &Lexicon,
    ) {
        let (Ok(start), Ok(len)) = (u8::try_from(start), u8::try_from(part.len())) else { return };
        let mut add = |key, likeness| {
            self.postings.push((key, Posting { form, start, len, likeness, whole: false }));
        };
        let key = Key::of(part.iter().map(|atom| atom.folded.as_str()));
        add(key, Likeness::Exact);
        let stem_key = Key::of(stems.iter().map(String::as_str));
        if stem_key != key {
            add(stem_key, Likeness::Stem);
        }
        if let ([first], Some(base)) =
            (part, part.first().and_then(|atom| fold::singular(&atom.folded)))
            && first.kind == PieceKind::Word
        {
            add(Key::of([base.as_ref()]), Likeness::Stem);
        }
        if part.len() > 1
            && part.iter().skip(1).any(|atom| atom.joint)
            && part.iter().all(|atom| atom.kind == PieceKind::Word)
        {
            let joined: String = part.iter().map(|atom| atom.folded.as_str()).collect();
            let joined_key = Key::of([fold::stem(&joined).as_ref()]);
            if joined_key != key && joined_key != stem_key {
                add(joined_key, Likeness::Stem);
            }
        }
        // Longer parts are found by their pairs.
        let short = whole || len <= 2;
        if short && said.iter().zip(part).any(|(said, atom)| *said != atom.folded) {
            add(Key::of(said.iter().copied()), Likeness::Stem);
        }
        if synonyms && (whole || is_concept_part(part, text)) {
            let depluralised =
                part.last().and_then(|last| fold::singular(&last.folded)).map(|base| {
                    let lead = part.get(..part.len() - 1).unwrap_or_default();
                    Key::of(lead.iter().map(|atom| atom.folded.as_str()).chain([base.as_ref()]))
                });
            for key in [Some(key), depluralised].into_iter().flatten() {
                for &(concept, role) in lexicon.concepts_of(key) {
                    if role == Role::Name {
                        add(Key::of_concept(concept), Likeness::Concept);
                    }
                }
            }
        }
        if short && part.iter().any(|atom| atom.folded.contains('.')) {
            let parts = part.iter().flat_map(|atom| atom.folded.split('.'));
            add(without_dots(Key::of(parts)), Likeness::Exact);
        }
        if let [version] = part
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
                                .filter(|word| word.ends_with("ed") && !word.contains(' '));
                            words.extend(participles.map(|word| format!("un{word}")));
                        }
                    }
                }
            }
            let concepts: Vec<&(Key, Posting)> = self
                .postings
                .iter()
                .filter(|(_, posting)| posting.likeness == Likeness::Concept)
                .collect();
            for (key, posting) in concepts {
                let Some(form) = self.forms.get(posting.form as usize) else { continue };
                let start = usize::from(posting.start);
                let part =
                    form.atoms.get(start..start + usize::from(posting.len)).unwrap_or_default();
                for &(concept, _) in
                    lexicon.concepts_of(Key::of(part.iter().map(|atom| atom.folded.as_str())))
                {
                    if Key::of_concept(concept) == *key {
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
fn in_digits<'p>(atom: &'p Piece, text: &str) -> &'p str {
    let folded = atom.folded.as_str();
    let shorter = folded.trim_start_matches('0');
    match atom.kind {
        PieceKind::Number if !shorter.is_empty() && !shorter.starts_with('.') => shorter,
        PieceKind::Word if folded.len() <= 4 && atom.span.start > 0 => {
            let raw = text.get(atom.span.clone()).unwrap_or_default();
            let capital = raw.bytes().all(|byte| byte.is_ascii_uppercase());
            capital.then(|| number::roman(folded)).flatten().unwrap_or(folded)
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
