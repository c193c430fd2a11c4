//! Table `feature-flags`: reads flags and their segments for evaluations.
//!
//! Reads are strongly consistent, so that a cached flag is never older than its time in the cache.
//! An unreadable flag stays in the result: its evaluation fails, others do not.

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

/// The revision of a project's flags and segments, incremented by each write. An unreadable
/// revision equals no other, so that flags are then read each time.
#[derive(Debug, Clone, Copy)]
pub struct FlagSetRevision(pub(crate) Option<i64>);

impl Default for FlagSetRevision {
    /// Returns the revision of a project without any writes.
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
    /// Approximate size in memory, in bytes.
    pub bytes: usize,
    /// The revision of the project's flags, read no later than the flags.
    pub revision: FlagSetRevision,
}

/// Flags that were read for an export.
#[derive(Debug, Default)]
pub struct ExportedFlags {
    /// Unarchived flags, sorted by key.
    pub flags: Vec<FeatureFlag>,
    /// All segments, sorted by key.
    pub segments: Vec<Segment>,
    /// The revision of the project's flags, read no later than the flags.
    pub revision: FlagSetRevision,
}

/// Collects flags and segments as they are read, and reuses those `known` from an earlier read.
struct FlagCollector<'k> {
    store: FlagStore<'k>,
    project: ProjectId,
    known: Option<&'k Flags>,
    compiler: Compiler,
    flags: Vec<Arc<LoadedFlag>>,
    segments: Vec<Arc<LoadedSegment>>,
    bytes: usize,
    revision: FlagSetRevision,
}

impl FlagStore<'_> {
    /// Returns all unarchived flags and all segments of a project. Reuses `known` ones with the
    /// same version.
    pub(crate) async fn flags_to_evaluate(
        self,
        project: ProjectId,
        known: Option<&Flags>,
        patterns: &Arc<ProjectPatterns>,
        progress: &Progress,
    ) -> Result<StoredFlags, StoreError> {
        let mut pages = self.flags_and_segments(project).into_paginator().items().send();
        let mut collector = FlagCollector::new(self, project, known, patterns);
        while let Some(item) = pages.next().await {
            collector.add(&item?)?;
            progress.note();
        }
        Ok(collector.finish())
    }

    /// Returns all unarchived flags and all segments of a project, sorted by key. Strongly
    /// consistent. Omits and reports unreadable items.
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
                read.revision = self.read_revision(Some(&item))?;
            } else if is_segment(&item) {
                read.segments.extend(self.db.unless_damaged(&item, read_segment(project, &item))?);
            } else {
                read.flags.extend(self.db.unless_damaged(&item, read_flag(project, &item))?);
            }
        }
        Ok(read)
    }

    /// Returns the query for a project's own item, which comes first, its segments and its
    /// unarchived flags.
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

    /// Returns the revision of a project's flags and segments. Costs one read unit.
    pub async fn flag_set_revision(
        self,
        project: ProjectId,
    ) -> Result<FlagSetRevision, StoreError> {
        self.read_revision(self.db.get(TABLE, key(project, PROJECT_ITEM)).await?.as_ref())
    }

    /// Reads the revision from a project's own item, if there is one.
    fn read_revision(self, item: Option<&Item>) -> Result<FlagSetRevision, StoreError> {
        let Some(item) = item else { return Ok(FlagSetRevision::default()) };
        let revision = ItemReader { table: TABLE, item }.optional_integer("flagsState");
        let revision = self.db.unless_damaged(item, revision)?;
        Ok(FlagSetRevision(revision.map(Option::unwrap_or_default)))
    }

    /// Returns a flag and its prerequisites, as deep as an evaluation can follow, with all their
    /// segments. Omits missing and archived flags. Otherwise like [`Self::flags_to_evaluate`].
    pub(crate) async fn flag_to_evaluate(
        self,
        project: ProjectId,
        flag: &FlagKey,
        known: Option<&Flags>,
        patterns: &Arc<ProjectPatterns>,
        progress: &Progress,
    ) -> Result<StoredFlags, StoreError> {
        let mut collector = FlagCollector::new(self, project, known, patterns);
        let wanted = HashSet::from([PROJECT_ITEM.to_owned(), flag.to_string()]);
        collector.add_chains(wanted, HashSet::new(), || progress.note()).await?;
        Ok(collector.finish())
    }

    /// Returns a flag as it is given, perhaps with unsaved changes, and its saved prerequisites and
    /// segments.
    pub async fn flag_to_test(self, flag: &FeatureFlag) -> Result<Flags, StoreError> {
        let patterns = Arc::default();
        let mut collector = FlagCollector::new(self, flag.project_id, None, &patterns);
        collector.flags.push(Arc::new(LoadedFlag::new(flag, &mut collector.compiler)));
        let prerequisites = flag.prerequisites.iter().map(|it| it.flag_key.to_string());
        let segments = flag.segments().into_iter().map(|key| sort_key(&key));
        let wanted = prerequisites.chain(segments).filter(|it| *it != flag.key.as_str()).collect();
        let requested = HashSet::from([flag.key.to_string()]);
        collector.add_chains(wanted, requested, || {}).await?;
        Ok(collector.finish().flags)
    }
}

