//! Packing the rows of closed hours into segments.
//!
//! Whoever packs reads a day, its rows and perhaps a segment, and writes all that it made on the
//! condition that the day is as it was read. So two may pack at once, and one may be killed
//! anywhere: nothing happens then, and the next one goes on.

use std::collections::BTreeMap;

use crate::errors::day::{Day, Hours, hour_of};
use crate::errors::day_state::{DayState, Packing, SegmentState};
use crate::errors::ingestion::normalize_store_body;
use crate::errors::row::{EventRow, Fingerprint};
use crate::errors::segment::{Base, ColumnName, Columns, Decoder, pack, unpack};
use crate::models::error::{ErrorDescription, ErrorId};
use crate::models::page::PageRequest;
use crate::models::project::ProjectId;
use crate::models::timestamp::Timestamp;

use super::error_days::MAX_SEGMENT_BYTES;
use super::errors::TABLE;
use super::{Store, StoreError};

/// How many rows are packed at a time, an hour's at least: bounds the memory that it takes.
const ROWS_AT_ONCE: usize = 200_000;
/// How often a day is read again because others packed it at the same time.
const MAX_ROUNDS: usize = 100;

/// Makes the identifiers of errors that turn out to be missing.
pub type NewErrorId<'a> = &'a (dyn Fn() -> ErrorId + Sync);

/// What became of one step of packing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Something was packed, by this packer or another one.
    Taken,
    /// There is more than a segment holds.
    TooLarge,
}

impl Store {
    /// Packs what can be packed of a day at `now`, and answers how far it is packed then.
    pub async fn pack_day(
        &self,
        project: ProjectId,
        day: Day,
        new_error_id: NewErrorId<'_>,
        now: Timestamp,
    ) -> Result<DayState, StoreError> {
        let mut state = self.find_day(project, day).await?.unwrap_or_else(|| DayState::new(day));
        for _ in 0..MAX_ROUNDS {
            let Some(packing) = state.next_packing(now) else { break };
            let mut step = self.pack_some(project, &state, &packing, new_error_id, now).await?;
            if step == Step::TooLarge && !packing.is_repair && packing.segment.is_some() {
                // New hours may still make a segment of their own.
                let alone = Packing { segment: None, ..packing };
                step = self.pack_some(project, &state, &alone, new_error_id, now).await?;
            }
            if step == Step::TooLarge {
                break;
            }
            state = self.find_day(project, day).await?.unwrap_or_else(|| DayState::new(day));
        }
        Ok(state)
    }

    /// Packs hours until they have very many rows, or all of them are packed.
    async fn pack_some(
        &self,
        project: ProjectId,
        state: &DayState,
        packing: &Packing,
        new_error_id: NewErrorId<'_>,
        now: Timestamp,
    ) -> Result<Step, StoreError> {
        let day = state.day;
        let (mut rows, mut read) = (Vec::new(), Hours::NONE);
        for hour in packing.hours.iter() {
            // All hours of a segment that is written anew are needed; new ones may wait.
            if !packing.is_repair && rows.len() >= ROWS_AT_ONCE {
                break;
            }
            let hour = Hours::between(hour, hour + 1);
            rows.extend(self.read_rows(project, day, state.lanes, hour, now).await?);
            read = read.with(hour);
        }
        self.see_errors_of(project, &rows, new_error_id, now).await?;
        let mut hours = read;
        if let Some(segment) = &packing.segment {
            let kept = segment.hours.without(packing.hours);
            let Some(columns) = self.read_segment_columns(project, day, segment).await? else {
                // Another packer has just replaced the segment.
                return Ok(Step::Taken);
            };
            let packed = unpack(day, &columns).map_err(|_| damaged())?;
            rows.extend(packed.into_iter().filter(|row| kept.contains(hour_of(row.occurred_at))));
            hours = hours.with(kept);
        }
        // What is too large for a segment stays as rows, which are counted as well.
        let Ok(columns) = pack(day, &rows) else { return Ok(Step::TooLarge) };
        let bytes = columns.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        if bytes > MAX_SEGMENT_BYTES {
            return Ok(Step::TooLarge);
        }
        let base = columns.get(ColumnName::Base).map_err(|_| damaged())?;
        let base = Base::decode(&mut Decoder::new(), base).map_err(|_| damaged())?;
        let segment = SegmentState {
            hours,
            generation: 0,
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            totals: base.totals(),
        };
        self.save_segment(project, state, &segment, &columns, read).await?;
        Ok(Step::Taken)
    }

    /// Makes up for ingestion that was cut off after an event was counted: its error exists after
    /// this, was seen when its events occurred, and is open if one of them came after its
    /// resolution.
    async fn see_errors_of(
        &self,
        project: ProjectId,
        rows: &[EventRow],
        new_error_id: NewErrorId<'_>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut seen: BTreeMap<Fingerprint, (Timestamp, Timestamp)> = BTreeMap::new();
        for EventRow { fingerprint, occurred_at: at, .. } in rows {
            let (first, last) = seen.entry(*fingerprint).or_insert((*at, *at));
            (*first, *last) = ((*first).min(*at), (*last).max(*at));
        }
        let known = self.find_errors_of(project, seen.keys().copied()).await?;
        for (fingerprint, (first, last)) in seen {
            let (id, description) = if let Some(error) = known.get(&fingerprint) {
                if error.has_seen(first) && error.has_seen(last) {
                    continue;
                }
                (Some(error.id), error.description.clone())
            } else {
                let description = self.describe_error(project, fingerprint, now).await?;
                let Some(description) = description else { continue };
                (None, description)
            };
            let id = self.see_error(project, id, new_error_id(), &description, first).await?;
            self.see_error(project, Some(id), id, &description, last).await?;
        }
        Ok(())
    }

    /// What an error is about, by one of its events.
    async fn describe_error(
        &self,
        project: ProjectId,
        fingerprint: Fingerprint,
        now: Timestamp,
    ) -> Result<Option<ErrorDescription>, StoreError> {
        let one = PageRequest { limit: 1, after: None };
        let events = self.list_error_events(project, fingerprint, &one, now).await?;
        let Some(event) = events.items.first() else { return Ok(None) };
        // What was stored was normalized before, and normalizing it again changes nothing.
        let normalized = normalize_store_body(event.event.get().as_bytes(), now);
        Ok(normalized.ok().flatten().map(|normalized| ErrorDescription {
            fingerprint,
            title: normalized.title,
            error_type: normalized.error_type,
            message: normalized.message,
            culprit: normalized.culprit,
        }))
    }

    /// All columns of a segment; `None` if it was replaced in the meantime.
    async fn read_segment_columns(
        &self,
        project: ProjectId,
        day: Day,
        segment: &SegmentState,
    ) -> Result<Option<Columns>, StoreError> {
        let mut columns = Vec::new();
        for name in ColumnName::all() {
            let mut read = self.read_column(project, name, day, day).await?;
            let first_hour = segment.hours.iter().next().unwrap_or_default();
            match read.remove(&(day, first_hour)) {
                Some((generation, bytes)) if generation == segment.generation => {
                    columns.push((name, bytes));
                }
                _ => return Ok(None),
            }
        }
        Ok(Some(columns.into_iter().collect()))
    }
}

fn damaged() -> StoreError {
    StoreError::Damaged { table: TABLE, attribute: "bytes" }
}
