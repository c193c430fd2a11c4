//! A project's flags, ready to be evaluated.

use std::fmt;
use std::sync::{Arc, LazyLock};

use uuid::Uuid;

use crate::flags::{FeatureFlag, FlagKey};
use crate::projects::project::ProjectId;
use crate::timestamp::Timestamp;

use super::compiled::{CompiledFlag, DamagedFlag};
use super::context::Context;
use super::outcome::{Evaluation, EvaluationError};
use super::prerequisites::Evaluator;
use super::segments::Segments;

/// A flag as it was read from its store. It is compiled when it is first evaluated: whoever asks for
/// one flag of a project of thousands waits for no other.
pub struct LoadedFlag {
    key: FlagKey,
    id_and_version: Option<(Uuid, u64)>,
    compiled: LazyLock<Result<CompiledFlag, DamagedFlag>, Compile>,
}

type Compile = Box<dyn FnOnce() -> Result<CompiledFlag, DamagedFlag> + Send>;

impl LoadedFlag {
    /// A flag that could be read.
    pub fn new(flag: FeatureFlag) -> Self {
        Self {
            key: flag.key.clone(),
            id_and_version: Some((flag.id, flag.version)),
            compiled: LazyLock::new(Box::new(move || CompiledFlag::new(&flag))),
        }
    }

    /// A flag that is there but could not be read: its evaluation fails, that of others does not.
    pub fn damaged(key: FlagKey, damage: DamagedFlag) -> Self {
        let compiled = LazyLock::new(Box::new(move || Err(damage)) as Compile);
        Self { key, id_and_version: None, compiled }
    }

    /// The flag's key.
    pub fn key(&self) -> &FlagKey {
        &self.key
    }

    /// Whether this is the given version of the flag with the given id. Then it need not be read
    /// again, let alone compiled.
    pub fn is(&self, id: Uuid, version: u64) -> bool {
        self.id_and_version == Some((id, version))
    }

    pub(super) fn compiled(&self) -> Result<&CompiledFlag, &DamagedFlag> {
        self.compiled.as_ref()
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.compiled().is_ok_and(|flag| flag.enabled)
    }
}

impl fmt::Debug for LoadedFlag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("LoadedFlag");
        shown.field("key", &self.key).field("id_and_version", &self.id_and_version);
        shown.finish_non_exhaustive()
    }
}

/// The flags of a project that are not archived.
#[derive(Debug)]
pub struct Flags {
    project_id: ProjectId,
    /// Sorted by key, each key once.
    live: Vec<Arc<LoadedFlag>>,
    segments: Segments,
}

impl Flags {
    /// A project's flags. Archived ones are left out by the caller: to an evaluation they do not
    /// exist.
    pub fn new(
        project_id: ProjectId,
        live_flags: impl IntoIterator<Item = Arc<LoadedFlag>>,
    ) -> Self {
        let mut flags: Vec<_> = live_flags.into_iter().collect();
        flags.sort_by(|one, other| one.key.cmp(&other.key));
        flags.dedup_by(|one, other| one.key == other.key);
        Self { project_id, live: flags, segments: Segments::default() }
    }

    /// The same flags with the segments that their rules ask for.
    #[must_use]
    pub fn with_segments(self, segments: Segments) -> Self {
        Self { segments, ..self }
    }

    /// The segments.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// The project.
    pub fn project_id(&self) -> ProjectId {
        self.project_id
    }

    /// A flag by its key, to be kept where a newer reading has the same version of it.
    pub fn get(&self, key: &str) -> Option<&Arc<LoadedFlag>> {
        self.live.get(self.index_of(key)?)
    }

    /// Evaluates one flag.
    pub fn evaluate<'f>(
        &'f self,
        key: &str,
        context: &Context<'_>,
        now: Timestamp,
    ) -> Result<Evaluation<'f>, EvaluationError<'f>> {
        let index = self.index_of(key).ok_or(EvaluationError::FlagNotFound)?;
        Evaluator::new(self, context, now, 0).evaluate(index)
    }

    /// Evaluates all flags, sorted by key. Those that cannot be evaluated stand among the others.
    pub fn evaluate_all<'f>(
        &'f self,
        context: &Context<'_>,
        now: Timestamp,
    ) -> Vec<(&'f FlagKey, Result<Evaluation<'f>, EvaluationError<'f>>)> {
        let mut evaluator = Evaluator::new(self, context, now, self.live.len());
        let evaluated =
            |(index, flag): (usize, &'f Arc<LoadedFlag>)| (flag.key(), evaluator.evaluate(index));
        self.live.iter().enumerate().map(evaluated).collect()
    }

    pub(super) fn at(&self, index: usize) -> Option<&LoadedFlag> {
        self.live.get(index).map(Arc::as_ref)
    }

    pub(super) fn index_of(&self, key: &str) -> Option<usize> {
        self.live.binary_search_by(|flag| flag.key.as_str().cmp(key)).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::flags::evaluation::test_flags::{context, flag, flags, now, project};

    #[test]
    fn a_flag_of_the_same_version_can_be_kept() {
        let stored = flag("f", &json!({}));
        let (id, version) = (stored.id, stored.version);
        let old = flags([stored]);
        let kept = old.get("f").unwrap();
        assert!(kept.is(id, version));
        assert!(!kept.is(id, version + 1));
        // Deleted, and created again under the same key.
        assert!(!kept.is(Uuid::from_u128(7), version));
        let new = Flags::new(project(), [Arc::clone(kept)]);
        assert!(new.evaluate("f", &context("{}"), now()).is_ok());
        assert!(old.get("g").is_none());
        let damaged = LoadedFlag::damaged(kept.key().clone(), DamagedFlag::new("x"));
        assert!(!damaged.is(id, version));
    }

    #[test]
    fn flags_can_be_remembered_between_requests() {
        fn can_be_shared<T: Send + Sync>() {}
        can_be_shared::<Flags>();
    }
}
