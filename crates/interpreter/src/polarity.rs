//! Stage 6: polarity. From left to right, which cue governs each mention, before any rule makes a
//! condition of it: what is denied, removed, kept, put in place of something, or added. A cue
//! reaches over commas, `and`, `or` and `nor` to the next clause or contrary cue.

mod clause;
mod reach;
mod stated;

use crate::condition::{Condition, Findings};
use crate::context::{ParseContext, Role};
use crate::cue::{Class, CueSet};
use crate::element::Element;
use crate::lexicon::Affix;
use crate::link::MatchConfidence;
use crate::model::Kind;
use crate::rules::RuleMatch;
use crate::word::Word;

/// What a cue does to the mentions that it governs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CueEffect {
    /// `not`: denies the list of one category.
    Deny,
    /// `no`, `without`: as `not`; of a label it says that there is no value.
    Lack,
    /// `except`, `ignore`: denies also values of other categories that `and` or `or` joins.
    Exclude,
    /// Two denials of one clause: wanted.
    Twice,
    /// Two cues of which nobody can tell what they mean together.
    Unclear,
    /// `drop`: removes a filter, and excludes where there is none.
    Remove,
    /// `keep`.
    Keep,
    /// What a reset leaves standing.
    Spare,
    /// `instead of`: the values that another takes the place of.
    Displace,
    /// `stop hiding`: what had been denied comes back.
    Readmit,
}

impl CueEffect {
    /// Whether it denies, or would do so without the other denial.
    pub(crate) fn denies(self) -> bool {
        matches!(self, Self::Deny | Self::Lack | Self::Exclude | Self::Twice | Self::Unclear)
    }
}

/// The cue that governs a mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Governor {
    /// The element of the cue.
    pub(crate) at: usize,
    pub(crate) force: CueEffect,
}

impl Governor {
    /// Nobody can tell what it means there.
    fn unclear(self) -> Self {
        Self { force: CueEffect::Unclear, ..self }
    }
}

/// How one element of the query is meant.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Polarity {
    /// None where it is simply wanted.
    pub(crate) governor: Option<Governor>,
    /// It joins the current filters of its category.
    pub(crate) adds: bool,
    /// It goes on a list.
    pub(crate) listed: bool,
    /// It belongs to the cue or mention at this earlier element.
    pub(crate) part_of: Option<usize>,
}

impl Polarity {
    /// Whether nothing is read there by itself.
    pub(crate) fn is_passed_over(&self) -> bool {
        self.part_of.is_some() || self.governor.is_some_and(|it| it.force == CueEffect::Unclear)
    }

    pub(crate) fn is_denied(&self) -> bool {
        let denied = [CueEffect::Deny, CueEffect::Lack, CueEffect::Exclude];
        self.governor.is_some_and(|governor| denied.contains(&governor.force))
    }
}

/// A governor in force, and what it has governed.
struct ActiveScope {
    governor: Governor,
    categories: Vec<usize>,
    /// What it denied first is a current filter.
    turns: bool,
}

impl ActiveScope {
    fn denies(&self) -> bool {
        self.governor.force.denies()
    }

    /// Whether it denies, and has denied nothing yet.
    fn is_to_deny(&self) -> bool {
        self.denies() && self.categories.is_empty()
    }
}

/// The words between two mentions: conjunctions, and whether a preposition stands there.
#[derive(Debug, Clone, Copy, Default)]
struct Conjunction {
    by: CueSet,
    preposition: bool,
}

impl Conjunction {
    fn is(self, class: Class) -> bool {
        self.by.has(class)
    }

    fn is_list(self) -> bool {
        self.by.has_any(&[Class::And, Class::Or, Class::Comma])
    }
}

/// The sense of each element. What states a text or a number has been read before.
pub(crate) fn senses(scene: &ParseContext<'_>, stated: &Findings) -> Vec<Polarity> {
    let mut walk = PolarityPass {
        scene,
        senses: vec![Polarity::default(); scene.elements.len()],
        stated,
        mentions: Vec::new(),
        reign: None,
        adding: None,
        joint: Conjunction::default(),
        last: None,
    };
    let mut at = 0;
    while at < scene.elements.len() {
        at = walk.step(at).max(at + 1);
    }
    (0..at).for_each(|at| walk.leave_out_before(at));
    walk.senses
}

struct PolarityPass<'s, 'a> {
    scene: &'s ParseContext<'a>,
    senses: Vec<Polarity>,
    stated: &'s Findings,
    /// Elements that state something, with their categories, as far as was walked.
    mentions: Vec<(usize, usize)>,
    reign: Option<ActiveScope>,
    /// `also`: the categories that the next condition and its list have had.
    adding: Option<Vec<usize>>,
    joint: Conjunction,
    last: Option<usize>,
}

impl PolarityPass<'_, '_> {
    fn step(&mut self, at: usize) -> usize {
        let scene = self.scene;
        if self.senses.get(at).is_some_and(|sense| sense.part_of.is_some()) {
            return at + 1;
        }
        if scene.element(at).is_some_and(|element| element.used) {
            self.states_text_or_number(at);
            return at + 1;
        }
        match scene.role(at) {
            Role::Values { category, indexes } => {
                let index = indexes.first().copied().unwrap_or_default();
                self.value(at, *category, scene.catalog.value(*category, index));
                at + 1
            }
            Role::Label => self.label(at),
            Role::Context(_) => at + 1,
            Role::Other => self.other(at),
        }
    }

    fn set(&mut self, at: usize, change: impl FnOnce(&mut Polarity)) {
        if let Some(sense) = self.senses.get_mut(at) {
            change(sense);
        }
    }

