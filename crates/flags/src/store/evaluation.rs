//! Table `feature-flags`: flags as they are evaluated, and the segments that they ask for.
//!
//! Reads are strongly consistent, so that what a function remembers for some seconds is not older
//! than that. A flag that cannot be read is there all the same: its evaluation fails, others' do not.

use std::collections::HashSet;
use std::sync::Arc;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;

use shared::cache::Progress;
use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, s};
use shared::projects::project::ProjectId;

use super::FlagStore;
use super::items::{
    PROJECT_ITEM, TABLE, key, read_flag, read_id, read_key, read_prerequisites, read_segment_keys,
    read_version,
};
use super::segments::{is_segment, read_segment, read_segment_key, sort_key};
use crate::evaluation::{
    Compiler, DamagedFlag, Flags, LoadedFlag, LoadedSegment, ProjectPatterns, Segments,
};
use crate::{FeatureFlag, FlagKey, MAX_PREREQUISITE_DEPTH, Segment, SegmentKey};

/// The state that a project's flags and segments are in, by a number that grows with every write of one. One
/// that cannot be read is like no other: flags are then read each time, instead of not at all.
#[derive(Debug, Clone, Copy)]
pub struct FlagSetRevision(pub(crate) Option<i64>);

impl Default for FlagSetRevision {
    /// That of a project none of whose flags was ever written.
    fn default() -> Self {
        Self(Some(0))
    }
}

impl PartialEq for FlagSetRevision {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_some() && self.0 == other.0
    }
}

/// Flags that were read for evaluations.
#[derive(Debug)]
pub struct StoredFlags {
    /// The flags.
    pub flags: Flags,
    /// About how much memory they take, in bytes.
    pub bytes: usize,
    /// The state that the project's flags were in, read no later than they were; of one flag, at the same time.
    pub state: FlagSetRevision,
}

/// Flags that were read to be exported.
#[derive(Debug, Default)]
pub struct ExportedFlags {
    /// Those that are not archived, by their keys.
    pub flags: Vec<FeatureFlag>,
    /// All segments, by their keys.
    pub segments: Vec<Segment>,
    /// The state that they were in, read no later than they were.
    pub state: FlagSetRevision,
}

/// Flags that are being read, with what is still known of an earlier reading.
struct CachedRead<'k> {
    store: FlagStore<'k>,
    project: ProjectId,
    known: Option<&'k Flags>,
    compiler: Compiler,
    flags: Vec<Arc<LoadedFlag>>,
    segments: Vec<Arc<LoadedSegment>>,
    bytes: usize,
    state: FlagSetRevision,
}

impl FlagStore<'_> {
    /// All flags of a project that are not archived, and all its segments. Those that are `known` in the same version are
    /// taken over as they are.
    pub(crate) async fn flags_to_evaluate(
        self,
        project: ProjectId,
        known: Option<&Flags>,
        patterns: &Arc<ProjectPatterns>,
        progress: &Progress,
    ) -> Result<StoredFlags, StoreError> {
        let mut pages = self.flags_and_segments(project).into_paginator().items().send();
        let mut reading = CachedRead::new(self, project, known, patterns);
        while let Some(item) = pages.next().await {
            reading.take(&item?)?;
            progress.note();
        }
        Ok(reading.finish())
    }

    /// All flags of a project that are not archived, and all its segments, each by its key. Strongly
    /// consistent, as [`Self::flags_to_evaluate`]; what cannot be read is left out, and reported.
    pub(crate) async fn flags_to_export(
        self,
        project: ProjectId,
        progress: &Progress,
    ) -> Result<ExportedFlags, StoreError> {
        let mut pages = self.flags_and_segments(project).into_paginator().items().send();
        let mut read = ExportedFlags::default();
        while let Some(item) = pages.next().await {
            let item = item?;
            progress.note();
            if is_project(&item) {
                read.state = self.read_state(Some(&item))?;
            } else if is_segment(&item) {
                read.segments.extend(self.db.unless_damaged(&item, read_segment(project, &item))?);
            } else {
                read.flags.extend(self.db.unless_damaged(&item, read_flag(project, &item))?);
            }
        }
        Ok(read)
    }

    /// The query of a project's own item, which comes first, of its segments, and of its flags that are not
    /// archived.
    fn flags_and_segments(self, project: ProjectId) -> QueryFluentBuilder {
        self.db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("projectId = :project AND #key >= :first")
            .filter_expression("attribute_not_exists(archivedAt)")
            .expression_attribute_names("#key", "key")
            .expression_attribute_values(":project", s(project))
            .expression_attribute_values(":first", s(PROJECT_ITEM))
    }

    /// The state that a project's flags and segments are in. One read unit.
    pub async fn flags_state(self, project: ProjectId) -> Result<FlagSetRevision, StoreError> {
        self.read_state(self.db.get(TABLE, key(project, PROJECT_ITEM)).await?.as_ref())
    }

    /// The state of a project's own item; the first one where there is none yet.
    fn read_state(self, item: Option<&Item>) -> Result<FlagSetRevision, StoreError> {
        let Some(item) = item else { return Ok(FlagSetRevision::default()) };
        let state = ItemReader { table: TABLE, item }.optional_integer("flagsState");
        let state = self.db.unless_damaged(item, state)?;
        Ok(FlagSetRevision(state.map(Option::unwrap_or_default)))
    }

    /// A flag with all that it depends on, as far as an evaluation may follow, and the segments that any
    /// of these ask for; what is not there or archived is left out. Otherwise as [`Self::flags_to_evaluate`].
    pub(crate) async fn flag_to_evaluate(
        self,
        project: ProjectId,
        flag: &FlagKey,
        known: Option<&Flags>,
        patterns: &Arc<ProjectPatterns>,
        progress: &Progress,
    ) -> Result<StoredFlags, StoreError> {
        let mut reading = CachedRead::new(self, project, known, patterns);
        let mut wanted = HashSet::from([PROJECT_ITEM.to_owned(), flag.to_string()]);
        let mut asked_for = HashSet::new();
        // One level more than a chain may have shows that a chain is too long.
        for _ in 0..=MAX_PREREQUISITE_DEPTH {
            if wanted.is_empty() {
                break;
            }
            let keys = wanted.iter().map(|wanted| key(project, wanted)).collect();
            asked_for.extend(wanted.drain());
            for item in self.db.get_all(TABLE, keys).await? {
                reading.take(&item)?;
                progress.note();
                // Those of a flag that cannot be read do not matter any more.
                let next = read_prerequisites(&item).unwrap_or_default();
                let next = next.into_iter().map(|prerequisite| prerequisite.flag_key.to_string());
                let segments = read_segment_keys(&item).into_iter().map(|key| sort_key(&key));
                wanted.extend(next.chain(segments).filter(|key| !asked_for.contains(key)));
            }
        }
        Ok(reading.finish())
    }
}

