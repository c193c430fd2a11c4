//! Deleting an error, in table `errors`: at once to whoever reads, and bit by bit from what is stored.
//!
//! The head of the log remembers deleted errors until all of their events are removed, at most
//! [`MAX_TOMBSTONES`] of a project.

use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_dynamodb::types::builders::UpdateBuilder;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, b, item, key, n, s, sort_key_at_end};
use shared::dynamodb::transaction::Transaction;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::columns::WantedColumns;
use super::errors::{TABLE, error_key};
use super::events::{EventKey, error_events_pk, payload_key, read_event_key};
use super::head::{LogHead, head_key};
use super::manifest::read_date;
use super::merging::{CompactionOutcome, Target};
use super::rows::row_key;
use crate::grouping::Fingerprint;
use crate::log::day::{COUNT_RETENTION, Day};
use crate::log::manifest::Run;
use crate::log::run::{Base, ColumnName, Decoder};
use crate::log::tombstone::{RemovalProgress, Tombstone, Tombstones};
use crate::log::visit::GRACE;
use crate::{ErrorId, ErrorRecord};

/// The most deleted errors of a project whose events are not yet removed: whoever reads the log reads
/// them all.
pub const MAX_TOMBSTONES: u32 = 200;
/// How many of them are worked on at once: DynamoDB takes 4 kB of an expression that names them.
const TOMBSTONES_AT_ONCE: usize = 30;
/// How many events are removed at once, or up to twice as many.
const EVENTS_AT_ONCE: usize = 500;
/// How many events of runs are looked through at once, about.
const RUN_EVENTS_AT_ONCE: u64 = 1_000_000;
/// How many runs of a manifest are rewritten until the last ones that were replaced are deleted: it names
/// them so long.
const MOST_REPLACED: usize = 256;
/// What the attributes begin with that remember deleted errors.
const TOMBSTONE: &str = "t_";
/// What became of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The error is gone.
    Done,
    /// It was gone before, or somebody has just changed it.
    Changed,
    /// The events of as many errors as can be remembered are still to be removed.
    TooMany,
}

