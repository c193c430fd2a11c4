//! Deletes errors, in table `errors`. Queries ignore a deleted error immediately, while its events
//! are removed step by step.
//!
//! The head of the log stores a tombstone for each deleted error until all of its events are
//! removed, at most [`MAX_TOMBSTONES`] per project.

use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_dynamodb::types::builders::UpdateBuilder;

use shared::audit::AuditEntry;
use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, b, item, key, n, s, sort_key_at_end};
use shared::dynamodb::transaction::Transaction;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::columns::ColumnRequest;
use super::compaction::{CompactionOutcome, Target};
use super::errors::{TABLE, error_key};
use super::events::{EventKey, error_events_pk, payload_key, read_event_key};
use super::head::{LogHead, head_key};
use super::manifest::read_date;
use crate::grouping::Fingerprint;
use crate::log::day::{COUNT_RETENTION, Day};
use crate::log::manifest::Run;
use crate::log::pack_schedule::GRACE;
use crate::log::run::{Base, ColumnName, Decoder};
use crate::log::tombstone::{RemovalProgress, Tombstone, Tombstones};
use crate::{ErrorId, ErrorRecord};

/// Maximum deleted errors of a project whose events are not yet removed. Every query of the log
/// reads all tombstones.
pub const MAX_TOMBSTONES: u32 = 200;
/// Tombstones that one call processes: an expression names each of them, and DynamoDB limits it to
/// 4 kB.
const TOMBSTONES_AT_ONCE: usize = 30;
/// Events that one call removes, or up to twice as many.
const EVENTS_AT_ONCE: usize = 500;
/// Approximate number of events of the runs that one call searches.
const RUN_EVENTS_AT_ONCE: u64 = 1_000_000;
/// Maximum replaced runs in a manifest, which lists them until they are deleted. No more runs are
/// rewritten until then.
const MAX_REPLACED: usize = 256;
/// The prefix of the attributes with tombstones.
const TOMBSTONE: &str = "t_";

/// The outcome of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The error is deleted.
    Done,
    /// The error was already deleted, or a concurrent request changed it.
    Changed,
    /// The project already has [`MAX_TOMBSTONES`] deleted errors whose events are not yet removed.
    TooMany,
}

impl ErrorStore<'_> {
    /// Deletes an error, unless its fingerprint changed since it was read. From then on, it is not found, and events received before do not count. Later events
    /// belong to a new error.
    pub async fn delete_error(
        self,
        project: ProjectId,
        error: &ErrorRecord,
        entry: &AuditEntry,
        now: Timestamp,
    ) -> Result<Deletion, StoreError> {
        // Also delete the events of this millisecond.
        let at = Timestamp::from_millis(now.as_millis().saturating_add(1));
        let tombstone = Tombstone {
            error: error.id,
            fingerprint: error.description.fingerprint,
            at,
            first_day: Day::of(error.first_seen),
            removed: RemovalProgress::FromRunsBefore(Day::of(error.first_seen)),
        };
        let delete = self
            .db
            .delete(TABLE, error_key(project, error.id))
            .condition_expression("attribute_exists(pk)");
        let detach_fingerprint = self
            .update_fingerprint(project, error)
            .update_expression("REMOVE errorId SET deletedAt = :at, expiresAt = :expiresAt")
            .expression_attribute_values(":at", n(at.as_millis()))
            .expression_attribute_values(":expiresAt", n(now.plus(COUNT_RETENTION).as_seconds()));
        let add_tombstone = self
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
        transaction.add("tombstone", add_tombstone)?;
        transaction.add("error", delete)?;
        transaction.add("fingerprint", detach_fingerprint)?;
        transaction.add("error count", self.release_error(project)?)?;
        transaction.add("audit", self.db.audit(entry)?)?;
        Ok(match self.db.commit_all(transaction).await? {
            None => Deletion::Done,
            Some(cancelled) if cancelled.failed("tombstone") => Deletion::TooMany,
            Some(_) => Deletion::Changed,
        })
    }

    /// Removes some events of deleted errors. Returns `true` if it did, so there can be more to
    /// remove.
    pub(super) async fn remove_deleted(
        self,
        project: ProjectId,
        head: &LogHead,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let Tombstones(all) = &head.tombstones;
        // Until then, rows of the error can still arrive or be packed. Runs of an unfinished step
        // must stay: finishing the step checks that they exist.
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
                    let next = self.remove_events(
                        project,
                        tombstone,
                        (*shard, head.shards),
                        after.as_deref(),
                        now,
                    );
                    let (removed, events) = next.await?;
                    left = left.saturating_sub(events);
                    removed
                }
                RemovalProgress::All(_) => {
                    update.remove(tombstone);
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
        // `false` if a concurrent packer changed a tombstone.
        self.db.write_if(update.apply_to(self.db.update(TABLE, head_key(project)))).await
    }

    /// Rewrites runs without the events of these deleted errors, day by day. Returns the progress.
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
            let mut capacity = MAX_REPLACED.saturating_sub(manifest.replaced.len());
            for run in &manifest.runs {
                let of_run = tombstones.iter().filter(|tombstone| tombstone.hides_in(run));
                let fingerprints: Vec<Fingerprint> = of_run.map(|it| it.fingerprint).collect();
                if fingerprints.is_empty() {
                    continue;
                }
                if left == 0 || capacity == 0 {
                    return Ok(RemovalProgress::FromRunsBefore(manifest.day));
                }
                left = left.saturating_sub(run.events());
                if !self.has_events_of(project, manifest.day, run, &fingerprints).await? {
                    continue;
                }
                let target = Target { day: manifest.day, level: run.level };
                let rewritten = self.compact_runs(project, head, &[run], &target, now).await?;
                if rewritten == CompactionOutcome::Lost {
                    // A concurrent packer compacted the run: retry this day.
                    return Ok(RemovalProgress::FromRunsBefore(manifest.day));
                }
                capacity -= 1;
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
        let request = ColumnRequest { day, run, names: &[ColumnName::Base], with_tags: false };
        let columns = self.read_columns(project, &[request]).await?;
        let Some(columns) = columns.into_iter().flatten().next() else { return Ok(false) };
        let base = columns.get(ColumnName::Base);
        // A damaged run counts nothing, so its events need no removal.
        let Ok(base) = base.and_then(|base| Base::decode(&mut Decoder::new(), base)) else {
            return Ok(false);
        };
        let has = |fingerprint| base.fingerprints().binary_search(fingerprint).is_ok();
        Ok(fingerprints.iter().any(has))
    }

    /// Deletes payloads, rows and keys of some events of a deleted error. Returns the progress and
    /// the number of events. Claims stay, so an event that is delivered again does not count.
    async fn remove_events(
        self,
        project: ProjectId,
        tombstone: &Tombstone,
        (shard, shards): (u8, u8),
        after: Option<&str>,
        now: Timestamp,
    ) -> Result<(RemovalProgress, usize), StoreError> {
        let pk = error_events_pk(project, tombstone.fingerprint, shard);
        let response = self
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
        let next = sort_key_at_end(TABLE, response.last_evaluated_key.as_ref())?;
        let stored = response.items.unwrap_or_default();
        let events: Vec<EventKey> =
            self.db.undamaged(&stored, |event| read_event_key(project, shard, event))?;
        let items_of =
            |event: EventKey| [payload_key(project, event.id), event.row, key(&pk, &event.sk)];
        self.db.delete_all(TABLE, events.into_iter().flat_map(items_of).collect()).await?;
        let removed = match next {
            Some(next) => RemovalProgress::UpToEvent { shard, after: Some(next) },
            None if shard.saturating_add(1) < shards => {
                RemovalProgress::UpToEvent { shard: shard.saturating_add(1), after: None }
            }
            None => RemovalProgress::All(now),
        };
        Ok((removed, stored.len()))
    }
}

