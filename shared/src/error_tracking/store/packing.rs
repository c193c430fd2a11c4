//! Packing the rows of closed hours into segments.
//!
//! Whoever packs reads a day, its rows and perhaps a segment, and writes all that it made on the
//! condition that the day is as it was read. So two may pack at once, and one may be killed
//! anywhere: nothing happens then, and the next one goes on.

use std::collections::BTreeMap;

use crate::error_tracking::ingestion::normalize_store_body;
use crate::error_tracking::log::day::{Day, Hours, hour_of};
use crate::error_tracking::log::day_state::{DayState, Packing, SegmentState};
use crate::error_tracking::log::row::{EventRow, Fingerprint};
use crate::error_tracking::log::segment::{Base, ColumnName, Columns, Decoder, pack, unpack};
use crate::error_tracking::{ErrorDescription, ErrorId};
use crate::page::PageRequest;
use crate::projects::project::ProjectId;
use crate::timestamp::Timestamp;

use super::days::MAX_SEGMENT_BYTES;
use super::errors::TABLE;
use crate::dynamodb::{Store, StoreError};

/// From how many rows on no further hour is packed with them.
const ROWS_AT_ONCE: usize = 200_000;
/// How often a day is read again because others packed it at the same time.
const MAX_ROUNDS: usize = 100;

/// How much a packer takes on, which bounds its memory: a row and what becomes of it take up to 1 kB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackingLimits {
    /// The most events of a segment.
    pub rows: usize,
    /// The most bytes of its columns.
    pub bytes: usize,
    /// Whether what is larger is packed in parts or set aside for good, or left to another packer.
    pub sets_aside: bool,
}

impl PackingLimits {
    /// Those of the scheduled function, which has the memory for it.
    pub const SCHEDULED: Self = Self { rows: 500_000, bytes: MAX_SEGMENT_BYTES, sets_aside: true };
}

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

/// A packer at work on one day.
struct Packer<'p> {
    store: &'p Store,
    project: ProjectId,
    limits: &'p PackingLimits,
    new_error_id: NewErrorId<'p>,
    now: Timestamp,
}

impl Store {
    /// Packs what can be packed of a day at `now`, and answers how far it is packed then.
    pub async fn pack_day(
        &self,
        project: ProjectId,
        day: Day,
        limits: &PackingLimits,
        new_error_id: NewErrorId<'_>,
        now: Timestamp,
    ) -> Result<DayState, StoreError> {
        let packer = Packer { store: self, project, limits, new_error_id, now };
        let mut state = self.find_day(project, day).await?.unwrap_or_else(|| DayState::new(day));
        for _ in 0..MAX_ROUNDS {
            let Some(packing) = state.next_packing(now) else { break };
            if packer.pack(&state, packing).await? == Step::TooLarge {
                break;
            }
            state = self.find_day(project, day).await?.unwrap_or_else(|| DayState::new(day));
        }
        Ok(state)
    }
}

