//! Bringing events into the tables: as rows, or packed right away.

use std::collections::BTreeSet;
use std::time::Duration;

use shared::app::Ids;
use shared::dynamodb::Store;
use shared::error_tracking::log::row::{EventRow, Fingerprint};
use shared::error_tracking::store::Taken;
use shared::error_tracking::{ErrorDescription, ErrorId, ErrorStatus, EventId};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::data_set::{ProjectDay, status_of};
use crate::Result;

/// The time before now of which events are rows: at 5,000 events a day, as many as packing leaves.
const ROWS: Duration = Duration::from_hours(2);
/// That ingestion took no events of a project.
const NOTHING: Taken = Taken { events: 0, time: Duration::ZERO };

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

/// Stores the events of a project's days and their errors, as they would be after packing at `now`:
/// those of the last day as rows, all others in runs.
pub(super) async fn load_packed(
    store: &Store,
    project: ProjectId,
    days: impl Iterator<Item = ProjectDay>,
    now: Timestamp,
) -> Result<Loaded> {
    let (mut loaded, mut fingerprints) = (Loaded::default(), BTreeSet::new());
    let packed_until = now.minus(ROWS);
    let shards = store.want_packing(project, NOTHING, now).await?;
    for ProjectDay { day, rows } in days {
        fingerprints.extend(rows.iter().map(|row| row.fingerprint));
        let (packed, open): (Vec<EventRow>, Vec<EventRow>) =
            rows.into_iter().partition(|row| row.occurred_at < packed_until);
        if !packed.is_empty() {
            loaded.run_bytes += store.import_events(project, day, &packed).await?;
            loaded.packed += u64::try_from(packed.len())?;
        }
        count(store, project, shards, &open).await?;
        loaded.rows += u64::try_from(open.len())?;
    }
    create_errors(store, project, &fingerprints, now).await?;
    Ok(loaded)
}

/// Stores the events of a day as rows, and their errors, as ingestion does.
pub(super) async fn load_rows(
    store: &Store,
    project: ProjectId,
    ProjectDay { day, rows }: &ProjectDay,
) -> Result<()> {
    let shards = store.want_packing(project, NOTHING, day.start()).await?;
    count(store, project, shards, rows).await?;
    let fingerprints = rows.iter().map(|row| row.fingerprint).collect();
    create_errors(store, project, &fingerprints, day.start()).await
}

/// Stores rows as if each event was taken in the moment when it occurred.
async fn count(store: &Store, project: ProjectId, shards: u8, rows: &[EventRow]) -> Result<()> {
    for row in rows {
        let id = Ids::Random.new_uuid(row.occurred_at).into_bytes();
        let id = EventId::from_random_bytes(id).ok_or("a UUID is all zero")?;
        store.count_event(project, id, row, shards, row.occurred_at).await?;
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
        let id = store.see_error(project, None, new, &description(*fingerprint), at).await?;
        let status = status_of(*fingerprint);
        if status == ErrorStatus::Open {
            continue;
        }
        let error = store.find_error(project, id).await?.ok_or("an error is gone")?;
        let mut changed = error.clone();
        changed.set_status(status, at);
        if !store.replace_error(project, &error, &changed).await? {
            return Err("somebody else changed an error".into());
        }
    }
    Ok(())
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