impl<'k> CachedRead<'k> {
    fn new(
        store: FlagStore<'k>,
        project: ProjectId,
        known: Option<&'k Flags>,
        patterns: &Arc<ProjectPatterns>,
    ) -> Self {
        let (flags, segments) = (Vec::new(), Vec::new());
        let compiler = Compiler::new(Arc::clone(patterns));
        let state = FlagSetRevision::default();
        Self { store, project, known, compiler, flags, segments, bytes: 0, state }
    }

    fn take(&mut self, item: &Item) -> Result<(), StoreError> {
        if is_project(item) {
            self.state = self.store.read_state(Some(item))?;
        } else if is_segment(item) {
            self.take_segment(item);
        } else if !item.contains_key("archivedAt") {
            self.take_flag(item);
        }
        Ok(())
    }

    fn take_flag(&mut self, item: &Item) {
        let key = match read_key(item) {
            Ok(key) => key,
            // Nobody can ask for a flag whose key is none.
            Err(damage) => return self.report(item, &damage),
        };
        let loaded = self.known_flag(&key, item).unwrap_or_else(|| {
            Arc::new(match read_flag(self.project, item) {
                Ok(flag) => LoadedFlag::new(&flag, &mut self.compiler),
                Err(damage) => {
                    self.report(item, &damage);
                    LoadedFlag::damaged(key, DamagedFlag::new(damage_of(&damage)))
                }
            })
        });
        self.bytes += loaded.bytes();
        self.flags.push(loaded);
    }

    fn take_segment(&mut self, item: &Item) {
        let key = match read_segment_key(item) {
            Ok(key) => key,
            // No flag can ask for a segment whose key is none.
            Err(damage) => return self.report(item, &damage),
        };
        let loaded = self.known_segment(&key, item).unwrap_or_else(|| {
            Arc::new(match read_segment(self.project, item) {
                Ok(segment) => LoadedSegment::new(segment, &self.compiler),
                Err(damage) => {
                    self.report(item, &damage);
                    LoadedSegment::damaged(key)
                }
            })
        });
        self.bytes += loaded.bytes();
        self.segments.push(loaded);
    }

    fn known_segment(&self, key: &SegmentKey, item: &Item) -> Option<Arc<LoadedSegment>> {
        let known = self.known?.segments().get(key)?;
        let reader = ItemReader { table: TABLE, item };
        let (id, version) = (read_id(reader).ok()?, read_version(reader).ok()?);
        known.is(id, version).then(|| Arc::clone(known))
    }

    fn report(&self, item: &Item, damage: &StoreError) {
        if let StoreError::Damaged { table, attribute } = damage {
            self.store.db.report_damaged(table, item, attribute);
        }
    }

    fn known_flag(&self, key: &FlagKey, item: &Item) -> Option<Arc<LoadedFlag>> {
        let known = self.known?.get(key.as_str())?;
        let reader = ItemReader { table: TABLE, item };
        let (id, version) = (read_id(reader).ok()?, read_version(reader).ok()?);
        known.is(id, version).then(|| Arc::clone(known))
    }

    fn finish(self) -> StoredFlags {
        let segments = Segments::new(self.segments);
        let flags = Flags::new(self.project, self.flags).with_segments(segments);
        StoredFlags { flags, bytes: self.bytes, state: self.state }
    }
}

/// Whether an item is the project's own.
fn is_project(item: &Item) -> bool {
    item.get("key").and_then(|key| key.as_s().ok()).is_some_and(|key| key == PROJECT_ITEM)
}

/// What a caller is told of a flag that cannot be read.
fn damage_of(error: &StoreError) -> String {
    match error {
        StoreError::Damaged { attribute, .. } => format!("its {attribute} cannot be read"),
        _ => "it cannot be read".to_owned(),
    }
}
