//! Segments compiled for their evaluation, and which of them a context is in.

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

/// What a segment takes, in bytes, besides its conditions.
const SEGMENT_BYTES: usize = 1_000;

/// A segment as it was read from its store. It is compiled when a flag first asks for it.
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
    /// A segment that could be read.
    pub fn new(segment: Segment, compiler: &Compiler) -> Self {
        let patterns = Arc::clone(compiler.patterns());
        Self {
            bytes: Self::bytes_of(&segment),
            key: segment.key.clone(),
            id_and_version: Some((segment.id, segment.version)),
            compiled: LazyLock::new(Box::new(move || CompiledSegment::new(&segment, &patterns))),
        }
    }

    /// About how much memory a segment takes, in bytes, without its patterns.
    pub(crate) fn bytes_of(segment: &Segment) -> usize {
        SEGMENT_BYTES + condition::bytes_of(&segment.conditions)
    }

    /// A segment that is there but could not be read: flags that ask for it fail, others do not.
    pub fn damaged(key: SegmentKey) -> Self {
        let damage = DamagedFlag::new("it cannot be read");
        let compiled = LazyLock::new(Box::new(move || Err(damage)) as Compile);
        Self { key, id_and_version: None, compiled, bytes: 0 }
    }

    /// About how much memory it takes, in bytes, without its patterns.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether this is the given version of the segment with the given id. Then it need not be read
    /// again, let alone compiled.
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
            // Otherwise segments could ask for each other in a circle.
            CompiledCondition::Segments { .. } => Err("it asks for segments".to_owned()),
            of_attribute => Ok(of_attribute),
        };
        let conditions: Result<_, String> = segment.conditions.iter().map(compile).collect();
        Ok(Self { conditions: conditions.map_err(DamagedFlag::new)?, attributes })
    }
}

/// The segments of a project, or those of them that some flags ask for.
#[derive(Debug, Default)]
pub struct Segments(
    /// Sorted by key, each key once.
    Vec<Arc<LoadedSegment>>,
);

impl Segments {
    /// These segments.
    pub fn new(segments: impl IntoIterator<Item = Arc<LoadedSegment>>) -> Self {
        let mut segments: Vec<_> = segments.into_iter().collect();
        segments.sort_by(|one, other| one.key.cmp(&other.key));
        segments.dedup_by(|one, other| one.key == other.key);
        Self(segments)
    }

    /// A segment by its key, to be kept where a newer reading has the same version of it.
    pub fn get(&self, key: &SegmentKey) -> Option<&Arc<LoadedSegment>> {
        self.0.get(self.index_of(key)?)
    }

    fn index_of(&self, key: &SegmentKey) -> Option<usize> {
        self.0.binary_search_by(|segment| segment.key.cmp(key)).ok()
    }
}

/// Which segments a context is in, and how much work may still be done for it. What several flags ask is worked
/// out once.
pub(super) struct Memberships<'f, 'c> {
    segments: &'f Segments,
    context: &'c Context<'c>,
    now: Timestamp,
    /// The limit that was met where it would take too long to tell.
    known: Box<[OnceCell<Result<bool, WorkLimit>>]>,
    effort: RequestBudget,
}

impl<'f, 'c> Memberships<'f, 'c> {
    pub(super) fn new(segments: &'f Segments, context: &'c Context<'c>, now: Timestamp) -> Self {
        let known = segments.0.iter().map(|_| OnceCell::new()).collect();
        Self { segments, context, now, known, effort: RequestBudget::default() }
    }

    pub(super) fn context(&self) -> &'c Context<'c> {
        self.context
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// The work that may still be done.
    pub(super) fn effort(&self) -> &RequestBudget {
        &self.effort
    }

    /// Whether it can be said of this segment who is in it.
    pub(super) fn knows(&self, segment: &SegmentKey) -> bool {
        self.segments.get(segment).is_some_and(|segment| segment.compiled.is_ok())
    }

    /// Whether the context is in a segment; nobody is in one of which it cannot be said. Exhausts whoever asks
    /// where it would take too long to tell.
    pub(super) fn includes(&self, segment: &SegmentKey, asking: &EvaluationBudget<'_>) -> bool {
        let Some(index) = self.segments.index_of(segment) else { return false };
        let (Some(known), Some(segment)) = (self.known.get(index), self.segments.0.get(index))
        else {
            return false;
        };
        let known = *known.get_or_init(|| {
            let Ok(compiled) = segment.compiled.as_ref() else { return Ok(false) };
            let attributes = Found::new(&compiled.attributes, self.context.attributes());
            let effort = self.effort.of_segment();
            let mut conditions = compiled.conditions.iter();
            let holds = conditions.all(|condition| condition.holds(&attributes, self, &effort));
            effort.exhausted().map_or(Ok(holds), Err)
        });
        known.unwrap_or_else(|limit| {
            asking.exhaust(limit);
            false
        })
    }
}

#[cfg(test)]
mod tests;
