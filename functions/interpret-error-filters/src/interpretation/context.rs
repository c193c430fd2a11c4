//! Stage 5: what each mention stands for, from the elements around it: the category of a value
//! that several categories have (rule 11), parts and ordinary words that count only beside their
//! label, and labels that are only there for their values.

mod beside;
mod doubt;
mod edits;
mod labels;
mod rest;
mod texts;

pub(crate) use texts::trimmed;

use crate::interpretation::catalog::Catalog;
use crate::interpretation::cue::{Class, CueSet};
use crate::interpretation::element::Element;
use crate::interpretation::fold;
use crate::interpretation::lexicon::Lexicon;
use crate::interpretation::link::{Extent, LabelLink, Mention, Tier};
use crate::interpretation::model::Kind;
use crate::interpretation::token::{Token, TokenKind};
use crate::interpretation::word::Word;

/// What an element stands for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Role {
    /// These values of a category.
    Values { category: usize, indexes: Vec<usize> },
    /// One of these categories.
    Label(Vec<LabelLink>),
    /// A label that only says which category a value beside it belongs to.
    Context(usize),
    /// Neither: a steering phrase, a number, a text, or a word.
    Other,
}

/// All that a stage needs to look around.
pub(crate) struct Scene<'a> {
    pub(crate) query: &'a str,
    pub(crate) tokens: &'a [Token],
    pub(crate) catalog: &'a Catalog<'a>,
    pub(crate) lexicon: &'a Lexicon,
    pub(crate) elements: Vec<Element>,
    pub(crate) roles: Vec<Role>,
}

impl<'a> Scene<'a> {
    pub(crate) fn new(
        query: &'a str,
        tokens: &'a [Token],
        catalog: &'a Catalog<'a>,
        lexicon: &'a Lexicon,
        elements: Vec<Element>,
    ) -> Self {
        let roles = vec![Role::Other; elements.len()];
        let mut scene = Self { query, tokens, catalog, lexicon, elements, roles };
        scene.assign_roles();
        scene
    }

    pub(crate) fn element(&self, at: usize) -> Option<&Element> {
        self.elements.get(at)
    }

    pub(crate) fn role(&self, at: usize) -> &Role {
        self.roles.get(at).unwrap_or(&Role::Other)
    }

    pub(crate) fn set_role(&mut self, at: usize, role: Role) {
        if let Some(slot) = self.roles.get_mut(at) {
            *slot = role;
        }
    }

    pub(crate) fn is(&self, at: usize, class: Class) -> bool {
        matches!(self.role(at), Role::Other)
            && self.element(at).is_some_and(|element| element.is(class))
    }

    pub(crate) fn is_any(&self, at: usize, classes: &[Class]) -> bool {
        matches!(self.role(at), Role::Other)
            && self.element(at).is_some_and(|element| element.is_any(classes))
    }

    /// The folded first word of an element.
    pub(crate) fn word(&self, at: usize) -> &str {
        self.element(at)
            .and_then(|element| self.tokens.get(element.tokens.start))
            .map_or("", |token| token.folded.as_str())
    }

    /// Whether the first word of an element is of a class.
    pub(crate) fn says(&self, at: usize, class: Word) -> bool {
        self.lexicon.is(self.word(at), class)
    }

    /// The labels that an element names, whatever role it has.
    pub(crate) fn labels(&self, at: usize) -> &[LabelLink] {
        self.element(at)
            .and_then(|element| element.mention.as_ref())
            .map_or(&[], |mention| mention.labels.as_slice())
    }

    /// Whether the element carries nothing and may be stepped over.
    pub(crate) fn is_idle(&self, at: usize) -> bool {
        matches!(self.role(at), Role::Other)
            && self.element(at).is_some_and(|element| {
                element.is_idle() || element.is_word() && self.says(at, Word::Article)
            })
    }

    /// The next element after `at` that carries something.
    pub(crate) fn next(&self, at: usize) -> usize {
        let mut next = at + 1;
        while next < self.elements.len() && self.is_idle(next) {
            next += 1;
        }
        next
    }