impl<'k> FlagCollector<'k> {
    /// Reads flags and segments, and the chains that start at these flags.
    async fn add_chains(
        &mut self,
        mut wanted: HashSet<String>,
        mut requested: HashSet<String>,
        note: impl Fn(),
    ) -> Result<(), StoreError> {
        let (store, project) = (self.store, self.project);
        // One level more than allowed reveals a chain that is too long.
        for _ in 0..=MAX_PREREQUISITE_DEPTH {
            if wanted.is_empty() {
                break;
            }
            let keys = wanted.iter().map(|wanted| key(project, wanted)).collect();
            requested.extend(wanted.drain());
            for item in store.db.get_all(TABLE, keys).await? {
                self.add(&item)?;
                note();
                // The prerequisites of an unreadable flag do not matter.
                let next = read_prerequisites(&item).unwrap_or_default();
                let next = next.into_iter().map(|prerequisite| prerequisite.flag_key.to_string());
                let segments = read_segment_keys(&item).into_iter().map(|key| sort_key(&key));
                wanted.extend(next.chain(segments).filter(|key| !requested.contains(key)));
            }
        }
        Ok(())
    }

    fn new(
        store: FlagStore<'k>,
        project: ProjectId,
        known: Option<&'k Flags>,
        patterns: &Arc<ProjectPatterns>,
    ) -> Self {
        let (flags, segments) = (Vec::new(), Vec::new());
        let compiler = Compiler::new(Arc::clone(patterns));
        let revision = FlagSetRevision::default();
        Self { store, project, known, compiler, flags, segments, bytes: 0, revision }
    }

    fn add(&mut self, item: &Item) -> Result<(), StoreError> {
        if is_project(item) {
            self.revision = self.store.read_revision(Some(item))?;
        } else if is_segment(item) {
            self.add_segment(item);
        } else if !item.contains_key("archivedAt") {
            self.add_flag(item);
        }
        Ok(())
    }

    fn add_flag(&mut self, item: &Item) {
        let key = match read_key(item) {
            Ok(key) => key,
            // No request can name a flag with an invalid key.
            Err(damage) => return self.report(item, &damage),
        };
        let loaded = self.known_flag(&key, item).unwrap_or_else(|| {
            Arc::new(match read_flag(self.project, item) {
                Ok(flag) => LoadedFlag::new(&flag, &mut self.compiler),
                Err(damage) => {
                    self.report(item, &damage);
                    // The log names the attribute; clients must not see stored names.
                    LoadedFlag::damaged(key, DamagedFlag::new("it cannot be read"))
                }
            })
        });
        self.bytes += loaded.bytes();
        self.flags.push(loaded);
    }

    fn add_segment(&mut self, item: &Item) {
        let key = match read_segment_key(item) {
            Ok(key) => key,
            // No flag can name a segment with an invalid key.
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
        StoredFlags { flags, bytes: self.bytes, revision: self.revision }
    }
}

/// `true` if an item is the project's own.
fn is_project(item: &Item) -> bool {
    item.get("key").and_then(|key| key.as_s().ok()).is_some_and(|key| key == PROJECT_ITEM)
}
