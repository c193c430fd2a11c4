//! Compiled segments, and a context's memberships in them.

use std::cell::OnceCell;
use std::fmt;
use std::sync::{Arc, LazyLock};

use uuid::Uuid;

use shared::timestamp::Timestamp;

use super::attribute::{AttributePaths, Found};
use super::budget::{EvaluationBudget, RequestBudget, WorkLimit};
use super::compiled::DamagedFlag;
use super::compiler::Compiler;
use super::condition::{self, CompiledCondition};
use super::context::Context;
use super::patterns::ProjectPatterns;
use crate::{Segment, SegmentKey};

/// Size of a segment in memory without its conditions, in bytes.
const SEGMENT_BYTES: usize = 1_000;

/// A segment as read from the store. It is compiled when a flag first uses it.
pub struct LoadedSegment {
    key: SegmentKey,
    id_and_version: Option<(Uuid, u64)>,
    compiled: LazyLock<Result<CompiledSegment, DamagedFlag>, Compile>,
    bytes: usize,
}

type Compile = Box<dyn FnOnce() -> Result<CompiledSegment, DamagedFlag> + Send>;

#[derive(Debug)]
struct CompiledSegment {
    conditions: Box<[CompiledCondition]>,
    attributes: AttributePaths,
}

impl LoadedSegment {
    /// Returns a readable segment.
    pub fn new(segment: Segment, compiler: &Compiler) -> Self {
        let patterns = Arc::clone(compiler.patterns());
        Self {
            bytes: Self::bytes_of(&segment),
            key: segment.key.clone(),
            id_and_version: Some((segment.id, segment.version)),
            compiled: LazyLock::new(Box::new(move || CompiledSegment::new(&segment, &patterns))),
        }
    }

    /// Returns the approximate size of a segment in memory, in bytes, without its patterns.
    pub(crate) fn bytes_of(segment: &Segment) -> usize {
        SEGMENT_BYTES + condition::bytes_of(&segment.conditions)
    }

    /// Returns a stored but unreadable segment. Only flags that use it fail.
    pub fn damaged(key: SegmentKey) -> Self {
        let damage = DamagedFlag::new("it cannot be read");
        let compiled = LazyLock::new(Box::new(move || Err(damage)) as Compile);
        Self { key, id_and_version: None, compiled, bytes: 0 }
    }

    /// Returns the approximate size in memory, in bytes, without the patterns.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// `true` if this is the given version of the segment with the given ID, so that it need not be
    /// read and compiled again.
    pub fn is(&self, id: Uuid, version: u64) -> bool {
        self.id_and_version == Some((id, version))
    }
}

impl fmt::Debug for LoadedSegment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("LoadedSegment");
        shown.field("key", &self.key).field("id_and_version", &self.id_and_version);
        shown.finish_non_exhaustive()
    }
}

impl CompiledSegment {
    fn new(segment: &Segment, patterns: &Arc<ProjectPatterns>) -> Result<Self, DamagedFlag> {
        let mut attributes = AttributePaths::default();
        let mut compiler = Compiler::new(Arc::clone(patterns));
        let mut compile =
            |condition| CompiledCondition::new(condition, &mut attributes, &mut compiler);
        let compile = |condition| match compile(condition)? {
            // Segments that use segments could form a cycle.
            CompiledCondition::Segments { .. } => Err("it refers to segments".to_owned()),
            of_attribute => Ok(of_attribute),
        };
        let conditions: Result<_, String> = segment.conditions.iter().map(compile).collect();
        Ok(Self { conditions: conditions.map_err(DamagedFlag::new)?, attributes })
    }
}

/// The segments of a project, or those that some flags use.
#[derive(Debug, Default)]
pub struct Segments(
    /// Sorted by key, without duplicates.
    Vec<Arc<LoadedSegment>>,
);

impl Segments {
    /// Returns a set of these segments.
    pub fn new(segments: impl IntoIterator<Item = Arc<LoadedSegment>>) -> Self {
        let mut segments: Vec<_> = segments.into_iter().collect();
        segments.sort_by(|one, other| one.key.cmp(&other.key));
        segments.dedup_by(|one, other| one.key == other.key);
        Self(segments)
    }

    /// Returns a segment by its key. A later read can reuse it if its version is unchanged.
    pub fn get(&self, key: &SegmentKey) -> Option<&Arc<LoadedSegment>> {
        self.0.get(self.index_of(key)?)
    }

    fn index_of(&self, key: &SegmentKey) -> Option<usize> {
        self.0.binary_search_by(|segment| segment.key.cmp(key)).ok()
    }
}

/// A context's memberships in segments, and the remaining work of its request. Each membership is
/// evaluated once for all flags.
pub(super) struct Memberships<'f, 'c> {
    segments: &'f Segments,
    context: &'c Context<'c>,
    now: Timestamp,
    /// Each membership, or the work limit that its evaluation exceeded.
    known: Box<[OnceCell<Result<bool, WorkLimit>>]>,
    budget: RequestBudget,
}

impl<'f, 'c> Memberships<'f, 'c> {
    pub(super) fn new(segments: &'f Segments, context: &'c Context<'c>, now: Timestamp) -> Self {
        let known = segments.0.iter().map(|_| OnceCell::new()).collect();
        Self { segments, context, now, known, budget: RequestBudget::default() }
    }

    pub(super) fn context(&self) -> &'c Context<'c> {
        self.context
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the remaining work.
    pub(super) fn budget(&self) -> &RequestBudget {
        &self.budget
    }

    /// `true` if the segment exists and is readable.
    pub(super) fn is_readable(&self, segment: &SegmentKey) -> bool {
        self.segments.get(segment).is_some_and(|segment| segment.compiled.is_ok())
    }

    /// `true` if the context is in a segment. No context is in a missing or unreadable segment. If
    /// the evaluation exceeds a work limit, exhausts `flag_budget`.
    pub(super) fn includes(
        &self,
        segment: &SegmentKey,
        flag_budget: &EvaluationBudget<'_>,
    ) -> bool {
        let Some(index) = self.segments.index_of(segment) else { return false };
        let (Some(known), Some(segment)) = (self.known.get(index), self.segments.0.get(index))
        else {
            return false;
        };
        let known = *known.get_or_init(|| {
            let Ok(compiled) = segment.compiled.as_ref() else { return Ok(false) };
            let attributes = Found::new(&compiled.attributes, self.context.attributes());
            let segment_budget = self.budget.of_segment();
            let mut conditions = compiled.conditions.iter();
            let holds =
                conditions.all(|condition| condition.holds(&attributes, self, &segment_budget));
            segment_budget.exhausted().map_or(Ok(holds), Err)
        });
        known.unwrap_or_else(|limit| {
            flag_budget.exhaust(limit);
            false
        })
    }
}

#[cfg(test)]
mod tests;
