//! Bringing events into the tables: as rows, or packed right away.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;

use errors::grouping::Fingerprint;
use errors::log::day::Day;
use errors::log::manifest::{CompactionLimits, Run, RunId};
use errors::log::row::EventRow;
use errors::log::visit::Backlog;
use errors::store::{ErrorOfEvent, ErrorStore, SeenEvent};
use errors::{ErrorDescription, ErrorId, ErrorStatus, EventId, KnownError};
use local::environment;
use shared::app::Ids;
use shared::dynamodb::Store;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::data_set::{ProjectDay, status_of};
use crate::Result;
use crate::stack::Stack;

/// How many events were stored.
#[derive(Clone, Copy, Default)]
pub(crate) struct Loaded {
    /// Events in runs.
    pub(crate) packed: u64,
    /// Events that are rows.
    pub(crate) rows: u64,
    /// The bytes of the runs.
    pub(crate) run_bytes: u64,
}

impl Loaded {
    pub(crate) fn events(self) -> u64 {
        self.packed + self.rows
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self {
            packed: self.packed + other.packed,
            rows: self.rows + other.rows,
            run_bytes: self.run_bytes + other.run_bytes,
        }
    }
}

/// Stores the events of a project's days and their errors, as they would be after packing and merging
/// until `now`, had each event been taken in the moment when it occurred: those that are too few to be
/// packed as rows, all others in runs.
pub(super) async fn load_packed(
    stack: &Stack,
    project: ProjectId,
    days: impl Iterator<Item = ProjectDay>,
    now: Timestamp,
) -> Result<Loaded> {
    let store = stack.store();
    let (mut loaded, mut fingerprints) = (Loaded::default(), BTreeSet::new());
    let mut waiting: Vec<EventRow> = Vec::new();
    for ProjectDay { mut rows, .. } in days {
        fingerprints.extend(rows.iter().map(|row| row.fingerprint));
        rows.sort_by_key(|row| row.occurred_at);
        for row in rows {
            let time = row.occurred_at;
            waiting.push(row);
            let oldest = waiting.first().map(|row| row.occurred_at);
            let backlog = Backlog { rows: waiting.len(), bytes: 0, oldest, has_deletions: false };
            if backlog.is_worth_packing(time) {
                let packed = std::mem::take(&mut waiting);
                loaded.packed += u64::try_from(packed.len())?;
                import(store, project, packed).await?;
            }
        }
    }
    // Runs that were replaced are deleted by the first visit that is an hour later.
    for visit in [now.minus(Duration::from_hours(1)), now] {
        while ErrorStore::new(store)
            .merge_step(project, &CompactionLimits::default(), visit)
            .await?
        {}
    }
    loaded.run_bytes = bytes_of_runs(stack.client(), project).await?;
    let shards = ErrorStore::new(store).enqueue_for_packing(project, None, now).await?;
    count(store, project, shards, &waiting).await?;
    loaded.rows = u64::try_from(waiting.len())?;
    create_errors(store, project, &fingerprints, now).await?;
    Ok(loaded)
}

/// Adds runs of what a step of packing takes, one for each day.
async fn import(store: &Store, project: ProjectId, rows: Vec<EventRow>) -> Result<()> {
    let mut days: BTreeMap<Day, Vec<EventRow>> = BTreeMap::new();
    for row in rows {
        days.entry(Day::of(row.occurred_at)).or_default().push(row);
    }
    for (day, rows) in days {
        ErrorStore::new(store).backfill_events(project, day, &rows).await?;
    }
    Ok(())
}

/// The bytes of a project's runs, as its manifests tell them.
pub(super) async fn bytes_of_runs(client: &Client, project: ProjectId) -> Result<u64> {
    let query = client.query().table_name(format!("{}errors", environment::table_prefix()));
    let query = query.key_condition_expression("pk = :pk").consistent_read(true);
    let pk = AttributeValue::S(format!("manifest#{project}"));
    let mut manifests =
        query.expression_attribute_values(":pk", pk).into_paginator().items().send();
    let mut bytes = 0;
    while let Some(manifest) = manifests.next().await {
        for (name, run) in &manifest? {
            let Some(id) = name.strip_prefix("r_").and_then(RunId::parse) else { continue };
            let run = run.as_b().map_err(|_| "a run is no bytes")?;
            bytes += Run::from_bytes(id, run.as_ref())?.bytes;
        }
    }
    Ok(bytes)
}

/// Stores the events of a day as rows, and their errors, as ingestion does.
pub(super) async fn load_rows(
    store: &Store,
    project: ProjectId,
    ProjectDay { day, rows }: &ProjectDay,
) -> Result<()> {
    let shards = ErrorStore::new(store).enqueue_for_packing(project, None, day.start()).await?;
    count(store, project, shards, rows).await?;
    let fingerprints = rows.iter().map(|row| row.fingerprint).collect();
    create_errors(store, project, &fingerprints, day.start()).await
}

/// Stores rows as if each event was taken in the moment when it occurred.
async fn count(store: &Store, project: ProjectId, shards: u8, rows: &[EventRow]) -> Result<()> {
    let id = ErrorId::new(Ids::Random.new_uuid(Timestamp::from_millis(0)));
    // Its error is made on its own.
    let error = ErrorOfEvent::Known(KnownError { id, event_shards: 1 });
    for row in rows {
        let id = Ids::Random.new_uuid(row.occurred_at).into_bytes();
        let id = EventId::from_random_bytes(id).ok_or("a UUID is all zero")?;
        ErrorStore::new(store)
            .count_event(project, id, row, &error, shards, row.occurred_at)
            .await?;
    }
    Ok(())
}

async fn create_errors(
    store: &Store,
    project: ProjectId,
    fingerprints: &BTreeSet<Fingerprint>,
    at: Timestamp,
) -> Result<()> {
    for fingerprint in fingerprints {
        let new = ErrorId::new(Ids::Random.new_uuid(at));
        create_error(store, project, *fingerprint, new, at).await?;
    }
    Ok(())
}

/// Makes the error of a fingerprint known, with its status, and answers its id.
pub(super) async fn create_error(
    store: &Store,
    project: ProjectId,
    fingerprint: Fingerprint,
    new: ErrorId,
    at: Timestamp,
) -> Result<ErrorId> {
    let seen = SeenEvent { occurred_at: at, received_at: at, is_packed: true, now: at };
    let known = ErrorStore::new(store)
        .see_error(project, None, &description(fingerprint), &seen, new)
        .await?;
    let id = known.ok_or("an error is gone")?.id;
    let status = status_of(fingerprint);
    if status == ErrorStatus::Open {
        return Ok(id);
    }
    let error =
        ErrorStore::new(store).find_error(project, id, at).await?.ok_or("an error is gone")?;
    let mut changed = error.clone();
    changed.set_status(status, at);
    if !ErrorStore::new(store).replace_error(project, &error, &changed, None).await? {
        return Err("somebody else changed an error".into());
    }
    Ok(id)
}

/// A description of the usual length.
fn description(fingerprint: Fingerprint) -> ErrorDescription {
    let message = format!("Cannot read properties of undefined (reading 'item-{fingerprint}')");
    ErrorDescription {
        fingerprint,
        title: format!("TypeError: {message}"),
        error_type: "TypeError".to_owned(),
        message,
        culprit: "app/checkout/summary in renderLineItems".to_owned(),
    }
}
