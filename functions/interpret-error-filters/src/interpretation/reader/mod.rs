//! Stage 8: from left to right, what is denied, added, removed and kept, and with that the
//! conditions on values, booleans and presence.

mod additions;
mod labels;
mod negation;
mod removals;
mod values;

use crate::interpretation::condition::Findings;
use crate::interpretation::context::{Role, Scene};
use crate::interpretation::cue::{Class, CueSet};
use crate::interpretation::element::Element;
use crate::interpretation::fold::{self, Key};
use crate::interpretation::link::LabelLink;
use crate::interpretation::model::{Kind, Operator};

/// How far a negator reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// `not`: the list of one category.
    Narrow,
    /// `except`, `ignore`: also values of other categories that `and` or `or` joins.
    Wide,
    /// `no`, `without`: as `not`; of a label it says that there is no value.
    Absence,
}

#[derive(Debug, Clone)]
struct Denial {
    reach: Reach,
    categories: Vec<usize>,
    at: usize,
    /// What it denied first is a current filter.
    turns: bool,
}

/// What is done with the values and labels that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Remove,
    Keep,
    /// What a reset leaves standing.
    Spare,
    /// The values that another takes the place of.
    Displace,
    /// What had been denied comes back.
    Readmit,
}

struct Reader<'s, 'a> {
    scene: &'s mut Scene<'a>,
    findings: &'s mut Findings,
    denial: Option<Denial>,
    action: Option<(Action, usize)>,
    /// `also`: the next condition and its list are added.
    adding: Option<Vec<usize>>,
    /// Since the last value or label: the joining words.
    joint: Joint,
    last: Option<usize>,
}

/// The words between two values: conjunctions, and whether a preposition stands there.
#[derive(Debug, Clone, Copy, Default)]
struct Joint {
    by: CueSet,
    preposition: bool,
}

impl Joint {
    fn is(self, class: Class) -> bool {
        self.by.has(class)
    }

    fn is_list(self) -> bool {
        self.by.has_any(&[Class::And, Class::Or, Class::Comma])
    }
}

/// Reads the rest of the scene.
pub(crate) fn read(scene: &mut Scene<'_>, findings: &mut Findings) {
    let mut reader = Reader {
        scene,
        findings,
        denial: None,
        action: None,
        adding: None,
        joint: Joint::default(),
        last: None,
    };
    let mut at = 0;
    while at < reader.scene.elements.len() {
        at = reader.step(at).max(at + 1);
    }
}

impl Reader<'_, '_> {
    fn step(&mut self, at: usize) -> usize {
        if self.scene.element(at).is_some_and(|element| element.used) {
            if self.findings.conditions.iter().any(|condition| condition.at == at) {
                self.mark_added(at);
                self.denial = None;
                self.last = Some(at);
                self.joint = Joint::default();
            }
            if self.scene.element(at).is_some_and(|element| element.mention.is_some())
                && self.action.is_some_and(|(action, _)| action != Action::Remove)
            {
                self.action = None;
            }
            return at + 1;
        }
        match self.scene.role(at).clone() {
            Role::Values { category, indexes } => self.values(at, category, &indexes),
            Role::Label(labels) => self.label(at, &labels),
            Role::Context(_) => at + 1,
            Role::Other => self.cue(at),
        }
    }

    fn cue(&mut self, at: usize) -> usize {
        let word = self.scene.word(at).to_owned();
        if matches!(
            word.as_str(),
            "on" | "in" | "from" | "for" | "with" | "by" | "at" | "to" | "during" | "via"
        ) {
            self.joint.preposition = true;
        }
        if self.scene.element(at).is_some_and(Element::is_word) {
            return self.word(at, &word);
        }
        if self.scene.is(at, Class::Reset) && self.reset(at) || self.removal_of_current(at) {
            return at + 1;
        }
        if let Some(next) = self.whole_value_cues(at) {
            return next;
        }
        if self.scene.is_any(at, &[Class::But, Class::Stop]) && !self.scene.is(at, Class::Except) {
            self.end_clause();
        } else if self.scene.is(at, Class::Comma) {
            self.joint.by.insert(Class::Comma);
            if self.denial.as_ref().is_some_and(|denial| denial.categories.is_empty()) {
                self.denial = None;
            }
        } else if self.is_interjection(at)
            || self.scene.is(at, Class::Correction) && self.corrects(at)
        {
            self.correct(at);
        } else if self.starts_denial(at) {
            self.deny(at);
        } else if self.scene.is(at, Class::Nor) {
            self.joint.by.insert(Class::Or);
        } else if self.adds(at) {
        } else if self.scene.is_any(at, &[Class::And, Class::Or]) {
            for class in [Class::And, Class::Or] {
                if self.scene.is(at, class) {
                    self.joint.by.insert(class);
                }
            }
        } else if self.scene.is(at, Class::InsteadOf) {
            self.action = Some((Action::Displace, at));
            self.denial = None;
        } else if self.scene.is(at, Class::Replace) && self.replaces(at) {
        } else if self.scene.is(at, Class::Rest) {
            if self.action.is_some_and(|(action, _)| action == Action::Remove) {
                // "keep the env, lose the rest"
                self.findings.reset = true;
            }
        } else if self.scene.is(at, Class::Unexclude) {
            self.action = Some((Action::Readmit, at));
            self.denial = None;
        } else if self.scene.is_any(at, &[Class::SplitRemove, Class::SplitExcept])
            && self.phrasal(at)
        {
        } else if self.scene.is(at, Class::Remove) {
            self.action = Some((Action::Remove, at));
            self.denial = None;
            self.adding = None;
        } else if self.scene.is(at, Class::Only) {
            self.action = None;
        } else if self.scene.is(at, Class::Keep) {
            self.action = Some((Action::Keep, at));
            self.denial = None;
        } else if self.scene.is(at, Class::Flip) {
            self.findings.flips = true;
        } else if self.scene.is_any(at, &[Class::Switch, Class::Raise]) {
            self.action = None;
            self.denial = None;
            self.adding = None;
        } else if self.scene.is(at, Class::Polite) && is_request(&word) {
            self.action = None;
            if self.denial.as_ref().is_some_and(|denial| !denial.categories.is_empty()) {
                self.denial = None;
            }
        }
        at + 1
    }

