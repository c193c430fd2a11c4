//! Days and their segments, in table `errors`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `days#PROJECT` | `DAY` | how far a day is packed |
//! | `days#PROJECT` | `DAY#late#LANE` | how many late events each of its hours got |
//! | `segments#PROJECT` | `COLUMN#DAY#HOUR#CHUNK` | a column of a segment, up to 350 KB of it |
//! | `packing-queue` | `DAY#PROJECT` and perhaps a shard | a day of which something is left to pack |
//!
//! A day's item and the columns of a segment are written together, in one transaction whose condition
//! is the day's version and the number of its late events. They are read apart: a column must be of
//! the generation that the day refers to. Late events are counted in shards, since transactions that
//! change one item get into each other's way.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};

use crate::error_tracking::log::day::{Day, Hours};
use crate::error_tracking::log::day_state::{DayState, SegmentState};
use crate::error_tracking::log::segment::{ColumnName, Columns, Totals};
use crate::projects::project::ProjectId;
use crate::timestamp::Timestamp;

use super::errors::TABLE;
use crate::dynamodb::item::{Item, ItemReader, b, item, key, n, s};
use crate::dynamodb::request::IntoAction;
use crate::dynamodb::{Store, StoreError};

/// How long segments are kept.
const SEGMENT_RETENTION: Duration = Duration::from_hours(400 * 24);
/// The most bytes of a column in one item.
const CHUNK_BYTES: usize = 350_000;
/// The most bytes of a segment: what one transaction holds, with room for keys.
pub(super) const MAX_SEGMENT_BYTES: usize = 3_500_000;
const QUEUE: &str = "packing-queue";
/// The most partitions of a day: 8,000 events a second.
const MAX_SHARDS: u8 = 16;
/// In how many items a day's late events are counted.
pub(super) const LATE_SHARDS: u8 = 8;

/// A segment's columns, as they were read: of which generation each is.
pub type ReadColumns = HashMap<(Day, u8), (u64, Vec<u8>)>;

impl Store {
    /// Opens a day for rows, and answers over how many partitions they are spread. May be repeated.
    pub async fn open_day(&self, project: ProjectId, day: Day) -> Result<u8, StoreError> {
        if let Some(state) = self.find_day(project, day).await? {
            return Ok(state.shards);
        }
        let mut opened = day_key(project, day);
        opened.insert("expiresAt".to_owned(), segment_expiry(day));
        let opened = self.put(TABLE, opened).condition_expression("attribute_not_exists(pk)");
        let actions = vec![
            opened.into_action()?,
            self.put(TABLE, queue_item(project, day, None)).into_action()?,
        ];
        // A condition that fails tells that somebody else has opened it.
        self.commit_all(actions).await?;
        Ok(DayState::new(day).shards)
    }

    /// Spreads a day's rows over twice as many partitions, after one of them was throttled. Answers
    /// over how many they are spread then.
    pub async fn add_shards(
        &self,
        project: ProjectId,
        day: Day,
        seen: u8,
    ) -> Result<u8, StoreError> {
        let shards = seen.saturating_mul(2).min(MAX_SHARDS);
        let spread = self
            .update(TABLE, day_key(project, day))
            .condition_expression("attribute_not_exists(shards) OR shards < :shards")
            .update_expression("SET shards = :shards")
            .expression_attribute_values(":shards", n(shards));
        if self.write_if(spread).await? {
            return Ok(shards);
        }
        // Somebody else added some.
        Ok(self.find_day(project, day).await?.map_or(shards, |state| state.shards))
    }

    /// How far a day is packed; `None` if it never had an event. Strongly consistent: counting
    /// rests on it.
    pub async fn find_day(
        &self,
        project: ProjectId,
        day: Day,
    ) -> Result<Option<DayState>, StoreError> {
        let days = self.read_days_between(project, &day.to_string(), &past(day)).await?;
        Ok(days.into_iter().next().map(|(state, _)| state))
    }

    /// The days from `first` to `last` that had events. Strongly consistent, as [`Self::find_day`].
    pub async fn list_days(
        &self,
        project: ProjectId,
        first: Day,
        last: Day,
        now: Timestamp,
    ) -> Result<Vec<DayState>, StoreError> {
        let days = self.read_days_between(project, &first.to_string(), &past(last)).await?;
        let kept = days.into_iter().filter(|(_, expires_at)| *expires_at > now.as_seconds());
        Ok(kept.map(|(state, _)| state).collect())
    }