    /// The last element before `at` that carries something.
    pub(crate) fn previous(&self, at: usize) -> Option<usize> {
        let mut before = at.checked_sub(1)?;
        while self.is_idle(before) {
            before = before.checked_sub(1)?;
        }
        Some(before)
    }

    /// Whether a clause ends at this element, or the query does.
    pub(crate) fn is_boundary(&self, at: usize) -> bool {
        at >= self.elements.len() || self.is_any(at, &[Class::Comma, Class::But, Class::Stop])
    }

    fn mention(&self, at: usize) -> Option<&Mention> {
        self.element(at)
            .filter(|element| !element.used)
            .and_then(|element| element.mention.as_ref())
    }

    /// The values that could be meant, before any doubt.
    fn candidates(&self, at: usize) -> &[(usize, usize)] {
        self.mention(at).map_or(&[], |mention| mention.values.as_slice())
    }

    fn assign_roles(&mut self) {
        // Labels first, as far as no value competes.
        for at in 0..self.elements.len() {
            let Some(mention) = self.mention(at) else { continue };
            if self.is_rather_a_phrase(at, mention) && self.continued_name(at, mention).is_none() {
                if let Some(element) = self.elements.get_mut(at) {
                    element.mention = None;
                }
                continue;
            }
            if mention.values.is_empty() && !mention.labels.is_empty() {
                let labels = mention.labels.clone();
                self.set_role(at, Role::Label(labels));
            }
        }
        for at in 0..self.elements.len() {
            if !self.candidates(at).is_empty() {
                let role = self.role_of_value(at);
                self.set_role(at, role);
            }
        }
        self.settle_by_named_labels();
    }

    /// A steering phrase that is also a part of a name steers: "contains" of Contains ads.
    fn is_rather_a_phrase(&self, at: usize, mention: &Mention) -> bool {
        let steers = self
            .element(at)
            .is_some_and(|element| element.cue != CueSet::default() && !element.cue.is_idle());
        let parts = mention.labels.iter().all(|label| !label.full)
            && (mention.values.is_empty()
                || matches!(mention.extent, Extent::Part | Extent::SharedPart));
        // "contains" for the value Contained.
        let inflected = mention.value_tier == Tier::Stem
            && self.element(at).is_some_and(|element| {
                element.is_any(&[Class::Contains, Class::Except, Class::Remove, Class::No])
            });
        steers && (parts || inflected)
    }

    fn role_of_value(&mut self, at: usize) -> Role {
        let Some(mention) = self.mention(at).cloned() else { return Role::Other };
        let as_label = || {
            if mention.labels.is_empty() {
                Role::Other
            } else {
                Role::Label(mention.labels.clone())
            }
        };
        // "response 5xx" of a numeric category is no list of values.
        let classed = mention.extent == Extent::Family
            && self.previous(at).is_some_and(|before| {
                self.labels(before).iter().any(|label| {
                    self.catalog.kind(label.category) == Kind::Numeric
                        && self.label_is(label.category, Word::Status)
                })
            });
        if classed {
            return Role::Other;
        }
        let named_label = mention.labels.iter().any(|label| {
            label.full
                && (mention.extent != Extent::Whole
                    && mention.extent != Extent::Family
                    && label.tier < Tier::Typo
                    && label.tier <= mention.value_tier
                    || label.tier < mention.value_tier
                        && (mention.value_tier >= Tier::Concept || label.tier == Tier::Exact))
        });
        if named_label
            || self.is_quantity(at, &mention)
            || !mention.labels.is_empty() && self.reads_as_label(at, &mention)
        {
            return as_label();
        }
        if let Some((category, index)) = self.continued_name(at, &mention) {
            return Role::Values { category, indexes: vec![index] };
        }
        let near = self.label_near(at, &mention.values).filter(|&(label, _)| {
            // "return reason other"
            let beside =
                label + 1 == at && self.word(at).len() > 2 && mention.value_tier == Tier::Exact;
            beside || !self.is_function_word(at) || !self.is_doubtful(at, &mention)
        });
        // "assigned to dev": the label beside it wants a part, though another category has it whole.
        if near.is_none()
            && !mention.parts.is_empty()
            && let Some((label, category)) = self.label_near(at, &mention.parts)
            && self
                .labels(label)
                .iter()
                .any(|link| link.category == category && link.full || label == at + 1)
        {
            let indexes: Vec<usize> = mention
                .parts
                .iter()
                .filter(|(other, _)| *other == category)
                .map(|&(_, index)| index)
                .collect();
            if indexes.len() == 1 {
                self.set_role(label, Role::Context(category));
                return Role::Values { category, indexes };
            }
        }
        if let Some((label, category)) = near {
            let indexes: Vec<usize> = values_in(&mention, category);
            let distinct = self.distinct(category, &indexes);
            let all =
                self.wants_all(at) || mention.begins && !self.is_narrowed(at, &mention.values);
            if mention.extent != Extent::SharedPart || distinct <= 1 || all {
                self.set_role(label, Role::Context(category));
                return Role::Values { category, indexes };
            }
        }
        // "severity 1 and 2": the list before it tells the category.
        if mention.needs_label
            && let Some(category) = self.listed_category(at)
        {
            let indexes = values_in(&mention, category);
            if self.distinct(category, &indexes) == 1 {
                return Role::Values { category, indexes };
            }
        }
        if mention.extent == Extent::SharedPart {
            if (self.wants_all(at) || self.is_family(at, &mention))
                && let Some(&(category, _)) = mention.values.first()
            {
                return Role::Values { category, indexes: values_in(&mention, category) };
            }
            return as_label();
        }
        let needs_label = mention.needs_label && !self.is_source(at, &mention);
        if near.is_none() && (needs_label || self.is_doubtful(at, &mention)) {
            return as_label();
        }
        let category = mention.values.first().map_or(0, |&(category, _)| category);
        Role::Values { category, indexes: values_in(&mention, category) }
    }