    fn end_clause(&mut self) {
        self.denial = None;
        self.action = None;
        self.adding = None;
        self.joint = Joint::default();
        self.last = None;
    }

    /// A word that means nothing here: a verb after `not` ends its reach ("can't pay on iOS").
    fn word(&mut self, at: usize, word: &str) -> usize {
        if self.absence_word(at, word) {
            return at + 1;
        }
        let content = word.len() > 2 && word.chars().all(char::is_alphabetic);
        if content
            && let Some(denial) = &self.denial
            && denial.categories.is_empty()
            && denial.reach == Reach::Narrow
            && self.scene.previous(at) == Some(denial.at)
            && !self.denies_through_verb(denial.at, at)
        {
            self.denial = None;
        }
        at + 1
    }

    /// Rule `absence-word`: "unassigned", "untagged", "anonymous".
    fn absence_word(&mut self, at: usize, word: &str) -> bool {
        let categories: Vec<usize> = self.absent_categories(word);
        let Some(category) = categories.into_iter().find(|&category| {
            !matches!(self.scene.catalog.kind(category), Kind::Numeric | Kind::Boolean)
        }) else {
            return false;
        };
        let denied = self.take_denial_for(category);
        let operator = if denied { Operator::IsSet } else { Operator::IsNotSet };
        self.push(category, operator, String::new(), at);
        true
    }

    fn absent_categories(&self, word: &str) -> Vec<usize> {
        let mut bases: Vec<String> = Vec::new();
        if let Some(base) = word
            .strip_prefix("un")
            .or_else(|| word.strip_suffix("less"))
            .filter(|base| base.len() > 2)
        {
            bases.push(base.to_owned());
        }
        bases.extend(self.scene.lexicon.absences(word).iter().map(|&base| base.to_owned()));
        let mut found = Vec::new();
        for base in bases {
            let stem = fold::stem(&base).into_owned();
            let mut keys = vec![Key::of([base.as_str()]), Key::of([stem.as_str()])];
            for &(concept, _) in self.scene.lexicon.concepts_of(Key::of([base.as_str()])) {
                keys.push(Key::of_concept(concept));
            }
            for key in keys {
                for posting in self.scene.catalog.lookup(key) {
                    if let Some(crate::interpretation::catalog::Owner::Label {
                        category,
                        positive: true,
                    }) = self.scene.catalog.form(posting.form).map(|form| form.owner)
                        && !found.contains(&category)
                    {
                        found.push(category);
                    }
                }
            }
        }
        found
    }

    /// Rule `reset`: "clear everything", "start over with firefox".
    fn reset(&mut self, at: usize) -> bool {
        let next = self.scene.next(at);
        let of_label = matches!(self.scene.role(next), Role::Label(_))
            && !self.scene.is_any(next, &[Class::Comma])
            && next == at + 1
            && self.scene.is(at, Class::Remove);
        if of_label {
            return false;
        }
        self.findings.reset = true;
        self.findings.conditions.retain(|condition| condition.at > at);
        self.end_clause();
        let after = self.scene.next(next);
        let named = matches!(self.scene.role(after), Role::Label(_) | Role::Values { .. });
        if self.scene.is(next, Class::Except)
            || self.scene.is(next, Class::But)
                && self.scene.word(next) != "."
                && (named || self.scene.is_any(next + 1, &[Class::Not, Class::Keep]))
        {
            self.action = Some((Action::Spare, at));
            if let Some(element) = self.scene.elements.get_mut(next) {
                element.used = true;
            }
        }
        true
    }

