//! Stores events in the tables, as rows or packed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;

use errors::grouping::Fingerprint;
use errors::log::day::Day;
use errors::log::manifest::{CompactionLimits, Run, RunId};
use errors::log::pack_schedule::Backlog;
use errors::log::row::EventRow;
use errors::store::{ErrorOfEvent, ErrorStore, SeenEvent};
use errors::{ErrorDescription, ErrorId, ErrorPatch, ErrorStatus, EventId};
use local::environment;
use shared::app::Ids;
use shared::dynamodb::Store;
use shared::json::Json;
use shared::projects::api_key::UserId;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::data_set::{ProjectDay, status_of};
use crate::Result;
use crate::stack::Stack;

/// The number of stored events.
#[derive(Clone, Copy, Default)]
pub(crate) struct Loaded {
    /// Events in runs.
    pub(crate) packed: u64,
    /// Events in rows.
    pub(crate) rows: u64,
    /// The size of the runs, in bytes.
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

/// Stores the events and errors of a project's days as packing and compaction would leave them at
/// `now`. Each event is received when it occurs. The last events, too few to be packed, are rows.
/// All others are in runs.
pub(super) async fn load_packed(
    stack: &Stack,
    project: ProjectId,
    days: impl Iterator<Item = ProjectDay>,
    now: Timestamp,
) -> Result<Loaded> {
    let store = stack.store();
    let (mut loaded, mut fingerprints) = (Loaded::default(), BTreeSet::new());
    let mut unpacked: Vec<EventRow> = Vec::new();
    for ProjectDay { mut rows, .. } in days {
        fingerprints.extend(rows.iter().map(|row| row.fingerprint));
        rows.sort_by_key(|row| row.occurred_at);
        for row in rows {
            let time = row.occurred_at;
            unpacked.push(row);
            let oldest = unpacked.first().map(|row| row.occurred_at);
            let backlog = Backlog { rows: unpacked.len(), bytes: 0, oldest, has_deletions: false };
            if backlog.is_worth_packing(time) {
                let packed = std::mem::take(&mut unpacked);
                loaded.packed += u64::try_from(packed.len())?;
                import(store, project, packed).await?;
            }
        }
    }
    // The first check an hour after a compaction deletes the replaced runs.
    for check in [now.minus(Duration::from_hours(1)), now] {
        while ErrorStore::new(store)
            .compact_step(project, &CompactionLimits::default(), check)
            .await?
        {}
    }
    loaded.run_bytes = bytes_of_runs(stack.client(), project).await?;
    let log = ErrorStore::new(store).enqueue_for_packing(project, None, now).await?;
    count(store, project, log.shards, &unpacked).await?;
    loaded.rows = u64::try_from(unpacked.len())?;
    create_errors(store, project, &fingerprints, now).await?;
    Ok(loaded)
}

/// Adds runs with the rows of one pack step, one run per day.
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

/// Returns the size of a project's runs in bytes, from its manifests.
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

/// Stores the events of a day as rows, and their errors, like ingestion.
pub(super) async fn load_rows(
    store: &Store,
    project: ProjectId,
    ProjectDay { day, rows }: &ProjectDay,
) -> Result<()> {
    let log = ErrorStore::new(store).enqueue_for_packing(project, None, day.start()).await?;
    count(store, project, log.shards, rows).await?;
    let fingerprints = rows.iter().map(|row| row.fingerprint).collect();
    create_errors(store, project, &fingerprints, day.start()).await
}

/// Stores events as rows, each received when it occurred.
async fn count(store: &Store, project: ProjectId, shards: u8, rows: &[EventRow]) -> Result<()> {
    let id = ErrorId::new(Ids::Random.new_uuid(Timestamp::from_millis(0)));
    // The callers create the errors.
    let error = ErrorOfEvent::Known(id);
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

/// Creates the error of a fingerprint with its status, and returns its id.
pub(super) async fn create_error(
    store: &Store,
    project: ProjectId,
    fingerprint: Fingerprint,
    new: ErrorId,
    at: Timestamp,
) -> Result<ErrorId> {
    let seen = SeenEvent {
        occurred_at: at,
        received_at: at,
        is_packed: true,
        release_seen: None,
        now: at,
    };
    let known = ErrorStore::new(store)
        .see_error(project, None, &description(fingerprint), &seen, new)
        .await?;
    let id = known.ok_or("an error is missing")?;
    let status = status_of(fingerprint);
    if status == ErrorStatus::Open {
        return Ok(id);
    }
    let error =
        ErrorStore::new(store).find_error(project, id, at).await?.ok_or("an error is missing")?;
    let mut changed = error.clone();
    let patch = format!(r#"{{"status": "{}"}}"#, status.as_str());
    let patch = Json::parse(&patch, 1).map_err(|_| "a patch is malformed")?;
    let patch = ErrorPatch::read(&patch).map_err(|_| "a patch is invalid")?;
    changed.apply(&patch, &UserId::parse("bench")?, at);
    if !ErrorStore::new(store).replace_error(project, &error, &changed, None).await? {
        return Err("another request changed an error".into());
    }
    Ok(id)
}

/// Returns a description of typical length.
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