    /// Whether the first word of several values stands as a condition, and so means all of them:
    /// "not in ap", "on thinkpads"; not "a courier from Lyon".
    fn is_family(&self, at: usize, mention: &Mention) -> bool {
        const LEADS: [Class; 6] =
            [Class::Not, Class::Except, Class::No, Class::Neither, Class::Nor, Class::Only];
        let one = mention.values.windows(2).all(|pair| match pair {
            [one, other] => one.0 == other.0,
            _ => true,
        });
        // What all values of a category begin with tells none of them.
        let all = mention.values.first().and_then(|value| self.catalog.category(value.0));
        if all.is_some_and(|facts| facts.values.len() <= mention.values.len()) {
            return false;
        }
        let start = self.element(at).map_or(0, |element| element.tokens.start);
        let token = |back: usize| start.checked_sub(back).and_then(|at| self.tokens.get(at));
        let before = |back: usize, class: Word| {
            token(back).is_some_and(|token| self.lexicon.is(&token.folded, class))
        };
        let placed = before(1, Word::Preposition)
            || before(1, Word::Definite) && before(2, Word::Preposition);
        let led = self.previous(at).is_some_and(|before| self.is_any(before, &LEADS))
            || self.is(at + 1, Class::Only);
        let alone = mention.value_tier == Tier::Exact
            && (0..self.elements.len()).all(|other| other == at || self.is_idle(other));
        mention.begins
            && one
            && !self.is_narrowed(at, &mention.values)
            && (placed || led || alone || self.lists_with_value(at, mention))
    }

    /// Whether another mention tells which of these values is meant: "ios release 5.2.1".
    fn is_narrowed(&self, at: usize, values: &[(usize, usize)]) -> bool {
        (0..self.elements.len()).any(|other| {
            let named = self.candidates(other);
            other != at && named.len() < values.len() && named.iter().any(|it| values.contains(it))
        })
    }

    /// An ordinary word that says where something came from: "from the app".
    fn is_source(&self, at: usize, mention: &Mention) -> bool {
        let word = |back: usize| {
            let start = self.element(at).map_or(0, |element| element.tokens.start);
            let token = start.checked_sub(back).and_then(|before| self.tokens.get(before));
            token.map_or("", |token| token.folded.as_str())
        };
        mention.extent == Extent::Part
            && mention.value_tier <= Tier::Stem
            && self.lexicon.is(word(1), Word::Definite)
            && self.lexicon.is(word(2), Word::Source)
    }