    /// "reset" alone.
    fn removal_of_current(&mut self, at: usize) -> bool {
        if !self.scene.is(at, Class::ResetVerb) {
            return false;
        }
        let mut next = self.scene.next(at);
        while self.scene.is(next, Class::FilterNoun) {
            next = self.scene.next(next);
        }
        let alone = self.scene.is_boundary(next)
            || self.scene.is_any(next, &[Class::And, Class::Add, Class::Switch]);
        if alone {
            self.findings.reset = true;
            self.end_clause();
        }
        alone
    }

    /// Cues that speak of a label before or after them: any, none, keep.
    fn whole_value_cues(&mut self, at: usize) -> Option<usize> {
        if self.scene.is_any(at, &[Class::Any, Class::Regardless]) {
            let mut next = self.scene.next(at);
            while self.scene.is_any(next, &[Class::Any, Class::Regardless, Class::Is]) {
                next = self.scene.next(next);
            }
            if let Role::Label(labels) = self.scene.role(next).clone()
                && let Some(category) = self.label_of_any(at, next, &labels)
            {
                self.remove(category, None, false);
                self.use_up(at..next + 1);
                self.last = Some(next);
                return Some(self.any_list(at, next));
            }
        }
        None
    }

    /// "regardless of store or brand": the labels that join the first.
    fn any_list(&mut self, any: usize, label: usize) -> usize {
        let mut last = label;
        loop {
            let join = last + 1;
            let next = self.scene.next(join);
            let Role::Label(labels) = self.scene.role(next).clone() else { return last + 1 };
            if !self.scene.is_any(join, &[Class::And, Class::Or, Class::Comma, Class::Nor]) {
                return last + 1;
            }
            let Some(category) =
                self.label_of_any(any, next, &labels).filter(|&category| self.has_filter(category))
            else {
                return last + 1;
            };
            self.remove(category, None, false);
            self.use_up(last..next + 1);
            last = next;
        }
    }

    /// Rule `any`: "any browser", "regardless of the os"; not "any browser: chrome".
    fn label_of_any(&self, at: usize, label: usize, labels: &[LabelLink]) -> Option<usize> {
        let after = self.scene.next(label);
        let states = |at: usize| {
            matches!(self.scene.role(at), Role::Values { .. })
                || self.scene.element(at).is_some_and(|element| {
                    element.number.is_some() || element.quoted || element.used
                })
        };
        let joins = self.scene.is_any(after, &[Class::Is, Class::Eq, Class::Contains])
            && states(self.scene.next(after));
        let valued = (joins
            || self.scene.is_any(
                after,
                &[
                    Class::Gt,
                    Class::Gte,
                    Class::Lt,
                    Class::Lte,
                    Class::AfterAbsent,
                    Class::AfterPresent,
                ],
            ))
            && !self.scene.is_any(after, &[Class::Polite, Class::AfterAny]);
        if valued {
            return None;
        }
        let strong = self.scene.is(at, Class::Regardless);
        let labels: Vec<&LabelLink> = labels
            .iter()
            .filter(|label| strong || self.scene.catalog.kind(label.category) != Kind::Boolean)
            .collect();
        if self.scene.is(label, Class::Generic) && labels.iter().all(|label| !label.full) {
            return None;
        }
        if self.scene.element(label).is_some_and(|element| element.is(Class::Generic))
            && !strong
            && !labels.iter().any(|label| self.has_filter(label.category))
        {
            return None;
        }
        if self.scene.previous(at).is_some_and(|before| {
            self.scene.is_any(before, &[Class::WithPresence, Class::No, Class::Not])
        }) && !labels.iter().any(|label| self.has_filter(label.category))
        {
            return None;
        }
        labels
            .iter()
            .find(|label| self.has_filter(label.category))
            .or(labels.first())
            .map(|label| label.category)
    }

    fn has_filter(&self, category: usize) -> bool {
        let id = self.scene.catalog.category(category).map_or("", |facts| facts.id.as_str());
        self.scene.catalog.request.current_filters.iter().any(|filter| filter.category_id == id)
    }

    fn has_value_filter(&self, category: usize, value: &str) -> bool {
        let id = self.scene.catalog.category(category).map_or("", |facts| facts.id.as_str());
        self.scene
            .catalog
            .request
            .current_filters
            .iter()
            .any(|filter| filter.category_id == id && filter.value == value)
    }

    fn holds(&self, category: usize, value: &str) -> bool {
        let id = self.scene.catalog.category(category).map_or("", |facts| facts.id.as_str());
        self.scene.catalog.request.current_filters.iter().any(|filter| {
            filter.category_id == id && filter.value == value && !filter.operator.is_negative()
        })
    }
}

/// Words that ask for something new and so end a removal.
fn is_request(word: &str) -> bool {
    matches!(
        word,
        "show"
            | "find"
            | "list"
            | "display"
            | "give"
            | "filter"
            | "see"
            | "search"
            | "gimme"
            | "get"
            | "want"
            | "fetch"
            | "i"
    )
}