/// Changes of tombstones in one update of the head, which fails if a tombstone has changed since it
/// was read.
#[derive(Default)]
struct HeadUpdate {
    conditions: Vec<String>,
    set: Vec<String>,
    remove: Vec<String>,
    values: Vec<(String, AttributeValue)>,
}

impl HeadUpdate {
    fn set(&mut self, before: &Tombstone, after: &Tombstone) {
        let number = self.require_unchanged(before);
        self.set.push(format!("{} = :after{number}", name_of(before.error)));
        self.values.push((format!(":after{number}"), write_tombstone(after)));
    }

    fn remove(&mut self, tombstone: &Tombstone) {
        self.require_unchanged(tombstone);
        self.remove.push(name_of(tombstone.error));
    }

    fn require_unchanged(&mut self, tombstone: &Tombstone) -> usize {
        let number = self.conditions.len();
        self.conditions.push(format!("{} = :before{number}", name_of(tombstone.error)));
        self.values.push((format!(":before{number}"), write_tombstone(tombstone)));
        number
    }

    fn apply_to(self, update: UpdateBuilder) -> UpdateBuilder {
        let removed = i32::try_from(self.remove.len()).unwrap_or(i32::MAX);
        let clause = |name: &str, parts: Vec<String>| {
            if parts.is_empty() { String::new() } else { format!("{name} {} ", parts.join(", ")) }
        };
        let expression = clause("SET", self.set) + &clause("REMOVE", self.remove);
        let update = update
            .condition_expression(self.conditions.join(" AND "))
            .update_expression(format!("{expression}ADD tombstones :less"))
            .expression_attribute_values(":less", n(-removed));
        let values = self.values.into_iter();
        values.fold(update, |update, (name, value)| update.expression_attribute_values(name, value))
    }
}

/// Returns the attribute of the head that stores the tombstone of an error.
fn name_of(error: ErrorId) -> String {
    format!("{TOMBSTONE}{}", error.to_string().replace('-', ""))
}

fn write_tombstone(tombstone: &Tombstone) -> AttributeValue {
    let mut fields = item([
        ("error", s(tombstone.error)),
        ("fingerprint", b(&tombstone.fingerprint.0)),
        ("at", n(tombstone.at.as_millis())),
        ("firstDay", s(tombstone.first_day)),
    ]);
    match &tombstone.removed {
        RemovalProgress::FromRunsBefore(day) => fields.insert("day".to_owned(), s(day)),
        RemovalProgress::UpToEvent { shard, after } => {
            if let Some(after) = after {
                fields.insert("event".to_owned(), s(after));
            }
            fields.insert("shard".to_owned(), n(*shard))
        }
        RemovalProgress::All(at) => fields.insert("removedAt".to_owned(), n(at.as_millis())),
    };
    AttributeValue::M(fields)
}

/// Reads the tombstones of a head, in the order of deletion.
pub(super) fn read_tombstones(head: &Item) -> Result<Tombstones, StoreError> {
    let fields = head.iter().filter(|(name, _)| name.starts_with(TOMBSTONE));
    let read = fields.map(|(_, value)| {
        let damaged = |_| StoreError::Damaged { table: TABLE, attribute: TOMBSTONE };
        let fields = value.as_m().map_err(damaged)?;
        read_tombstone(&ItemReader { table: TABLE, item: fields })
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
        at: reader.millis("at")?,
        first_day: reader.parsed("firstDay", read_date)?,
        removed,
    })
}