    /// Days, and when each expires, in seconds since the Unix epoch.
    async fn read_days_between(
        &self,
        project: ProjectId,
        first: &str,
        last: &str,
    ) -> Result<Vec<(DayState, i64)>, StoreError> {
        let mut items = self
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk AND sk BETWEEN :first AND :last")
            .expression_attribute_values(":pk", s(days_pk(project)))
            .expression_attribute_values(":first", s(first))
            .expression_attribute_values(":last", s(last))
            .into_paginator()
            .items()
            .send();
        let mut days: Vec<(DayState, i64)> = Vec::new();
        while let Some(item) = items.next().await {
            let item = item?;
            let reader = ItemReader { table: TABLE, item: &item };
            // A day comes before its late events.
            if reader.text("sk")?.contains('#') {
                if let Some((state, _)) = days.last_mut() {
                    add_late(state, reader)?;
                }
            } else {
                let expires_at = reader.optional_integer("expiresAt")?;
                days.push((read_day(&item)?, expires_at.unwrap_or(i64::MAX)));
            }
        }
        Ok(days)
    }

    /// The action that counts a late event.
    pub(super) fn count_late(
        &self,
        project: ProjectId,
        day: Day,
        shard: u8,
        hour: u8,
    ) -> Result<TransactWriteItem, StoreError> {
        self.update(TABLE, late_key(project, day, shard))
            .update_expression("SET expiresAt = :expiry ADD #late :one")
            .expression_attribute_names("#late", late_attribute(hour))
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":expiry", segment_expiry(day))
            .into_action()
    }

    /// The action that makes sure that a shard of late events is as it was read.
    fn check_late(
        &self,
        project: ProjectId,
        state: &DayState,
        shard: u8,
    ) -> Result<TransactWriteItem, StoreError> {
        let read = state.late_by_shard.get(usize::from(shard)).copied().unwrap_or_default();
        let mut check = self.check(TABLE, late_key(project, state.day, shard));
        let mut conditions = Vec::with_capacity(read.len());
        for (name, late) in (0..).map(late_attribute).zip(read) {
            if late == 0 {
                conditions.push(format!("attribute_not_exists({name})"));
            } else {
                conditions.push(format!("{name} = :{name}"));
                check = check.expression_attribute_values(format!(":{name}"), number(late));
            }
        }
        check.condition_expression(conditions.join(" AND ")).into_action()
    }

    /// A column of all segments of the days from `first` to `last`, by day and first hour. Chunks
    /// that are not of one generation are left out. What is packed never changes under its
    /// generation, so an eventually consistent read tells either that or something older.
    pub async fn read_column(
        &self,
        project: ProjectId,
        column: ColumnName,
        first: Day,
        last: Day,
    ) -> Result<ReadColumns, StoreError> {
        let name = column.name();
        let mut items = self
            .query(TABLE)
            .key_condition_expression("pk = :pk AND sk BETWEEN :first AND :last")
            .expression_attribute_values(":pk", s(segments_pk(project)))
            .expression_attribute_values(":first", s(format!("{name}#{first}#")))
            .expression_attribute_values(":last", s(format!("{name}#{last}#~")))
            .into_paginator()
            .items()
            .send();
        let mut columns: BTreeMap<(Day, u8, u64), Vec<Chunk>> = BTreeMap::new();
        while let Some(item) = items.next().await {
            let chunk = read_chunk(&item?)?;
            let place = (chunk.day, chunk.first_hour, chunk.generation);
            columns.entry(place).or_default().push(chunk);
        }
        let is_whole = |chunks: &Vec<Chunk>| {
            chunks.first().is_some_and(|first| first.chunks == chunks.len() as u64)
        };
        let whole = columns.into_iter().filter(|(_, chunks)| is_whole(chunks));
        // Of several generations the last counts: the map is in their order.
        Ok(whole
            .map(|((day, hour, generation), chunks)| {
                let bytes = chunks.into_iter().flat_map(|chunk| chunk.bytes).collect();
                ((day, hour), (generation, bytes))
            })
            .collect())
    }

    /// Writes a segment of a day that was read as `state`: `hours` of it were packed from rows.
    /// Answers the day as it is then, or `None` if the day is no longer as it was read.
    pub async fn save_segment(
        &self,
        project: ProjectId,
        state: &DayState,
        segment: &SegmentState,
        columns: &Columns,
        hours: Hours,
    ) -> Result<Option<DayState>, StoreError> {
        let next = state.with_segment(segment, hours);
        let first_hour = first_hour_of(segment);
        let mut actions = Vec::new();
        for (name, bytes) in columns.iter() {
            let count = bytes.len().div_ceil(CHUNK_BYTES);
            for (index, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
                let sk = format!("{}#{}#{first_hour:02}#{index:02}", name.name(), state.day);
                let mut item = key(&segments_pk(project), &sk);
                item.insert("generation".to_owned(), number(next.version));
                item.insert("chunks".to_owned(), number(count as u64));
                item.insert("bytes".to_owned(), b(chunk));
                item.insert("expiresAt".to_owned(), segment_expiry(state.day));
                actions.push(self.put(TABLE, item).into_action()?);
            }
        }
        self.save_day(project, state, next, actions).await
    }

    /// Notes that some hours of a day that was read as `state` are too large for a segment. Answers as
    /// [`Self::save_segment`].
    pub(super) async fn set_aside(
        &self,
        project: ProjectId,
        state: &DayState,
        hours: Hours,
    ) -> Result<Option<DayState>, StoreError> {
        self.save_day(project, state, state.with_set_aside(hours), Vec::new()).await
    }

    /// Writes the `next` state of a day that was read as `state`, and what belongs to it.
    async fn save_day(
        &self,
        project: ProjectId,
        state: &DayState,
        next: DayState,
        mut actions: Vec<TransactWriteItem>,
    ) -> Result<Option<DayState>, StoreError> {
        actions.push(self.update_day(project, state, &next)?);
        for shard in 0..LATE_SHARDS {
            actions.push(self.check_late(project, state, shard)?);
        }
        if next.is_complete() {
            for shard in std::iter::once(None).chain((0..LATE_SHARDS).map(Some)) {
                actions
                    .push(self.delete(TABLE, queue_item(project, state.day, shard)).into_action()?);
            }
        }
        let refused = self.commit_all(actions).await?;
        Ok(refused.is_none().then_some(next))
    }

    fn update_day(
        &self,
        project: ProjectId,
        state: &DayState,
        next: &DayState,
    ) -> Result<TransactWriteItem, StoreError> {
        let update = self
            .update(TABLE, day_key(project, state.day))
            .update_expression(
                "SET version = :version, #segments = :segments, packedLate = :late, \
                 setAside = :setAside, expiresAt = :expiry",
            )
            // A word that DynamoDB reserves.
            .expression_attribute_names("#segments", "segments")
            .expression_attribute_values(":version", number(next.version))
            .expression_attribute_values(":segments", write_segments(&next.segments))
            .expression_attribute_values(":late", write_late(&next.packed_late))
            .expression_attribute_values(":setAside", n(next.set_aside.bits()))
            .expression_attribute_values(":expiry", segment_expiry(state.day));
        let update = match state.version {
            0 => update.condition_expression("attribute_not_exists(version)"),
            version => update
                .condition_expression("version = :read")
                .expression_attribute_values(":read", number(version)),
        };
        update.into_action()
    }

    /// Days of which something is left to pack, the oldest first.
    pub async fn list_packing_queue(&self) -> Result<Vec<(ProjectId, Day)>, StoreError> {
        let mut items = self
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", s(QUEUE))
            .into_paginator()
            .items()
            .send();
        let mut queue = Vec::new();
        while let Some(item) = items.next().await {
            queue.push(read_queue_item(&item?)?);
        }
        // A day may be in the queue once for each shard of its late events.
        queue.dedup();
        Ok(queue)
    }
}

