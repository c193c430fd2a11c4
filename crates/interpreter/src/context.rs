//! Stage 5: assigns a role to each mention from the elements around it.
//!
//! The stage chooses the category of a value that several categories have (rule 11). It decides
//! which parts and ordinary words count, since their label is nearby. It finds labels that only
//! qualify a value.

mod beside;
mod doubt;
mod edits;
mod labels;
mod texts;

pub(crate) use texts::{Text, trimmed};

use crate::catalog::{Catalog, Owner};
use crate::cue::{Class, CueSet};
use crate::element::Element;
use crate::fold::{self, Key, Piece};
use crate::lexicon::Lexicon;
use crate::link::{LabelLink, MatchConfidence, Mention, ValueCoverage};
use crate::model::{Kind, Operator};
use crate::token::{Token, TokenKind, Tokens};
use crate::word::Word;

/// Cues that compare with a number.
pub(crate) const COMPARES: CueSet = cues![Gt, Gte, Lt, Lte, Between];

/// Cues that join a list.
pub(crate) const JOINS: CueSet = cues![And, Or, Comma, Nor];

/// The role of an element.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Role {
    /// Some values of one category.
    Values { category: usize, indexes: Vec<usize> },
    /// A label, which names one or more categories.
    Label,
    /// A label that only shows the category of a nearby value.
    Context(usize),
    /// Any other element: a cue phrase, a number, a text or a word.
    Other,
}

/// The elements of a query, their roles, and the data to interpret them.
pub(crate) struct ParseContext<'a> {
    pub(crate) query: &'a str,
    pub(crate) tokens: &'a Tokens,
    pub(crate) catalog: &'a Catalog<'a>,
    pub(crate) lexicon: &'a Lexicon,
    pub(crate) elements: Vec<Element>,
    pub(crate) roles: Vec<Role>,
}

impl<'a> ParseContext<'a> {
    pub(crate) fn new(
        tokens: &'a Tokens,
        catalog: &'a Catalog<'a>,
        elements: Vec<Element>,
    ) -> Self {
        let roles = vec![Role::Other; elements.len()];
        let (query, lexicon) = (catalog.request.query.as_str(), tokens.lexicon);
        let mut context = Self { query, tokens, catalog, lexicon, elements, roles };
        context.assign_roles();
        context
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

    pub(crate) fn names_value(&self, at: usize) -> bool {
        matches!(self.role(at), Role::Values { .. })
    }

    pub(crate) fn is_label(&self, at: usize) -> bool {
        matches!(self.role(at), Role::Label)
    }

    /// Returns the labels of an element, if its role is a label.
    pub(crate) fn as_labels(&self, at: usize) -> &[LabelLink] {
        if self.is_label(at) { self.labels(at) } else { &[] }
    }

    /// `true` if an element names no value and no label.
    pub(crate) fn is_other(&self, at: usize) -> bool {
        matches!(self.role(at), Role::Other)
    }

    pub(crate) fn is(&self, at: usize, class: Class) -> bool {
        self.is_other(at) && self.element(at).is_some_and(|element| element.is(class))
    }

    pub(crate) fn is_any(&self, at: usize, classes: CueSet) -> bool {
        self.is_other(at) && self.element(at).is_some_and(|element| element.is_any(classes))
    }

    pub(crate) fn is_word(&self, at: usize) -> bool {
        self.element(at).is_some_and(Element::is_word)
    }

    pub(crate) fn is_number(&self, at: usize) -> bool {
        self.element(at).is_some_and(|element| element.number.is_some())
    }

    pub(crate) fn is_used(&self, at: usize) -> bool {
        self.element(at).is_some_and(|element| element.used)
    }

    pub(crate) fn first_token(&self, at: usize) -> Option<&'a Token> {
        self.element(at).and_then(|element| self.tokens.get(element.tokens.start))
    }

