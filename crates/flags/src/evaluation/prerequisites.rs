//! Evaluation of prerequisites.
//!
//! Writes reject cycles and chains of more than ten flags, but stored ones must also fail cleanly.
//! A flag's result does not depend on which flags were evaluated before it.

use shared::timestamp::Timestamp;

use super::compiled::CompiledFlag;
use super::context::Context;
use super::outcome::{Evaluation, EvaluationError};
use super::project_flags::{Flags, LoadedFlag};
use super::segments::Memberships;
use crate::{FlagKey, MAX_PREREQUISITE_DEPTH, Prerequisite};

type Outcome<'f> = Result<Evaluation<'f>, EvaluationError<'f>>;

/// Evaluates flags of a project for one context, each at most once.
pub(super) struct Evaluator<'f, 'c> {
    flags: &'f Flags,
    memberships: Memberships<'f, 'c>,
    /// By index in the project's flags.
    progress: Box<[Progress<'f>]>,
}

/// The progress of a flag's evaluation.
enum Progress<'f> {
    NotBegun,
    Begun,
    Done { outcome: Outcome<'f>, chain: usize },
}

/// An outcome, and the length of the longest chain of prerequisites that led to it.
struct EvaluatedFlag<'f> {
    outcome: Outcome<'f>,
    chain: usize,
}

impl<'f, 'c> Evaluator<'f, 'c> {
    pub(super) fn new(flags: &'f Flags, context: &'c Context<'c>, now: Timestamp) -> Self {
        let memberships = Memberships::new(flags.segments(), context, now);
        let progress = (0..flags.len()).map(|_| Progress::NotBegun).collect();
        Self { flags, memberships, progress }
    }

    /// Evaluates the flag at an index in the project's flags.
    pub(super) fn evaluate(&mut self, index: usize) -> Outcome<'f> {
        self.evaluate_at(index, 1).outcome
    }

    /// Evaluates a flag at position `depth` in a chain of prerequisites.
    fn evaluate_at(&mut self, index: usize, depth: usize) -> EvaluatedFlag<'f> {
        let Some(flag) = self.flags.at(index) else {
            return EvaluatedFlag { outcome: Err(EvaluationError::FlagNotFound), chain: 1 };
        };
        let too_deep = EvaluationError::PrerequisitesTooDeep(flag.key());
        match self.progress.get(index) {
            Some(Progress::Begun) => {
                let cycle = EvaluationError::PrerequisiteCycle(flag.key());
                return EvaluatedFlag { outcome: Err(cycle), chain: 1 };
            }
            // A chain that was short enough from another flag can be too long from here.
            Some(Progress::Done { chain, .. }) if depth + chain > MAX_PREREQUISITE_DEPTH + 1 => {
                return EvaluatedFlag { outcome: Err(too_deep), chain: *chain };
            }
            Some(Progress::Done { outcome, chain }) => {
                return EvaluatedFlag { outcome: *outcome, chain: *chain };
            }
            _ if depth > MAX_PREREQUISITE_DEPTH => {
                return EvaluatedFlag { outcome: Err(too_deep), chain: 1 };
            }
            _ => {}
        }
        let compiled = match flag.compiled() {
            Ok(compiled) => compiled,
            Err(damage) => {
                let outcome = Err(EvaluationError::Damaged(flag.key(), damage));
                return EvaluatedFlag { outcome, chain: 1 };
            }
        };
        self.set_progress(index, Progress::Begun);
        let evaluated = self.evaluate_compiled(compiled, depth);
        // A chain that is too long from here can be short enough from a flag further down.
        if depth > 1 && matches!(evaluated.outcome, Err(EvaluationError::PrerequisitesTooDeep(_))) {
            self.set_progress(index, Progress::NotBegun);
        } else {
            let EvaluatedFlag { outcome, chain } = evaluated;
            self.set_progress(index, Progress::Done { outcome, chain });
        }
        evaluated
    }

    fn set_progress(&mut self, index: usize, progress: Progress<'f>) {
        if let Some(place) = self.progress.get_mut(index) {
            *place = progress;
        }
    }

    fn evaluate_compiled(&mut self, flag: &'f CompiledFlag, depth: usize) -> EvaluatedFlag<'f> {
        if !flag.enabled {
            return EvaluatedFlag { outcome: Ok(flag.evaluate_off(None)), chain: 1 };
        }
        let (unmet, chain) = self.find_unmet(flag, depth);
        let outcome = match unmet {
            Ok(Some(unmet)) => Ok(flag.evaluate_off(Some(unmet))),
            Ok(None) => flag.evaluate_on(&self.memberships),
            Err(error) => Err(error),
        };
        EvaluatedFlag { outcome, chain }
    }

    /// Returns the first unmet prerequisite, and the length of the longest chain up to it.
    fn find_unmet(
        &mut self,
        flag: &'f CompiledFlag,
        depth: usize,
    ) -> (Result<Option<&'f FlagKey>, EvaluationError<'f>>, usize) {
        let mut chain = 1;
        for prerequisite in &flag.prerequisites {
            let key = &prerequisite.flag_key;
            let Some(index) = self.flags.index_of(key.as_str()) else {
                return (Ok(Some(key)), chain);
            };
            let evaluated = self.evaluate_at(index, depth + 1);
            chain = chain.max(evaluated.chain + 1);
            match evaluated.outcome {
                Err(error) => return (Err(error), chain),
                Ok(evaluation) if !self.meets(index, &evaluation, prerequisite) => {
                    return (Ok(Some(key)), chain);
                }
                Ok(_) => {}
            }
        }
        (Ok(None), chain)
    }

    /// `true` if a prerequisite's flag is enabled and has the required variant. A disabled flag
    /// never meets it, even if its off variant is the required one.
    fn meets(
        &self,
        index: usize,
        evaluation: &Evaluation<'f>,
        prerequisite: &Prerequisite,
    ) -> bool {
        let enabled = self.flags.at(index).is_some_and(LoadedFlag::is_enabled);
        enabled && evaluation.variant() == Some(&prerequisite.variant)
    }
}

#[cfg(test)]
mod tests;