fn days_pk(project: ProjectId) -> String {
    format!("days#{project}")
}

pub(super) fn day_key(project: ProjectId, day: Day) -> Item {
    key(&days_pk(project), &day.to_string())
}

fn segments_pk(project: ProjectId) -> String {
    format!("segments#{project}")
}

/// What sorts after everything of a day, and before the next one.
fn past(day: Day) -> String {
    format!("{day}~")
}

fn late_key(project: ProjectId, day: Day, shard: u8) -> Item {
    key(&days_pk(project), &format!("{day}#late#{shard}"))
}

/// The item, all key, that asks for a day to be packed: the day's own, or that of a shard of late
/// events.
pub(super) fn queue_item(project: ProjectId, day: Day, shard: Option<u8>) -> Item {
    let shard = shard.map(|shard| format!("#{shard}")).unwrap_or_default();
    key(QUEUE, &format!("{day}#{project}{shard}"))
}

/// The attribute that counts the late events of an hour.
fn late_attribute(hour: u8) -> String {
    format!("late{hour:02}")
}

fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

fn segment_expiry(day: Day) -> AttributeValue {
    n(day.next().start().plus(SEGMENT_RETENTION).as_seconds())
}

fn first_hour_of(segment: &SegmentState) -> u8 {
    segment.hours.iter().next().unwrap_or_default()
}

fn write_segments(segments: &[SegmentState]) -> AttributeValue {
    let write = |segment: &SegmentState| {
        AttributeValue::M(item([
            ("hours", n(segment.hours.bits())),
            ("generation", number(segment.generation)),
            ("bytes", number(segment.bytes)),
            ("totals", b(&segment.totals.to_bytes())),
        ]))
    };
    AttributeValue::L(segments.iter().map(write).collect())
}