    /// Returns the folded first word of an element.
    pub(crate) fn word(&self, at: usize) -> &'a str {
        self.first_token(at).map_or("", |token| token.folded.as_str())
    }

    /// Returns the folded word that is `back` tokens before an element.
    fn word_before(&self, at: usize, back: usize) -> &'a str {
        let start = self.element(at).and_then(|element| element.tokens.start.checked_sub(back));
        start.and_then(|at| self.tokens.get(at)).map_or("", |token| token.folded.as_str())
    }

    /// `true` if the first word of an element has the class.
    pub(crate) fn says(&self, at: usize, class: Word) -> bool {
        self.lexicon.is(self.word(at), class)
    }

    /// Returns the labels that an element names, whatever its role.
    pub(crate) fn labels(&self, at: usize) -> &[LabelLink] {
        let mention = self.element(at).and_then(|element| element.mention.as_ref());
        mention.map_or(&[], |mention| &mention.labels)
    }

    /// `true` if an element names the category, whatever its role.
    pub(crate) fn is_label_of(&self, at: usize, category: usize) -> bool {
        self.labels(at).iter().any(|label| label.category == category)
    }

    /// `true` if an element names a numeric category, whatever its role.
    pub(crate) fn labels_number(&self, at: usize) -> bool {
        self.labels(at).iter().any(|label| self.catalog.kind(label.category) == Kind::Numeric)
    }

    /// `true` if the element has no meaning and can be skipped.
    pub(crate) fn is_idle(&self, at: usize) -> bool {
        self.is_other(at) && self.element(at).is_some_and(Element::is_idle)
    }

    /// Returns the next element after `at` that has a meaning.
    pub(crate) fn next(&self, at: usize) -> usize {
        let mut next = at + 1;
        while self.is_idle(next) {
            next += 1;
        }
        next
    }

    /// Returns the last element before `at` that has a meaning.
    pub(crate) fn previous(&self, at: usize) -> Option<usize> {
        (0..at).rev().find(|&before| !self.is_idle(before))
    }

    /// `true` if the last element before `at` that has a meaning has one of the classes.
    pub(crate) fn follows_any(&self, at: usize, classes: CueSet) -> bool {
        self.previous(at).is_some_and(|before| self.is_any(before, classes))
    }

    /// `true` if a clause or the query ends at this element.
    pub(crate) fn is_boundary(&self, at: usize) -> bool {
        at >= self.elements.len() || self.is_any(at, cues![Comma, But, Stop])
    }

    /// `true` if a sentence or the query ends at this element.
    pub(crate) fn ends_sentence(&self, at: usize) -> bool {
        at >= self.elements.len() || self.is(at, Class::Stop) || self.word(at) == "."
    }

    /// `true` if a prefix negates the value at an element: "unacknowledged".
    pub(crate) fn is_opposed(&self, at: usize) -> bool {
        let said = self.element(at).map(|element| fold::fold(self.text(element.tokens.clone())));
        said.is_some_and(|said| self.lexicon.opposite_base(&said) == Some(self.word(at)))
    }

    fn mention(&self, at: usize) -> Option<&Mention> {
        self.element(at).filter(|element| !element.used)?.mention.as_ref()
    }

    /// Returns the possible values, including doubtful ones.
    fn candidates(&self, at: usize) -> &[(usize, usize)] {
        self.mention(at).map_or(&[], |mention| mention.values.as_slice())
    }

    fn assign_roles(&mut self) {
        // Labels first, unless a value competes.
        for at in 0..self.elements.len() {
            let Some(mention) = self.mention(at) else { continue };
            if self.is_rather_a_phrase(at, mention) {
                if let Some(element) = self.elements.get_mut(at) {
                    element.mention = None;
                }
                continue;
            }
            if mention.values.is_empty() && !mention.labels.is_empty() {
                self.set_role(at, Role::Label);
            }
        }
        for at in 0..self.elements.len() {
            if !self.candidates(at).is_empty() {
                let role = self.role_of_value(at);
                self.set_role(at, role);
            }
        }
    }

    /// `true` if a cue phrase that is also part of a name is the cue: "contains" for Contains ads.
    fn is_rather_a_phrase(&self, at: usize, mention: &Mention) -> bool {
        let Some(element) = self.element(at).filter(|element| !element.cue.is_idle()) else {
            return false;
        };
        let parts = mention.labels.iter().all(|label| !label.full)
            && matches!(mention.extent, ValueCoverage::Part | ValueCoverage::SharedPart);
        // "contains" for the value Contained.
        let inflected =
            matches!(mention.value_tier, MatchConfidence::Stem | MatchConfidence::Concept)
                && element.is_any(cues![Contains, Except, Remove, No]);
        parts || inflected
    }

    fn role_of_value(&mut self, at: usize) -> Role {
        let Some(mention) = self.mention(at).cloned() else { return Role::Other };
        let as_label = if mention.labels.is_empty() { Role::Other } else { Role::Label };
        // "response 5xx" of a numeric category is not a list of values.
        let classed = mention.extent == ValueCoverage::Family
            && self.before_copula(at).is_some_and(|before| {
                self.labels(before).iter().any(|label| {
                    self.catalog.kind(label.category) == Kind::Numeric
                        && self.label_is(label.category, Word::Status)
                })
            });
        if classed {
            return Role::Other;
        }
        let partial = matches!(mention.extent, ValueCoverage::Part | ValueCoverage::SharedPart);
        let named_label = mention.labels.iter().any(|label| {
            label.full
                && (label.tier < mention.value_tier || partial && label.tier == mention.value_tier)
        });
        // "any line but line b" for Filling line
        let any_label = self.follows_any(at, cues![Any])
            && mention.extent == ValueCoverage::SharedPart
            && !mention.labels.is_empty()
            && !self.is_label(at + 1);
        if named_label
            || any_label
            || self.is_quantity(at, &mention)
            || !mention.labels.is_empty() && self.reads_as_label(at, &mention)
        {
            return as_label;
        }
        let near = self.label_near(at, &mention.values).filter(|&(label, _)| {
            // "return reason other"
            let beside = self.before_copula(at) == Some(label)
                && self.word(at).len() > 2
                && mention.value_tier == MatchConfidence::Exact;
            beside || !self.is_function_word(at)
        });
        // "assigned to dev": the nearby label decides, even if another category has the whole
        // value.
        if near.is_none()
            && let Some((label, category)) = self.label_near(at, &mention.parts)
            && let [index] = of_category(&mention.parts, category)[..]
            // "method is not POST, hotfix": a whole value begins its own condition.
            && !(mention.extent == ValueCoverage::Whole
                && (label..at).any(|it| self.is(it, Class::Comma)))
            && self.labels(label).iter().any(|link| link.category == category && link.full)
        {
            return Role::Values { category, indexes: vec![index] };
        }
        let values =
            |category: usize| Role::Values { category, indexes: mention.in_category(category) };
        if let Some((label, category)) = near {
            let distinct = self.distinct(category, &mention);
            let all =
                self.wants_all(at) || mention.begins && !self.is_narrowed(at, &mention.values);
            if mention.extent != ValueCoverage::SharedPart || distinct <= 1 || all {
                self.set_role(label, Role::Context(category));
                return values(category);
            }
        }
        // "severity 1 and 2": the preceding list determines the category.
        if mention.needs_label
            && let Some(category) = self.listed_category(at)
            && self.distinct(category, &mention) == 1
        {
            return values(category);
        }
        let first = mention.values.first().map_or(0, |&(category, _)| category);
        let doubtful = if mention.extent == ValueCoverage::SharedPart {
            !self.wants_all(at) && !self.is_family(at, &mention)
        } else {
            // "great beer" for the value "wheat beer" of Beer style
            let own = mention.extent == ValueCoverage::Part
                && self.element(at).is_some_and(|element| element.tokens.len() == 1)
                && self.labels(at).iter().any(|label| label.category == first);
            let needs_label = own || mention.needs_label && !self.is_source(at);
            near.is_none() && (needs_label || self.is_doubtful(at, &mention))
        };
        if doubtful { as_label } else { values(first) }
    }

    /// `true` if the first word of several values means all of them: "not in ap", "on thinkpads",
    /// but not "a courier from Lyon".
    fn is_family(&self, at: usize, mention: &Mention) -> bool {
        const LEADS: CueSet = cues![Not, Except, No, Neither, Nor, Only];
        let first = mention.values.first().map(|value| value.0);
        let one = mention.values.iter().all(|value| Some(value.0) == first);
        // A word with which all values of a category begin distinguishes none of them.
        let all = first.and_then(|category| self.catalog.category(category));
        if all.is_some_and(|facts| facts.values.len() <= mention.values.len()) {
            return false;
        }
        let before = |back, class| self.lexicon.is(self.word_before(at, back), class);
        let placed = before(1, Word::Preposition)
            || before(1, Word::Definite) && before(2, Word::Preposition);
        let led = self.follows_any(at, LEADS) || self.is(at + 1, Class::Only);
        // "every property but the harbour ones"
        let spared =
            self.follows_any(at, cues![But]) && (0..at).any(|it| self.is_any(it, cues![Any, Both]));
        let next = self.next(at);
        let excepted = self.is_any(next, cues![Except, Not])
            && self.candidates(self.next(next)).iter().any(|it| mention.values.contains(it));
        let alone = !self.lexicon.is(&fold::stem(self.word(at)), Word::Action)
            && (0..self.elements.len()).all(|other| other == at || self.is_idle(other));
        // "auroras in safe mode"
        let proper = |&(category, index): &(usize, usize)| {
            self.catalog.value(category, index).starts_with(char::is_uppercase)
        };
        let plural = mention.value_tier == MatchConfidence::Stem
            && self.element(at).is_some_and(|element| element.tokens.len() == 1)
            && mention.values.iter().all(proper);
        mention.begins
            && one
            && !self.is_narrowed(at, &mention.values)
            && (placed
                || led
                || spared
                || alone
                || excepted
                || plural
                || self.nouns_after(at).0
                || self.lists_with_value(at, mention))
    }

    /// `true` if another mention selects among these values: "ios release 5.2.1".
    fn is_narrowed(&self, at: usize, values: &[(usize, usize)]) -> bool {
        (0..self.elements.len()).any(|other| {
            let named = self.candidates(other);
            // "us but not us-west-2"
            let denied = || other > at && self.follows_any(other, cues![Not, Except]);
            named.len() < values.len() && named.iter().any(|it| values.contains(it)) && !denied()
        })
    }

    /// `true` if an ordinary word names a source: "from the app".
    fn is_source(&self, at: usize) -> bool {
        self.lexicon.is(self.word_before(at, 1), Word::Definite)
            && self.lexicon.is(self.word_before(at, 2), Word::Source)
    }

    /// Returns the number of different values of a category that a mention names.
    fn distinct(&self, category: usize, mention: &Mention) -> usize {
        let values = mention.in_category(category).into_iter().map(|index| (category, index));
        self.catalog.distinct(values)
    }

    fn is_function_word(&self, at: usize) -> bool {
        let word = self.word(at);
        // A code (NOR, the ISO code of Norway) that is spelled like a short cue word.
        let code = word.len() <= 3
            && self.lexicon.is_cue_word(word)
            && self
                .mention(at)
                .is_some_and(|mention| mention.value_tier >= MatchConfidence::Concept);
        self.element(at).is_some_and(|element| element.tokens.len() == 1)
            && (code || self.lexicon.is(word, Word::Function))
    }

    /// `true` if a word such as `both` or `all` precedes a name that several values share. Also
    /// `true` for `5xx` and `2.4.x`.
    fn wants_all(&self, at: usize) -> bool {
        let skipped = |before: &usize| at - before <= 3 && self.is_idle(*before);
        let lead = at - (0..at).rev().take_while(skipped).count();
        if lead.checked_sub(1).is_some_and(|before| self.is(before, Class::Both)) {
            return true;
        }
        let end = self.element(at).map_or(0, |element| element.tokens.end);
        let mut after = self.tokens.get(end..).unwrap_or_default().iter();
        let sign = after.find(|it| !it.glued || !matches!(it.folded.as_str(), "." | "-" | "_"));
        sign.is_some_and(|it| it.glued && it.folded.chars().all(|sign| matches!(sign, 'x' | '*')))
    }

    /// `true` if a comparison or a numeric label claims the number, so it is not a value.
    fn is_quantity(&self, at: usize, mention: &Mention) -> bool {
        let Some(element) = self.element(at).filter(|element| element.number.is_some()) else {
            return false;
        };
        let before = self.previous(at);
        let compared = before.is_some_and(|before| {
            self.is_any(before, COMPARES) && !self.is(before, Class::Is)
                || self.is(before, Class::ComparisonEnd)
        });
        let suffixed = self.is_any(at + 1, cues![AfterGte, AfterLte]);
        let united = element.tokens.len() == 1 && self.unit_of(at).is_some();
        let labels_number =
            |at: usize| self.before_copula(at).is_some_and(|before| self.labels_number(before));
        // "response 404 and 500"
        let join = before.filter(|&it| self.is_any(it, cues![And, Or, Comma]));
        let joined = join.and_then(|join| self.previous(join));
        let listed =
            joined.is_some_and(|it| self.is_number(it) && self.is_other(it) && labels_number(it));
        let labelled = self.labels_number(self.next(at)) || labels_number(at) || listed;
        compared
            || suffixed
            || united
            || labelled
            || self.ends_range(at)
            || self.is_edit_of_number(at, mention)
    }

    /// Returns the element before `at`, skipping copulas and negators.
    pub(crate) fn before_copula(&self, at: usize) -> Option<usize> {
        const BETWEEN: CueSet = cues![Is, Eq, Ne, Not, Except];
        let mut before = self.previous(at)?;
        while self.is_any(before, BETWEEN) {
            before = self.previous(before)?;
        }
        Some(before)
    }

    /// `true` if a number ends a range: "100-200", "between 100 and 200".
    fn ends_range(&self, at: usize) -> bool {
        let Some(low) = at.checked_sub(2) else { return false };
        let between = low.checked_sub(1).is_some_and(|it| self.is(it, Class::Between));
        let to = self.word(low + 1) == "-" || self.is(low + 1, Class::To);
        self.is_number(low) && self.is_other(low) && (to || between && self.is(low + 1, Class::And))
    }

    /// `true` if the number changes the only filtered numeric category: "make it 500". `false` if a
    /// category of the mentioned values has a filter too.
    fn is_edit_of_number(&self, at: usize, mention: &Mention) -> bool {
        let filtered = |category: usize| self.catalog.has_filter(category);
        let before = self.previous(at);
        let to = before.filter(|&it| self.is(it, Class::To)).and_then(|it| self.previous(it));
        let raises = |at: usize| self.is(at, Class::Raise) && !self.is(at, Class::Polite);
        to.or(before).is_some_and(raises)
            && self.numeric().filter(|&it| filtered(it)).count() == 1
            && !mention.values.iter().any(|value| filtered(value.0))
    }

    /// `true` if a span that names both a label and a value is the label, since the next elements
    /// need one.
    fn reads_as_label(&self, at: usize, mention: &Mention) -> bool {
        let next = self.after_unit(at);
        let follows_is = self.is_any(next, cues![Is, Eq, Ne]) && !self.is(next, Class::Polite);
        // "teacher is Mr. Boyd", next to a role `teacher`
        let opens = follows_is
            && self.candidates(next).is_empty()
            && mention.labels.iter().any(|it| it.full && self.catalog.is_open(it.category));
        let number_label = self.labels_number(at);
        let counted = number_label
            && (self.previous(at).is_some_and(|before| self.is_number(before))
                || self.is_number(next)
                || self.is_any(next, COMPARES) && self.is_number(self.next(next)));
        counted || opens
    }

    /// Returns the next element with a meaning after a label and its unit: "battery (%)".
    fn after_unit(&self, at: usize) -> usize {
        let next = self.next(at);
        let unit = self.is_word(next) && self.lexicon.unit(self.word(next)).is_some();
        if unit { self.next(next) } else { next }
    }

    /// Returns the byte range of some elements in the query, including quotes.
    pub(crate) fn bytes(&self, elements: std::ops::Range<usize>) -> std::ops::Range<usize> {
        let first = self.first_token(elements.start);
        let last = elements.end.checked_sub(1).and_then(|last| self.element(last));
        let last = last.and_then(|it| self.tokens.get(it.tokens.end.checked_sub(1)?));
        let (Some(first), Some(last)) = (first, last) else { return 0..0 };
        let quote = |token: &Token, sign: Option<char>| match token.kind {
            TokenKind::Quoted => sign.map_or(0, char::len_utf8),
            _ => 0,
        };
        let before = self.query.get(..first.span.start).unwrap_or_default();
        let after = self.query.get(last.span.end..).unwrap_or_default();
        let start = first.span.start - quote(first, before.chars().next_back());
        let end = last.span.end + quote(last, after.chars().next());
        start..end.max(first.span.start)
    }

    /// Returns the query's text under some elements.
    pub(crate) fn query_text(&self, elements: std::ops::Range<usize>) -> &'a str {
        self.query.get(self.bytes(elements)).unwrap_or_default()
    }

    /// Returns the query's text under some tokens.
    pub(crate) fn text(&self, tokens: std::ops::Range<usize>) -> &'a str {
        let tokens = self.tokens.get(tokens).unwrap_or_default();
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return "" };
        self.query.get(first.span.start..last.span.end).unwrap_or_default()
    }

    pub(crate) fn label_atoms(&self, category: usize) -> impl Iterator<Item = Piece> {
        let facts = self.catalog.category(category);
        let names = facts.into_iter().flat_map(|facts| [&facts.label, &facts.id]);
        names.flat_map(|name| fold::atoms(name))
    }

    /// `true` if a category's label or id contains a word of the class.
    pub(crate) fn label_is(&self, category: usize, class: Word) -> bool {
        self.label_atoms(category).any(|atom| self.lexicon.is(&atom.folded, class))
    }

    /// `true` if a category's label or id contains one of the folded words.
    pub(crate) fn label_has(&self, category: usize, words: &[&str]) -> bool {
        self.label_atoms(category).any(|atom| words.contains(&atom.folded.as_str()))
    }
}

/// Returns the indexes of the values of one category.
fn of_category(values: &[(usize, usize)], category: usize) -> Vec<usize> {
    values.iter().filter(|value| value.0 == category).map(|value| value.1).collect()
}

impl Mention {
    /// Returns the intended values of one category.
    fn in_category(&self, category: usize) -> Vec<usize> {
        let mut indexes = of_category(&self.values, category);
        if matches!(self.extent, ValueCoverage::Whole | ValueCoverage::Part) {
            indexes.truncate(1);
        }
        indexes
    }
}
