//! Bringing events into the tables: as rows, or packed right away.

use std::collections::BTreeSet;

use shared::app::Ids;
use shared::dynamodb::Store;
use shared::error_tracking::log::day::{Day, Hours};
use shared::error_tracking::log::day_state::{DayState, SegmentState};
use shared::error_tracking::log::row::{EventRow, Fingerprint};
use shared::error_tracking::log::segment::{Base, ColumnName, Decoder, pack};
use shared::error_tracking::{ErrorDescription, ErrorId, ErrorStatus, EventId};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::data_set::{ProjectDay, status_of};
use crate::Result;

/// How many events were stored.
#[derive(Clone, Copy, Default)]
pub(crate) struct Loaded {
    /// Events in segments.
    pub(crate) packed: u64,
    /// Events that are rows.
    pub(crate) rows: u64,
    /// The bytes of the segments.
    pub(crate) segment_bytes: u64,
}

impl Loaded {
    pub(crate) fn events(self) -> u64 {
        self.packed + self.rows
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self {
            packed: self.packed + other.packed,
            rows: self.rows + other.rows,
            segment_bytes: self.segment_bytes + other.segment_bytes,
        }
    }
}

/// Stores the events of a project's days and their errors, as they would be after compaction at
/// `now`: open hours as rows, all others in segments.
pub(super) async fn load_packed(
    store: &Store,
    project: ProjectId,
    days: impl Iterator<Item = ProjectDay>,
    now: Timestamp,
) -> Result<Loaded> {
    let (mut loaded, mut fingerprints) = (Loaded::default(), BTreeSet::new());
    for ProjectDay { day, rows } in days {
        fingerprints.extend(rows.iter().map(|row| row.fingerprint));
        let shards = store.open_day(project, day).await?;
        let state = DayState::new(day);
        let closed = state.to_pack(now);
        let (packed, open): (Vec<EventRow>, Vec<EventRow>) =
            rows.into_iter().partition(|row| closed.contains(hour_of(row)));
        if !closed.is_empty() {
            loaded.segment_bytes += save_segment(store, project, &state, closed, &packed).await?;
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
    let shards = store.open_day(project, *day).await?;
    count(store, project, shards, rows).await?;
    let fingerprints = rows.iter().map(|row| row.fingerprint).collect();
    create_errors(store, project, &fingerprints, day.start()).await
}

/// Saves a day's only segment, and answers how many bytes it has.
async fn save_segment(
    store: &Store,
    project: ProjectId,
    state: &DayState,
    hours: Hours,
    rows: &[EventRow],
) -> Result<u64> {
    let columns = pack(state.day, rows)?;
    let base = Base::decode(&mut Decoder::new(), columns.get(ColumnName::Base)?)?;
    let bytes = columns.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
    let bytes = u64::try_from(bytes)?;
    let segment = SegmentState { hours, generation: 0, bytes, totals: base.totals() };
    let saved = store.save_segment(project, state, &segment, &columns, hours).await?;
    saved.map(|_| bytes).ok_or_else(|| format!("{} was packed before", state.day).into())
}

/// Stores rows as if each event was taken in the moment when it occurred, so that none is late.
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

fn hour_of(row: &EventRow) -> u8 {
    let since = row.occurred_at.as_millis() - Day::of(row.occurred_at).start().as_millis();
    u8::try_from(since / 3_600_000).unwrap_or(u8::MAX)
}