    fn distinct(&self, category: usize, indexes: &[usize]) -> usize {
        let mut names: Vec<&str> =
            indexes.iter().map(|&index| self.catalog.value(category, index)).collect();
        names.sort_unstable();
        names.dedup();
        names.len()
    }

    fn is_function_word(&self, at: usize) -> bool {
        let word = self.word(at);
        // A code (NOR, the ISO code of Norway) that is spelt like a short steering word.
        let code = word.len() <= 3
            && self.lexicon.is_steering_word(word)
            && self.mention(at).is_some_and(|mention| mention.value_tier >= Tier::Concept);
        self.element(at).is_some_and(|element| element.tokens.len() == 1)
            && (code || self.lexicon.is(word, Word::Function))
    }

    fn is_number(&self, at: usize) -> bool {
        self.element(at).is_some_and(|element| element.number.is_some())
    }

    /// `both`, `all` and the like before a name that several values continue; also `5xx`, `2.4.x`.
    fn wants_all(&self, at: usize) -> bool {
        let mut before = at;
        while let Some(previous) = before.checked_sub(1) {
            if self.is_any(previous, &[Class::Both]) {
                return true;
            }
            let skipped = self.is_idle(previous)
                || self.is_any(previous, &[Class::Only, Class::Not, Class::Except]);
            if !skipped || at - previous > 3 {
                break;
            }
            before = previous;
        }
        let after = self.element(at).map_or(0, |element| element.tokens.end);
        let mut next = after;
        while self
            .tokens
            .get(next)
            .is_some_and(|token| token.glued && matches!(token.folded.as_str(), "." | "-" | "_"))
        {
            next += 1;
        }
        self.tokens.get(next).is_some_and(|token| {
            token.glued && token.folded.chars().all(|sign| matches!(sign, 'x' | '*'))
        })
    }

    /// A number that a comparison or a numeric label claims is no value.
    fn is_quantity(&self, at: usize, mention: &Mention) -> bool {
        if !self.is_number(at) {
            return false;
        }
        if self.label_near(at, &mention.values).is_some() {
            return false;
        }
        let compared = self.previous(at).is_some_and(|before| {
            self.is_any(before, &[Class::Gt, Class::Gte, Class::Lt, Class::Lte, Class::Between])
                && !self.is_any(before, &[Class::Is])
                || self.is(before, Class::ComparisonEnd)
        });
        let suffixed = self.is_any(at + 1, &[Class::AfterGte, Class::AfterLte]);
        let single = self.element(at).is_some_and(|element| element.tokens.len() == 1);
        let united = single
            && self
                .element(at)
                .and_then(|element| element.number.as_ref())
                .is_some_and(|number| number.unit.is_some());
        let numeric = |other: usize| {
            self.labels(other)
                .iter()
                .any(|label| self.catalog.kind(label.category) == Kind::Numeric)
        };
        let labelled = numeric(self.next(at))
            || self.previous(at).is_some_and(|before| {
                numeric(before)
                    || self.is_any(before, &[Class::Is, Class::Eq])
                        && self.previous(before).is_some_and(numeric)
            });
        compared || suffixed || united || labelled
    }

    /// A span that names a label and a value alike is the label where what follows needs one.
    fn reads_as_label(&self, at: usize, mention: &Mention) -> bool {
        let next = self.after_unit(at);
        let follows_is = self.is_any(next, &[Class::Is, Class::Eq, Class::Ne])
            && !self.is_any(next, &[Class::Polite]);
        let own = |other: usize| {
            self.candidates(other)
                .iter()
                .any(|&(category, _)| mention.labels.iter().any(|label| label.category == category))
        };
        let after = if follows_is { self.next(next) } else { next };
        let value_follows = own(after) && after < self.elements.len();
        let number_label =
            mention.labels.iter().any(|label| self.catalog.kind(label.category) == Kind::Numeric);
        let counted = number_label
            && (self.previous(at).is_some_and(|before| self.is_number(before))
                || self.is_number(after)
                || self.is_any(
                    after,
                    &[Class::Gt, Class::Gte, Class::Lt, Class::Lte, Class::Between],
                ) && self.is_number(self.next(after)));
        // "winds stronger than 25"
        let compared = number_label
            && self.lexicon.comparative(self.word(after)).is_some()
            && self.is_number(self.next(self.next(after)));
        let denied = mention.value_tier > Tier::Exact
            && mention.labels.iter().any(|label| {
                self.catalog.kind(label.category) == Kind::Boolean
                    && self.denied_rest_of_label(at, label.category).is_some()
            });
        counted
            || compared
            || denied
            || value_follows
                && mention.labels.iter().any(|label| label.full)
                && self.label_is_wanted(at)
    }