    /// The elements after `at`, up to `end`, belong to it.
    fn take(&mut self, at: usize, end: usize) {
        for sense in self.senses.get_mut(at + 1..end).into_iter().flatten() {
            sense.part_of = Some(at);
        }
    }

    fn force(&self) -> Option<CueEffect> {
        self.reign.as_ref().map(|reign| reign.governor.force)
    }

    fn govern(&mut self, at: usize, force: CueEffect) {
        let governor = Governor { at, force };
        self.reign = Some(ActiveScope { governor, categories: Vec::new(), turns: false });
    }

    fn finish(&mut self, at: usize, category: usize) {
        self.mentions.push((at, category));
        self.last = Some(at);
        self.joint = Conjunction::default();
    }

    fn value(&mut self, at: usize, category: usize, value: &str) {
        let scene = self.scene;
        let (noun, _) = scene.nouns_after(at);
        let listed = self.joint.is_list();
        if let Some(reign) = self.reign.as_ref().filter(|reign| noun && reign.is_to_deny()) {
            // "without the chrome filter"
            self.govern(reign.governor.at, CueEffect::Remove);
        }
        let edit = self.edit_of(category, Some(value));
        let mut governor = edit.and_then(|edit| self.carried_out(edit, category, value, noun));
        if governor.is_none() {
            if self.is_action(at) {
                self.reign = None;
            }
            self.turn_instead(at, category);
            let unclear = self.unclear_of(category);
            governor = self.denial_of(category);
            governor = unclear.or(governor);
            if let Some(reign) =
                self.reign.as_mut().filter(|it| it.governor.force == CueEffect::Deny)
            {
                reign.turns |= self.scene.catalog.wants(category, value);
            }
            if let Some(mut after) = self.denied_after(at) {
                if scene.is(after.at, Class::Remove) && scene.catalog.holds(category, value) {
                    after.force = CueEffect::Remove;
                }
                if governor.is_some_and(|it| it.force.denies()) && !self.joint.is(Class::Comma) {
                    // "i don't want chrome excluded"
                    after.force = CueEffect::Twice;
                }
                governor = Some(after);
                self.deny_list(at, category, after);
            }
            let adds = self.adds_to(category);
            self.set(at, |sense| sense.adds = adds);
        }
        self.set(at, |sense| (sense.governor, sense.listed) = (governor, listed));
        self.finish(at, category);
    }

    /// The governor of a value that an edit governs; none where it is a condition after all.
    fn carried_out(
        &mut self,
        edit: Governor,
        category: usize,
        value: &str,
        noun: bool,
    ) -> Option<Governor> {
        let catalog = self.scene.catalog;
        let holds = catalog.holds(category, value);
        match edit.force {
            CueEffect::Remove if !noun && !holds && !catalog.has_filter(category) => {
                // Nothing to remove: the wish is not to see it.
                if let Some(reign) = &mut self.reign {
                    reign.categories.push(category);
                }
                Some(Governor { force: CueEffect::Exclude, ..edit })
            }
            CueEffect::Keep if !holds || self.only_follows(category) => {
                // "keep t1 only" keeps nothing else.
                self.reign = None;
                None
            }
            _ => Some(edit),
        }
    }

    fn label(&mut self, at: usize) -> usize {
        let scene = self.scene;
        let labels = scene.as_labels(at);
        let partial = labels.iter().all(|label| !label.full);
        let edit = self.force().is_some_and(|force| !force.denies());
        let Some(preferred) = scene.preferred(at) else { return at + 1 };
        if scene.is(at, Class::Generic) && partial && !edit {
            return at + 1;
        }
        if let Some((category, end)) = scene.label_of_no_matter(at) {
            self.take(at, end);
            self.finish(at, category);
            return end;
        }
        if scene.is(at + 1, Class::AfterKeep) {
            self.take(at, at + 2);
            return at + 2;
        }
        let (noun, _) = scene.nouns_after(at);
        let listed = self.joint.is_list();
        let denial = self.reign.as_ref().filter(|it| it.is_to_deny() || it.denies() && listed);
        let denial = denial.map(|reign| (reign.governor, reign.is_to_deny()));
        let edit = self.edit_of(preferred, None).or_else(|| {
            denial.filter(|_| noun).map(|(cue, _)| Governor { force: CueEffect::Remove, ..cue })
        });
        let kept = edit.is_some_and(|edit| edit.force == CueEffect::Keep);
        let (category, governor, end) = if edit.is_some()
            && !(kept && scene.boolean_label(at).is_some() && !scene.catalog.has_filter(preferred))
        {
            self.set(at, |sense| (sense.governor, sense.listed) = (edit, listed));
            self.reign = self.reign.take().filter(|reign| !(noun && reign.denies()));
            self.finish(at, preferred);
            return at + 1;
        } else if let Some(said) = scene.boolean_said(at) {
            let governor = self.denial_of(said.category);
            let after = if said.end == at + 1 { self.denied_after(at) } else { None };
            (said.category, after.or(governor), said.end)
        } else if let Some((cue, first)) = denial
            && let Some(category) = self.lacking(at, cue, first)
        {
            if let Some(reign) = &mut self.reign {
                reign.categories.push(category);
            }
            (category, Some(cue), at + 1)
        } else if let Some((category, _, end)) = scene.presence_said(at) {
            (category, None, end)
        } else {
            return at + 1;
        };
        let adds = self.adds_to(category);
        self.set(at, |sense| *sense = Polarity { governor, adds, listed, ..Polarity::default() });
        self.take(at, end);
        self.finish(at, category);
        at + 1
    }
}