impl ErrorStore<'_> {
    /// Deletes an error as it was read: from then on nobody finds it, and no event counts that was
    /// received before. What comes later is a new error's.
    pub async fn delete_error(
        self,
        project: ProjectId,
        error: &ErrorRecord,
        now: Timestamp,
    ) -> Result<Deletion, StoreError> {
        // Events of this millisecond are deleted too.
        let at = Timestamp::from_millis(now.as_millis().saturating_add(1));
        let tombstone = Tombstone {
            error: error.id,
            fingerprint: error.description.fingerprint,
            event_shards: error.event_shards,
            at,
            first_day: Day::of(error.first_seen),
            removed: RemovalProgress::FromRunsBefore(Day::of(error.first_seen)),
        };
        let delete = self
            .db
            .delete(TABLE, error_key(project, error.id))
            .condition_expression("attribute_exists(pk) AND eventShards = :shards")
            .expression_attribute_values(":shards", n(error.event_shards));
        let forget = self
            .update_fingerprint(project, error)
            .update_expression("REMOVE errorId SET deletedAt = :at, expiresAt = :expiresAt")
            .expression_attribute_values(":at", n(at.as_millis()))
            .expression_attribute_values(":expiresAt", n(now.plus(COUNT_RETENTION).as_seconds()));
        let remember = self
            .db
            .update(TABLE, head_key(project))
            .condition_expression("attribute_not_exists(tombstones) OR tombstones < :most")
            .update_expression(format!(
                "SET {} = :tombstone ADD tombstones :one",
                name_of(error.id)
            ))
            .expression_attribute_values(":tombstone", write_tombstone(&tombstone))
            .expression_attribute_values(":most", n(MAX_TOMBSTONES))
            .expression_attribute_values(":one", n(1));
        let mut transaction = Transaction::default();
        transaction.add("tombstone", remember)?;
        transaction.add("error", delete)?;
        transaction.add("fingerprint", forget)?;
        transaction.add("error count", self.release_error(project)?)?;
        Ok(match self.db.commit_all(transaction).await? {
            None => Deletion::Done,
            Some(cancelled) if cancelled.failed("tombstone") => Deletion::TooMany,
            Some(_) => Deletion::Changed,
        })
    }

    /// Removes some of what is stored of deleted errors. Answers whether it did, so that there may be more
    /// to remove now.
    pub(super) async fn remove_deleted(
        self,
        project: ProjectId,
        head: &LogHead,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let Tombstones(all) = &head.tombstones;
        // Before that, rows of it may still come, or be packed; and runs that nobody counts yet stay as they
        // are, since whoever finishes their step looks for them.
        let is_packed = |it: &&Tombstone| it.at <= head.readable.time() && now >= it.at.plus(GRACE);
        let ready = all.iter().filter(|it| is_packed(it) && !it.is_waiting(now));
        let ready: Vec<&Tombstone> = ready.take(TOMBSTONES_AT_ONCE).collect();
        if ready.is_empty() {
            return Ok(false);
        }
        let from_runs = self.remove_from_runs(project, head, &ready, now).await?;
        let mut left = EVENTS_AT_ONCE;
        let mut update = HeadUpdate::default();
        for tombstone in ready {
            let removed = match &tombstone.removed {
                RemovalProgress::FromRunsBefore(_) => from_runs.clone(),
                RemovalProgress::UpToEvent { .. } if left == 0 => continue,
                RemovalProgress::UpToEvent { shard, after } => {
                    let next =
                        self.remove_events(project, tombstone, *shard, after.as_deref(), now);
                    let (removed, events) = next.await?;
                    left = left.saturating_sub(events);
                    removed
                }
                RemovalProgress::All(_) => {
                    update.forget(tombstone);
                    continue;
                }
            };
            if removed != tombstone.removed {
                update.set(tombstone, &Tombstone { removed, ..tombstone.clone() });
            }
        }
        if update.conditions.is_empty() {
            return Ok(false);
        }
        // Otherwise somebody else is at it.
        self.db.write_if(update.of(self.db.update(TABLE, head_key(project)))).await
    }

    /// Rewrites runs that have events of some deleted errors without them, day by day. Answers how far.
    async fn remove_from_runs(
        self,
        project: ProjectId,
        head: &LogHead,
        tombstones: &[&Tombstone],
        now: Timestamp,
    ) -> Result<RemovalProgress, StoreError> {
        let done = RemovalProgress::UpToEvent { shard: 0, after: None };
        let days = tombstones.iter().filter_map(|tombstone| match tombstone.removed {
            RemovalProgress::FromRunsBefore(day) => Some((day, tombstone.last_day())),
            _ => None,
        });
        let (Some(first), Some(last)) =
            (days.clone().map(|it| it.0).min(), days.map(|it| it.1).max())
        else {
            return Ok(done);
        };
        let mut left = RUN_EVENTS_AT_ONCE;
        for manifest in self.list_manifests(project, first, last).await? {
            let mut room = MOST_REPLACED.saturating_sub(manifest.replaced.len());
            for run in &manifest.runs {
                let of_run = tombstones.iter().filter(|tombstone| tombstone.hides_in(run));
                let fingerprints: Vec<Fingerprint> = of_run.map(|it| it.fingerprint).collect();
                if fingerprints.is_empty() {
                    continue;
                }
                if left == 0 || room == 0 {
                    return Ok(RemovalProgress::FromRunsBefore(manifest.day));
                }
                left = left.saturating_sub(run.events());
                if !self.has_events_of(project, manifest.day, run, &fingerprints).await? {
                    continue;
                }
                let target = Target { day: manifest.day, level: run.level };
                let rewritten = self.merge_runs(project, head, &[run], &target, now).await?;
                if rewritten == CompactionOutcome::Lost {
                    // Somebody has merged it: once more.
                    return Ok(RemovalProgress::FromRunsBefore(manifest.day));
                }
                room -= 1;
            }
        }
        Ok(done)
    }

    async fn has_events_of(
        self,
        project: ProjectId,
        day: Day,
        run: &Run,
        fingerprints: &[Fingerprint],
    ) -> Result<bool, StoreError> {
        let wanted = WantedColumns { day, run, names: &[ColumnName::Base] };
        let columns = self.read_columns(project, &[wanted]).await?;
        let Some(columns) = columns.into_iter().flatten().next() else { return Ok(false) };
        let base = columns.get(ColumnName::Base);
        // What is damaged counts nothing, whatever it has.
        let Ok(base) = base.and_then(|base| Base::decode(&mut Decoder::new(), base)) else {
            return Ok(false);
        };
        let has = |fingerprint| base.fingerprints().binary_search(fingerprint).is_ok();
        Ok(fingerprints.iter().any(has))
    }

    /// Deletes payloads, rows and keys of some events of a deleted error, and answers how many. Their
    /// claims stay: an event that is delivered once more does not count.
    async fn remove_events(
        self,
        project: ProjectId,
        tombstone: &Tombstone,
        shard: u8,
        after: Option<&str>,
        now: Timestamp,
    ) -> Result<(RemovalProgress, usize), StoreError> {
        let pk = error_events_pk(project, tombstone.fingerprint, shard);
        let answer = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk AND sk > :after")
            .filter_expression("receivedAt < :at")
            .expression_attribute_values(":pk", s(&pk))
            .expression_attribute_values(":after", s(after.unwrap_or("0")))
            .expression_attribute_values(":at", n(tombstone.at.as_millis()))
            .limit(i32::try_from(EVENTS_AT_ONCE).unwrap_or(i32::MAX))
            .send()
            .await?;
        let next = sort_key_at_end(TABLE, answer.last_evaluated_key.as_ref())?;
        let stored = answer.items.unwrap_or_default();
        let of_events: Vec<[Item; 3]> =
            self.db.undamaged(&stored, |event| keys_of_event(project, &pk, event))?;
        let items: Vec<Item> = of_events.into_iter().flatten().collect();
        self.db.delete_all(TABLE, items).await?;
        let removed = match next {
            Some(next) => RemovalProgress::UpToEvent { shard, after: Some(next) },
            None if shard.saturating_add(1) < tombstone.event_shards => {
                RemovalProgress::UpToEvent { shard: shard.saturating_add(1), after: None }
            }
            None => RemovalProgress::All(now),
        };
        Ok((removed, stored.len()))
    }
}