    /// The next element that carries something after a label and its unit: "battery (%)".
    fn after_unit(&self, at: usize) -> usize {
        let next = self.next(at);
        let unit = self.element(next).is_some_and(Element::is_word)
            && self.lexicon.unit(self.word(next)).is_some();
        if unit { self.next(next) } else { next }
    }

    /// `team mobile` where `team` could be a value too: only when no label stands before it.
    fn label_is_wanted(&self, at: usize) -> bool {
        self.previous(at).is_none_or(|before| !matches!(self.role(before), Role::Label(_)))
    }

    /// Where some elements stand in the query, in bytes; a quoted text with its quotes.
    pub(crate) fn bytes(&self, elements: std::ops::Range<usize>) -> std::ops::Range<usize> {
        let token = |at: Option<usize>| at.and_then(|at| self.tokens.get(at));
        let first = token(self.element(elements.start).map(|it| it.tokens.start));
        let last = elements.end.checked_sub(1).and_then(|last| self.element(last));
        let last = token(last.and_then(|it| it.tokens.end.checked_sub(1)));
        let (Some(first), Some(last)) = (first, last) else { return 0..0 };
        let quote = |token: &Token, text: Option<&str>, end: bool| {
            let sign = if end { text?.chars().next() } else { text?.chars().next_back() };
            (token.kind == TokenKind::Quoted).then_some(sign?.len_utf8())
        };
        let open = quote(first, self.query.get(..first.span.start), false).unwrap_or(0);
        let close = quote(last, self.query.get(last.span.end..), true).unwrap_or(0);
        first.span.start - open..(last.span.end + close).max(first.span.start)
    }

    /// The text of the query under some elements.
    pub(crate) fn query_text(&self, elements: std::ops::Range<usize>) -> &'a str {
        self.query.get(self.bytes(elements)).unwrap_or_default()
    }

    /// The text of the query under some tokens.
    pub(crate) fn text(&self, tokens: std::ops::Range<usize>) -> &'a str {
        let (Some(first), Some(last)) = (
            self.tokens.get(tokens.start),
            tokens.end.checked_sub(1).and_then(|last| self.tokens.get(last)),
        ) else {
            return "";
        };
        self.query.get(first.span.start..last.span.end.max(first.span.start)).unwrap_or("")
    }

    /// Whether a word of a class stands in a category's label.
    pub(crate) fn label_is(&self, category: usize, class: Word) -> bool {
        self.catalog.category(category).is_some_and(|facts| {
            let atoms = [fold::atoms(&facts.label), fold::atoms(&facts.id)];
            atoms.iter().flatten().any(|atom| self.lexicon.is(&atom.folded, class))
        })
    }

    /// Whether a folded word stands in a category's label.
    pub(crate) fn label_has(&self, category: usize, words: &[&str]) -> bool {
        self.catalog.category(category).is_some_and(|facts| {
            fold::atoms(&facts.label)
                .iter()
                .chain(&fold::atoms(&facts.id))
                .any(|atom| words.contains(&atom.folded.as_str()))
        })
    }
}

/// The values of one category that a mention names.
fn values_in(mention: &Mention, category: usize) -> Vec<usize> {
    let mut indexes: Vec<usize> = mention
        .values
        .iter()
        .filter(|(other, _)| *other == category)
        .map(|&(_, index)| index)
        .collect();
    if matches!(mention.extent, Extent::Whole | Extent::Part) {
        indexes.truncate(1);
    }
    indexes
}
