//! Table `feature-flags`: flags as they are evaluated.
//!
//! Reads are strongly consistent, so that what a function remembers for some seconds is not older
//! than that. A flag that cannot be read is there all the same: its evaluation fails, others' do not.

use std::collections::HashSet;
use std::sync::Arc;

use crate::flags::evaluation::{DamagedFlag, Flags, LoadedFlag};
use crate::flags::{FlagKey, MAX_PREREQUISITE_DEPTH};
use crate::projects::project::ProjectId;

use super::items::{
    FIRST_FLAG, TABLE, key, read_flag, read_id, read_key, read_prerequisites, read_version,
};
use crate::dynamodb::item::{Item, ItemReader, s};
use crate::dynamodb::{Store, StoreError};

/// Flags that were read for evaluations.
#[derive(Debug)]
pub struct StoredFlags {
    /// The flags.
    pub flags: Flags,
    /// About how many bytes they have.
    pub bytes: usize,
}

/// Flags that are being read, with what is still known of an earlier reading.
struct Reading<'k> {
    store: &'k Store,
    project: ProjectId,
    known: Option<&'k Flags>,
    flags: Vec<Arc<LoadedFlag>>,
    bytes: usize,
}

impl Store {
    /// All flags of a project that are not archived. Those that are `known` in the same version are
    /// taken over as they are.
    pub async fn flags_to_evaluate(
        &self,
        project: ProjectId,
        known: Option<&Flags>,
    ) -> Result<StoredFlags, StoreError> {
        let mut pages = self
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("projectId = :project AND #key >= :first")
            .filter_expression("attribute_not_exists(archivedAt)")
            .expression_attribute_names("#key", "key")
            .expression_attribute_values(":project", s(project))
            .expression_attribute_values(":first", s(FIRST_FLAG))
            .into_paginator()
            .items()
            .send();
        let mut reading = Reading { store: self, project, known, flags: Vec::new(), bytes: 0 };
        while let Some(item) = pages.next().await {
            reading.take(&item?);
        }
        Ok(reading.finish())
    }

    /// A flag with all that it depends on, as far as an evaluation may follow, of which what is not
    /// there or archived is left out. Otherwise as [`Self::flags_to_evaluate`].
    pub async fn flag_to_evaluate(
        &self,
        project: ProjectId,
        flag: &FlagKey,
        known: Option<&Flags>,
    ) -> Result<StoredFlags, StoreError> {
        let mut reading = Reading { store: self, project, known, flags: Vec::new(), bytes: 0 };
        let mut wanted = HashSet::from([flag.clone()]);
        let mut asked_for = HashSet::new();
        // One level more than a chain may have shows that a chain is too long.
        for _ in 0..=MAX_PREREQUISITE_DEPTH {
            if wanted.is_empty() {
                break;
            }
            let keys = wanted.iter().map(|wanted| key(project, wanted.as_str())).collect();
            asked_for.extend(wanted.drain());
            for item in self.get_all(TABLE, keys).await? {
                reading.take(&item);
                // Those of a flag that cannot be read do not matter any more.
                let next = read_prerequisites(&item).unwrap_or_default();
                let next = next.into_iter().map(|prerequisite| prerequisite.flag_key);
                wanted.extend(next.filter(|key| !asked_for.contains(key)));
            }
        }
        Ok(reading.finish())
    }
}

impl Reading<'_> {
    fn take(&mut self, item: &Item) {
        if item.contains_key("archivedAt") {
            return;
        }
        let key = match read_key(item) {
            Ok(key) => key,
            // Nobody can ask for a flag whose key is none.
            Err(damage) => return self.report(item, &damage),
        };
        self.bytes += item.get("definition").and_then(|it| it.as_s().ok()).map_or(0, String::len);
        let loaded = self.known_flag(&key, item).unwrap_or_else(|| {
            Arc::new(match read_flag(self.project, item) {
                Ok(flag) => LoadedFlag::new(flag),
                Err(damage) => {
                    self.report(item, &damage);
                    LoadedFlag::damaged(key, DamagedFlag::new(damage_of(&damage)))
                }
            })
        });
        self.flags.push(loaded);
    }

    fn report(&self, item: &Item, damage: &StoreError) {
        if let StoreError::Damaged { table, attribute } = damage {
            self.store.report_damaged(table, item, attribute);
        }
    }

    fn known_flag(&self, key: &FlagKey, item: &Item) -> Option<Arc<LoadedFlag>> {
        let known = self.known?.get(key.as_str())?;
        let reader = ItemReader { table: TABLE, item };
        let (id, version) = (read_id(reader).ok()?, read_version(reader).ok()?);
        known.is(id, version).then(|| Arc::clone(known))
    }

    fn finish(self) -> StoredFlags {
        StoredFlags { flags: Flags::new(self.project, self.flags), bytes: self.bytes }
    }
}

/// What a caller is told of a flag that cannot be read.
fn damage_of(error: &StoreError) -> String {
    match error {
        StoreError::Damaged { attribute, .. } => format!("its {attribute} cannot be read"),
        _ => "it cannot be read".to_owned(),
    }
}