impl Packer<'_> {
    /// Packs something of what is to be packed next: as much as one segment holds, an hour at least.
    async fn pack(&self, state: &DayState, packing: Packing) -> Result<Step, StoreError> {
        let step = self.pack_together(state, &packing).await?;
        if step == Step::Taken || !self.limits.sets_aside {
            return Ok(step);
        }
        if let (true, Some(segment)) = (packing.is_repair, &packing.segment) {
            return self.take_out(state, segment, packing.hours).await;
        }
        // New hours may still make a segment of their own, one by one if need be.
        let first: Hours = packing.hours.iter().take(1).collect();
        let alone =
            [packing.hours, first].map(|hours| Packing { segment: None, hours, is_repair: false });
        for packing in &alone {
            if self.pack_together(state, packing).await? == Step::Taken {
                return Ok(Step::Taken);
            }
        }
        self.set_aside(state, first).await
    }

    /// Takes hours out of a segment that has no room for the late events of them. They are rows again,
    /// to be packed by themselves.
    async fn take_out(
        &self,
        state: &DayState,
        segment: &SegmentState,
        hours: Hours,
    ) -> Result<Step, StoreError> {
        let kept = segment.hours.without(hours);
        if kept.is_empty() {
            return self.set_aside(state, hours).await;
        }
        let Some(rows) = self.read_segment(state.day, segment, kept).await? else {
            return Ok(Step::Taken);
        };
        self.save(state, kept, &rows, Hours::NONE).await
    }

    async fn set_aside(&self, state: &DayState, hours: Hours) -> Result<Step, StoreError> {
        self.store.set_aside(self.project, state, hours).await?;
        Ok(Step::Taken)
    }

    /// Packs hours together, and with those of a segment: of new hours until they have very many rows.
    async fn pack_together(&self, state: &DayState, packing: &Packing) -> Result<Step, StoreError> {
        let Self { store, project, now, .. } = *self;
        let kept = packing.segment.as_ref().map(|it| it.events_of(it.hours.without(packing.hours)));
        let Some(most) = self.limits.rows.checked_sub(kept.unwrap_or_default()) else {
            return Ok(Step::TooLarge);
        };
        let (mut rows, mut read) = (Vec::new(), Hours::NONE);
        // Hours whose rows have expired in part keep what is packed of them.
        let mut expired = Hours::NONE;
        for hour in packing.hours.iter() {
            // All hours of a segment that is written anew are needed; new ones may wait.
            if !packing.is_repair && rows.len() >= ROWS_AT_ONCE {
                break;
            }
            let hours = Hours::between(hour, hour + 1);
            let room = most.saturating_sub(rows.len());
            let of_hour =
                store.read_rows_up_to(room, project, state.day, state.shards, hours, now).await?;
            let Some(mut of_hour) = of_hour else {
                if packing.is_repair || rows.is_empty() {
                    return Ok(Step::TooLarge);
                }
                break;
            };
            let packed = packing.segment.as_ref().map_or(0, |it| it.events_of(hours));
            if of_hour.len() < packed {
                expired = expired.with(hours);
            } else {
                rows.append(&mut of_hour);
            }
            read = read.with(hours);
        }
        self.see_errors_of(&rows).await?;
        let mut hours = read;
        if let Some(segment) = &packing.segment {
            let kept = segment.hours.without(packing.hours).with(expired);
            let Some(mut packed) = self.read_segment(state.day, segment, kept).await? else {
                return Ok(Step::Taken);
            };
            rows.append(&mut packed);
            hours = hours.with(kept);
        }
        self.save(state, hours, &rows, read).await
    }

    /// The events of some hours of a segment; `None` if another packer has just replaced it.
    async fn read_segment(
        &self,
        day: Day,
        segment: &SegmentState,
        hours: Hours,
    ) -> Result<Option<Vec<EventRow>>, StoreError> {
        let columns = self.store.read_segment_columns(self.project, day, segment).await?;
        let Some(columns) = columns else { return Ok(None) };
        let mut rows = unpack(day, &columns).map_err(|_| damaged())?;
        rows.retain(|row| hours.contains(hour_of(row.occurred_at)));
        Ok(Some(rows))
    }

    /// Writes a segment of all `rows` of some hours, of which those of `read` were not packed yet. What
    /// is too large for one stays as rows, which are counted as well.
    async fn save(
        &self,
        state: &DayState,
        hours: Hours,
        rows: &[EventRow],
        read: Hours,
    ) -> Result<Step, StoreError> {
        if rows.len() > self.limits.rows {
            return Ok(Step::TooLarge);
        }
        let Ok(columns) = pack(state.day, rows) else { return Ok(Step::TooLarge) };
        let bytes = columns.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        if bytes > self.limits.bytes {
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
        self.store.save_segment(self.project, state, &segment, &columns, read).await?;
        Ok(Step::Taken)
    }

    /// Makes up for ingestion that was cut off after an event was counted: its error exists after
    /// this, was seen when its events occurred, and is open if one of them came after its
    /// resolution.
    async fn see_errors_of(&self, rows: &[EventRow]) -> Result<(), StoreError> {
        let Self { store, project, now, .. } = *self;
        let mut seen: BTreeMap<Fingerprint, (Timestamp, Timestamp)> = BTreeMap::new();
        for EventRow { fingerprint, occurred_at: at, .. } in rows {
            let (first, last) = seen.entry(*fingerprint).or_insert((*at, *at));
            (*first, *last) = ((*first).min(*at), (*last).max(*at));
        }
        let known = store.find_errors_of(project, seen.keys().copied()).await?;
        for (fingerprint, (first, last)) in seen {
            let (id, description) = if let Some(error) = known.get(&fingerprint) {
                if error.has_seen(first) && error.has_seen(last) {
                    continue;
                }
                (Some(error.id), error.description.clone())
            } else {
                let description = store.describe_error(project, fingerprint, now).await?;
                let Some(description) = description else { continue };
                (None, description)
            };
            let new = (self.new_error_id)();
            let id = store.see_error(project, id, new, &description, first).await?;
            store.see_error(project, Some(id), id, &description, last).await?;
        }
        Ok(())
    }
}

impl Store {
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