fn read_day(item: &Item) -> Result<DayState, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let mut state = DayState::new(reader.parsed("sk", read_date)?);
    if let Some(shards) = reader.optional_integer("shards")? {
        state.shards = shards.try_into().map_err(|_| reader.damaged("shards"))?;
    }
    state.version = reader.optional_count("version")?.unwrap_or_default();
    state.packed_late = read_late(reader)?;
    state.set_aside = read_hours(reader, "setAside")?.unwrap_or(Hours::NONE);
    state.segments = match item.get("segments") {
        None => Vec::new(),
        Some(AttributeValue::L(segments)) => segments
            .iter()
            .map(|segment| read_segment(segment, reader))
            .collect::<Result<_, _>>()?,
        Some(_) => return Err(reader.damaged("segments")),
    };
    Ok(state)
}

/// How many late events of each hour are packed, as a map from hours.
fn write_late(late: &[u64; 24]) -> AttributeValue {
    let counted = (0_u8..).zip(late).filter(|(_, late)| **late > 0);
    AttributeValue::M(counted.map(|(hour, late)| (late_attribute(hour), number(*late))).collect())
}

fn read_late(day: ItemReader<'_>) -> Result<[u64; 24], StoreError> {
    let damaged = || day.damaged("packedLate");
    match day.item.get("packedLate") {
        None => Ok([0; 24]),
        Some(AttributeValue::M(late)) => read_counters(late).ok_or_else(damaged),
        Some(_) => Err(damaged()),
    }
}

/// Adds what one shard counts of a day's late events.
fn add_late(state: &mut DayState, shard: ItemReader<'_>) -> Result<(), StoreError> {
    let number = shard.text("sk")?.rsplit('#').next().and_then(|shard| shard.parse().ok());
    let number = number.filter(|number: &usize| *number < usize::from(LATE_SHARDS));
    let number = number.ok_or_else(|| shard.damaged("sk"))?;
    let counters = read_counters(shard.item).ok_or_else(|| shard.damaged("late"))?;
    state.late_by_shard.resize(usize::from(LATE_SHARDS), [0; 24]);
    if let Some(by_shard) = state.late_by_shard.get_mut(number) {
        *by_shard = counters;
    }
    for (late, counter) in state.late.iter_mut().zip(counters) {
        *late = late.saturating_add(counter);
    }
    Ok(())
}

fn read_counters(counters: &Item) -> Option<[u64; 24]> {
    let mut late = [0; 24];
    for (name, late) in (0..).map(late_attribute).zip(&mut late) {
        if let Some(counter) = counters.get(&name) {
            *late = counter.as_n().ok()?.parse().ok()?;
        }
    }
    Some(late)
}

fn read_segment(value: &AttributeValue, day: ItemReader<'_>) -> Result<SegmentState, StoreError> {
    let damaged = || day.damaged("segments");
    let reader = ItemReader { table: TABLE, item: value.as_m().map_err(|_| damaged())? };
    Ok(SegmentState {
        hours: read_hours(reader, "hours")?.ok_or_else(damaged)?,
        generation: reader.optional_count("generation")?.ok_or_else(damaged)?,
        bytes: reader.optional_count("bytes")?.ok_or_else(damaged)?,
        totals: Totals::from_bytes(reader.blob("totals")?).map_err(|_| damaged())?,
    })
}

fn read_hours(reader: ItemReader<'_>, name: &'static str) -> Result<Option<Hours>, StoreError> {
    let Some(bits) = reader.optional_count(name)? else { return Ok(None) };
    let hours = u32::try_from(bits).ok().and_then(Hours::from_bits);
    hours.map(Some).ok_or_else(|| reader.damaged(name))
}

/// A part of a column.
struct Chunk {
    day: Day,
    first_hour: u8,
    generation: u64,
    /// How many chunks the column has.
    chunks: u64,
    bytes: Vec<u8>,
}

fn read_chunk(item: &Item) -> Result<Chunk, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let place = |sk: &str| {
        let mut parts = sk.split('#').skip(1);
        Some((read_date(parts.next()?)?, parts.next()?.parse().ok()?))
    };
    let (day, first_hour) = reader.parsed("sk", place)?;
    Ok(Chunk {
        day,
        first_hour,
        generation: reader.count("generation")?,
        chunks: reader.count("chunks")?,
        bytes: reader.blob("bytes")?.to_vec(),
    })
}

fn read_queue_item(item: &Item) -> Result<(ProjectId, Day), StoreError> {
    let reader = ItemReader { table: TABLE, item };
    reader.parsed("sk", |sk| {
        let mut parts = sk.split('#');
        let day = read_date(parts.next()?)?;
        Some((ProjectId::parse(parts.next()?)?, day))
    })
}

fn read_date(date: &str) -> Option<Day> {
    Timestamp::parse_date_or_date_time(date).ok().map(Day::of)
}