/// What is to become of tombstones in one update of the head, if they are still as they were read.
#[derive(Default)]
struct HeadUpdate {
    conditions: Vec<String>,
    set: Vec<String>,
    remove: Vec<String>,
    values: Vec<(String, AttributeValue)>,
}

impl HeadUpdate {
    fn set(&mut self, before: &Tombstone, after: &Tombstone) {
        let number = self.if_still(before);
        self.set.push(format!("{} = :after{number}", name_of(before.error)));
        self.values.push((format!(":after{number}"), write_tombstone(after)));
    }

    fn forget(&mut self, tombstone: &Tombstone) {
        self.if_still(tombstone);
        self.remove.push(name_of(tombstone.error));
    }

    fn if_still(&mut self, tombstone: &Tombstone) -> usize {
        let number = self.conditions.len();
        self.conditions.push(format!("{} = :before{number}", name_of(tombstone.error)));
        self.values.push((format!(":before{number}"), write_tombstone(tombstone)));
        number
    }

    fn of(self, update: UpdateBuilder) -> UpdateBuilder {
        let forgotten = i32::try_from(self.remove.len()).unwrap_or(i32::MAX);
        let clause = |name: &str, parts: Vec<String>| {
            if parts.is_empty() { String::new() } else { format!("{name} {} ", parts.join(", ")) }
        };
        let expression = clause("SET", self.set) + &clause("REMOVE", self.remove);
        let update = update
            .condition_expression(self.conditions.join(" AND "))
            .update_expression(format!("{expression}ADD tombstones :less"))
            .expression_attribute_values(":less", n(-forgotten));
        let values = self.values.into_iter();
        values.fold(update, |update, (name, value)| update.expression_attribute_values(name, value))
    }
}

/// The attribute of the head that remembers a deleted error.
fn name_of(error: ErrorId) -> String {
    format!("{TOMBSTONE}{}", error.to_string().replace('-', ""))
}

fn write_tombstone(tombstone: &Tombstone) -> AttributeValue {
    let mut members = item([
        ("error", s(tombstone.error)),
        ("fingerprint", b(&tombstone.fingerprint.0)),
        ("eventShards", n(tombstone.event_shards)),
        ("at", n(tombstone.at.as_millis())),
        ("firstDay", s(tombstone.first_day)),
    ]);
    match &tombstone.removed {
        RemovalProgress::FromRunsBefore(day) => members.insert("day".to_owned(), s(day)),
        RemovalProgress::UpToEvent { shard, after } => {
            if let Some(after) = after {
                members.insert("event".to_owned(), s(after));
            }
            members.insert("shard".to_owned(), n(*shard))
        }
        RemovalProgress::All(at) => members.insert("removedAt".to_owned(), n(at.as_millis())),
    };
    AttributeValue::M(members)
}

/// The deleted errors that a head remembers, the first deleted first.
pub(super) fn read_tombstones(head: &Item) -> Result<Tombstones, StoreError> {
    let members = head.iter().filter(|(name, _)| name.starts_with(TOMBSTONE));
    let read = members.map(|(_, value)| {
        let damaged = |_| StoreError::Damaged { table: TABLE, attribute: TOMBSTONE };
        let members = value.as_m().map_err(damaged)?;
        read_tombstone(&ItemReader { table: TABLE, item: members })
    });
    let mut tombstones = read.collect::<Result<Vec<Tombstone>, StoreError>>()?;
    tombstones.sort_by_key(|tombstone| (tombstone.at, tombstone.error));
    Ok(Tombstones(tombstones))
}

fn read_tombstone(reader: &ItemReader<'_>) -> Result<Tombstone, StoreError> {
    let shard = reader.optional_small_count("shard")?;
    let removed = match (reader.optional_parsed("day", read_date)?, shard) {
        (Some(day), _) => RemovalProgress::FromRunsBefore(day),
        (None, Some(shard)) => RemovalProgress::UpToEvent {
            shard,
            after: reader.optional_text("event")?.map(str::to_owned),
        },
        (None, None) => RemovalProgress::All(reader.millis("removedAt")?),
    };
    Ok(Tombstone {
        error: reader.parsed("error", ErrorId::parse)?,
        fingerprint: Fingerprint(reader.bytes("fingerprint")?),
        event_shards: reader.small_count("eventShards")?,
        at: reader.millis("at")?,
        first_day: reader.parsed("firstDay", read_date)?,
        removed,
    })
}

/// The keys of what is stored of an event of an error besides its claim.
fn keys_of_event(project: ProjectId, pk: &str, event: &Item) -> Result<[Item; 3], StoreError> {
    let reader = ItemReader { table: TABLE, item: event };
    let EventKey { sk, id, .. } = read_event_key(event)?;
    let (received_at, shard) = (reader.millis("receivedAt")?, reader.small_count("logShard")?);
    Ok([payload_key(project, id), row_key(project, shard, id, received_at), key(pk, &sk)])
}
