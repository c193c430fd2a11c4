//! A project's flags, ready for evaluation.

use std::sync::Arc;

use uuid::Uuid;

use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::compiled::{CompiledFlag, DamagedFlag};
use super::compiler::Compiler;
use super::context::Context;
use super::outcome::{Evaluation, EvaluationError};
use super::prerequisites::Evaluator;
use super::segments::Segments;
use crate::{FeatureFlag, FlagKey};

/// A flag as read from the store, in compiled form only.
#[derive(Debug)]
pub struct LoadedFlag {
    key: FlagKey,
    id_and_version: Option<(Uuid, u64)>,
    compiled: Result<CompiledFlag, DamagedFlag>,
    bytes: usize,
}

impl LoadedFlag {
    /// Returns a readable flag.
    pub fn new(flag: &FeatureFlag, compiler: &mut Compiler) -> Self {
        Self {
            key: flag.key.clone(),
            id_and_version: Some((flag.id, flag.version)),
            compiled: CompiledFlag::new(flag, compiler),
            bytes: CompiledFlag::bytes_of(flag),
        }
    }

    /// Returns a stored but unreadable flag. Its evaluation fails, others do not.
    pub fn damaged(key: FlagKey, damage: DamagedFlag) -> Self {
        Self { key, id_and_version: None, compiled: Err(damage), bytes: 0 }
    }

    /// Returns the flag's key.
    pub fn key(&self) -> &FlagKey {
        &self.key
    }

    /// Returns the approximate size in memory, in bytes, without the patterns.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// `true` if this is the given version of the flag with the given ID, so that it need not be
    /// read and compiled again.
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

/// The unarchived flags of a project.
#[derive(Debug)]
pub struct Flags {
    project_id: ProjectId,
    /// Sorted by key, without duplicates.
    live: Vec<Arc<LoadedFlag>>,
    segments: Segments,
}

impl Flags {
    /// Returns a project's flags. The caller omits archived flags, which evaluations treat as
    /// missing.
    pub fn new(
        project_id: ProjectId,
        live_flags: impl IntoIterator<Item = Arc<LoadedFlag>>,
    ) -> Self {
        let mut flags: Vec<_> = live_flags.into_iter().collect();
        flags.sort_by(|one, other| one.key.cmp(&other.key));
        flags.dedup_by(|one, other| one.key == other.key);
        Self { project_id, live: flags, segments: Segments::default() }
    }

    /// Returns the flags together with the segments that their rules use.
    #[must_use]
    pub fn with_segments(self, segments: Segments) -> Self {
        Self { segments, ..self }
    }

    /// Returns the segments.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Returns the project's ID.
    pub fn project_id(&self) -> ProjectId {
        self.project_id
    }

    /// Returns a flag by its key. A later read can reuse it if its version is unchanged.
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
        Evaluator::new(self, context, now).evaluate(index)
    }

    /// Evaluates all flags, sorted by key. Flags that cannot be evaluated are included.
    pub fn evaluate_all<'f>(
        &'f self,
        context: &Context<'_>,
        now: Timestamp,
    ) -> impl Iterator<Item = (&'f FlagKey, Result<Evaluation<'f>, EvaluationError<'f>>)> {
        let mut evaluator = Evaluator::new(self, context, now);
        let evaluated = move |(index, flag): (usize, &'f Arc<LoadedFlag>)| {
            (flag.key(), evaluator.evaluate(index))
        };
        self.live.iter().enumerate().map(evaluated)
    }

    /// Returns the number of flags.
    pub(super) fn len(&self) -> usize {
        self.live.len()
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
    use crate::evaluation::test_flags::{context, flag, flags, now, project, resident};

    #[test]
    fn flags_with_the_same_version_are_reusable() {
        let stored = flag("f", &json!({}));
        let (id, version) = (stored.id, stored.version);
        let old = flags([stored]);
        let kept = old.get("f").unwrap();
        assert!(kept.is(id, version));
        assert!(!kept.is(id, version + 1));
        // The flag was deleted and created again with the same key.
        assert!(!kept.is(Uuid::from_u128(7), version));
        let new = Flags::new(project(), [Arc::clone(kept)]);
        assert!(new.evaluate("f", &context("{}"), now()).is_ok());
        assert!(old.get("g").is_none());
        let damaged = LoadedFlag::damaged(kept.key().clone(), DamagedFlag::new("x"));
        assert!(!damaged.is(id, version));
    }

    #[test]
    fn flags_use_at_most_the_counted_memory() {
        let list = |of: fn(usize) -> String| (0..30).map(of).collect::<Vec<_>>();
        let numbers: Vec<String> = (0..250).map(|number| number.to_string()).collect();
        let texts: Vec<String> = (0..250).map(|number| format!("{number:x}t")).collect();
        let condition = |values: &[String], name: &str| {
            let operators = ["in", "contains", "starts_with"];
            let of = |operator| json!({"attribute": name, "operator": operator, "values": values});
            operators.map(of)
        };
        let rule = |values: &[String], number: usize| {
            let conditions: Vec<_> =
                (0..10).flat_map(|it| condition(values, &format!("a{it}.b{number}"))).collect();
            json!({"conditions": conditions, "serve": {"variant": "on"}})
        };
        let target = |number: usize| json!({"kind": "identifier", "value": format!("{number}"), "variant": "on"});
        let targets: Vec<_> = (0..1_000).map(target).collect();
        let variant = |name: String| json!({"key": name, "value": if name == "on" { "true" } else { "false" }});
        let many: Vec<_> = list(|number| format!("v{number}")).into_iter().map(variant).collect();
        let forms = [
            json!({"rules": [rule(&numbers, 0), rule(&numbers, 1)]}),
            json!({"rules": [rule(&texts, 0), rule(&texts, 1)]}),
            json!({"targets": targets}),
            json!({"variants": many, "offVariant": "v0", "fallthrough": {"variant": "v1"}}),
            json!({}),
        ];
        for form in forms {
            let flag = flag("f", &form);
            let mut loaded = Vec::with_capacity(2_000);
            loaded.push(LoadedFlag::new(&flag, &mut Compiler::default()));
            let times = (8_000_000 / loaded[0].bytes()).min(2_000);
            let before = resident();
            for _ in 0..times {
                // A new compiler each time, so that flags share nothing.
                loaded.push(LoadedFlag::new(&flag, &mut Compiler::default()));
            }
            let grown = resident().saturating_sub(before);
            let counted = times * loaded[0].bytes();
            assert!(grown < counted + 500_000, "{grown}, {counted}: {:.200}", form.to_string());
        }
    }

    #[test]
    fn flags_can_be_shared_between_requests() {
        fn can_be_shared<T: Send + Sync>() {}
        can_be_shared::<Flags>();
    }
}
