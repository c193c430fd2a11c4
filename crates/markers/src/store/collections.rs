//! Table `event-markers`, key `pk` / `sk`: collections, their events, and purge jobs.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `project#ID` | `collection#ID` | a collection |
//! | `events#ID` | time and ID of the event | an event of the collection |
//! | `purge-jobs` | the collection's ID | a deleted collection whose events still exist |
//!
//! Each write of an event requires, in the same transaction, that its collection exists. So no
//! event can be added to a deleted collection.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use aws_sdk_dynamodb::types::{
    AttributeValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
};
use uuid::Uuid;

use shared::dynamodb::StoreError;
use shared::dynamodb::idempotency::{Idempotent, Replay};
use shared::dynamodb::item::{Item, ItemReader, item_at, key, n, range_key, s, time_key};
use shared::dynamodb::page::one_more_than;
use shared::dynamodb::request::IntoAction;
use shared::dynamodb::transaction::{MAX_ATTEMPTS, Transaction, TransactionOutcome};
use shared::page::{Page, PageRequest};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::MarkerStore;
use crate::{CollectionId, EventMarker, EventMarkerCollection, MarkerSource, PurgeJob, TimeRange};

pub(super) const TABLE: &str = "event-markers";
const PURGE_JOBS: &str = "purge-jobs";
/// Maximum number of events per transaction. A transaction has at most 100 actions, including one
/// for the collection and one for the stored response.
const MAX_EVENTS_PER_TRANSACTION: usize = 98;

/// Outcome of a collection's creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CollectionCreation {
    /// Stored.
    Created,
    /// The idempotency key was used before.
    Replay(Replay),
}

/// Outcome of an addition of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventAddition {
    /// Stored.
    Added,
    /// The collection does not exist or was deleted.
    CollectionGone,
    /// The idempotency key was used before.
    Replay(Replay),
}

/// Outcome of a collection's deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectionDeletion {
    /// The collection is deleted, and its events are queued for purging.
    Deleted,
    /// The collection does not exist or was deleted.
    CollectionGone,
}

/// A collection with its pending events: those that did not fit into their writer's first
/// transaction.
struct Found {
    collection: EventMarkerCollection,
    pending: Vec<EventMarker>,
}

impl MarkerStore<'_> {
    /// Stores a new collection.
    pub async fn create_collection(
        self,
        collection: &EventMarkerCollection,
        idempotent: Option<Idempotent<'_>>,
    ) -> Result<CollectionCreation, StoreError> {
        let put = self
            .db
            .put(TABLE, write_collection(collection))
            .condition_expression("attribute_not_exists(pk)");
        let mut transaction = Transaction::default();
        transaction.add("collection", put)?;
        match self.db.commit(transaction, idempotent, collection.created_at).await? {
            TransactionOutcome::Done => Ok(CollectionCreation::Created),
            TransactionOutcome::Replay(replay) => Ok(CollectionCreation::Replay(replay)),
            TransactionOutcome::Rejected(cancellation) => Err(cancellation.into_error()),
        }
    }

    /// Returns a collection of a project. Strongly consistent: a deleted collection is gone
    /// immediately, and the count includes all added events.
    pub async fn find_collection(
        self,
        project: ProjectId,
        collection: CollectionId,
    ) -> Result<Option<EventMarkerCollection>, StoreError> {
        Ok(self.find(project, collection).await?.map(|found| found.collection))
    }

    async fn find(
        self,
        project: ProjectId,
        collection: CollectionId,
    ) -> Result<Option<Found>, StoreError> {
        let found = self.db.get(TABLE, collection_key(project, collection)).await?;
        found.as_ref().map(read_collection).transpose()
    }

    /// Returns a project's collections, newest first. Strongly consistent.
    pub async fn list_collections(
        self,
        project: ProjectId,
        page_request: &PageRequest,
    ) -> Result<Page<EventMarkerCollection>, StoreError> {
        let mut query = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .scan_index_forward(false)
            .key_condition_expression("pk = :pk AND begins_with(sk, :collection)")
            .expression_attribute_values(":pk", s(project_pk(project)))
            .expression_attribute_values(":collection", s("collection#"))
            .limit(one_more_than(page_request.limit));
        if let Some(after) = &page_request.after {
            query = query.set_exclusive_start_key(Some(key(&project_pk(project), after)));
        }
        let output = query.send().await?;
        let more = output.last_evaluated_key.is_some();
        self.db.page(output.items.unwrap_or_default(), more, page_request.limit, end_of, |item| {
            read_collection(item).map(|found| found.collection)
        })
    }

    /// Adds and counts events, all or none.
    pub async fn add_events(
        self,
        project: ProjectId,
        collection: CollectionId,
        events: &[EventMarker],
        now: Timestamp,
        idempotent: Option<Idempotent<'_>>,
    ) -> Result<EventAddition, StoreError> {
        let (in_transaction, rest) = events.split_at(events.len().min(MAX_EVENTS_PER_TRANSACTION));
        for _ in 0..MAX_ATTEMPTS {
            let mut transaction = Transaction::default();
            let count = self.count_events(project, collection, events, rest, now)?;
            transaction.add("collection", count)?;
            for event in in_transaction {
                transaction.add("event", self.put_event(collection, event)?)?;
            }
            let cancellation = match self.db.commit(transaction, idempotent, now).await? {
                TransactionOutcome::Done if rest.is_empty() => return Ok(EventAddition::Added),
                TransactionOutcome::Done => {
                    // The events are stored and counted. If they stay pending, readers and the next
                    // writer find them.
                    let _ = self.store_pending(project, collection, rest).await;
                    return Ok(EventAddition::Added);
                }
                TransactionOutcome::Replay(replay) => return Ok(EventAddition::Replay(replay)),
                TransactionOutcome::Rejected(cancellation) => cancellation,
            };
            if !cancellation.failed("collection") {
                return Err(cancellation.into_error());
            }
            // The collection is gone, or has pending events that must be stored first.
            match cancellation.items("collection").next() {
                None => return Ok(EventAddition::CollectionGone),
                Some(item) => {
                    let found = read_collection(item)?;
                    self.store_pending(project, collection, &found.pending).await?;
                }
            }
        }
        Err(StoreError::Contended("the collection kept having events pending".into()))
    }

    /// Returns the action that counts new events, if the collection exists. It stores events that
    /// do not fit into the transaction as pending in the collection, which each reader reads first.
    fn count_events(
        self,
        project: ProjectId,
        collection: CollectionId,
        events: &[EventMarker],
        rest: &[EventMarker],
        now: Timestamp,
    ) -> Result<TransactWriteItem, StoreError> {
        let count = i64::try_from(events.len()).unwrap_or(i64::MAX);
        let update = self
            .db
            .update(TABLE, collection_key(project, collection))
            .condition_expression("attribute_exists(pk) AND attribute_not_exists(pending)")
            .expression_attribute_values(":count", n(count))
            .expression_attribute_values(":now", s(now))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let update = if rest.is_empty() {
            update.update_expression("ADD eventCount :count SET updatedAt = :now")
        } else {
            update
                .update_expression("ADD eventCount :count SET updatedAt = :now, pending = :pending")
                .expression_attribute_values(":pending", write_pending(collection, rest))
        };
        update.into_action()
    }

    fn put_event(
        self,
        collection: CollectionId,
        event: &EventMarker,
    ) -> Result<TransactWriteItem, StoreError> {
        self.db.put(TABLE, write_event(collection, event)).into_action()
    }

    /// Stores a collection's pending events. Does nothing if another request has stored them, or if
    /// the collection was deleted.
    async fn store_pending(
        self,
        project: ProjectId,
        collection: CollectionId,
        pending: &[EventMarker],
    ) -> Result<(), StoreError> {
        if pending.is_empty() {
            return Ok(());
        }
        let update = self
            .db
            .update(TABLE, collection_key(project, collection))
            .condition_expression("pending = :pending")
            .update_expression("REMOVE pending")
            .expression_attribute_values(":pending", write_pending(collection, pending));
        let mut actions = vec![update.into_action()?];
        for event in pending {
            actions.push(self.put_event(collection, event)?);
        }
        // A failed condition means that another request has stored them.
        self.db.commit_all(actions).await.map(drop)
    }

    /// Returns events of a collection, oldest first; `None` if there is no such collection.
    ///
    /// Reads the collection first, then the events, both strongly consistently. The page includes
    /// pending events, so that it misses none that are stored between the two reads. Concurrent
    /// reads would save a round trip, but could miss events.
    pub async fn list_events(
        self,
        project: ProjectId,
        collection: CollectionId,
        range: TimeRange,
        page_request: &PageRequest,
    ) -> Result<Option<Page<EventMarker>>, StoreError> {
        let Some(found) = self.find(project, collection).await? else { return Ok(None) };
        // All keys have the same length, so this sorts directly after the key and before the next
        // one.
        let after = page_request.after.as_ref().map(|after| format!("{after}!"));
        // The range can differ from that of the previous page.
        let first = range_key(range.from).max(after.unwrap_or_default());
        let end = range.to.map_or_else(|| "~".to_owned(), range_key);
        if first > end {
            return Ok(Some(Page { items: Vec::new(), end: None }));
        }
        let output = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk AND sk BETWEEN :first AND :end")
            .expression_attribute_values(":pk", s(events_pk(collection)))
            .expression_attribute_values(":first", s(&first))
            // No event has this key, a time without an ID, so the end is exclusive.
            .expression_attribute_values(":end", s(&end))
            .limit(one_more_than(page_request.limit))
            .send()
            .await?;
        let more = output.last_evaluated_key.is_some();
        let mut items = output.items.unwrap_or_default();
        if !found.pending.is_empty() {
            // An incomplete result can be followed by more stored events.
            let last = items.last().filter(|_| more).map(end_of).transpose()?;
            let (first, end) = (first.as_str(), last.as_deref().unwrap_or(&end));
            merge_pending(&mut items, collection, &found.pending, first..=end)?;
        }
        self.db.page(items, more, page_request.limit, end_of, read_event).map(Some)
    }

    /// Deletes a collection and queues its events for purging, in one transaction. The cost does
    /// not depend on the number of events.
    pub async fn delete_collection(
        self,
        project: ProjectId,
        collection: CollectionId,
        mut more: Vec<TransactWriteItem>,
        now: Timestamp,
    ) -> Result<CollectionDeletion, StoreError> {
        let delete = self
            .db
            .delete(TABLE, collection_key(project, collection))
            .condition_expression("attribute_exists(pk)");
        let mut job = key(PURGE_JOBS, &collection.to_string());
        job.insert("deletedAt".to_owned(), s(now));
        more.extend([delete.into_action()?, self.db.put(TABLE, job).into_action()?]);
        Ok(match self.db.commit_all(more).await? {
            None => CollectionDeletion::Deleted,
            Some(_) => CollectionDeletion::CollectionGone,
        })
    }
}

/// Merges the pending events between two keys into a page's items, in order, unless they are
/// already stored.
fn merge_pending(
    items: &mut Vec<Item>,
    collection: CollectionId,
    pending: &[EventMarker],
    keys: RangeInclusive<&str>,
) -> Result<(), StoreError> {
    let mut all = BTreeMap::new();
    for event in pending {
        let item = write_event(collection, event);
        let key = end_of(&item)?;
        if keys.contains(&key.as_str()) {
            all.insert(key, item);
        }
    }
    for item in items.drain(..) {
        all.insert(end_of(&item)?, item);
    }
    items.extend(all.into_values());
    Ok(())
}

/// Returns the end position of a page whose last item is `item`.
fn end_of(item: &Item) -> Result<String, StoreError> {
    ItemReader { table: TABLE, item }.text("sk").map(str::to_owned)
}

pub(super) fn project_pk(project: ProjectId) -> String {
    format!("project#{project}")
}

pub(super) fn collection_key(project: ProjectId, collection: CollectionId) -> Item {
    key(&project_pk(project), &format!("collection#{collection}"))
}

pub(super) fn events_pk(collection: CollectionId) -> String {
    format!("events#{collection}")
}

/// Returns the key of a purge job.
pub(super) fn job_key(collection: CollectionId) -> Item {
    key(PURGE_JOBS, &collection.to_string())
}

/// Returns the partition key of all purge jobs.
pub(super) fn jobs_pk() -> AttributeValue {
    s(PURGE_JOBS)
}

pub(super) fn read_job(item: &Item) -> Result<PurgeJob, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(PurgeJob {
        collection: reader.parsed("sk", CollectionId::parse)?,
        deleted_at: reader.time("deletedAt")?,
    })
}

pub(super) fn write_collection(collection: &EventMarkerCollection) -> Item {
    let mut item = item_at(
        collection_key(collection.project_id, collection.id),
        [
            ("id", s(collection.id)),
            ("projectId", s(collection.project_id)),
            ("name", s(&collection.name)),
            ("description", s(&collection.description)),
            ("eventCount", AttributeValue::N(collection.event_count.to_string())),
            ("createdAt", s(collection.created_at)),
            ("updatedAt", s(collection.updated_at)),
        ],
    );
    let source = collection.source.map(|source| ("source".to_owned(), s(source.as_str())));
    item.extend(source);
    item
}

fn read_collection(item: &Item) -> Result<Found, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let pending = match item.get("pending") {
        None => Vec::new(),
        Some(AttributeValue::L(events)) => events
            .iter()
            .map(|event| read_event(event.as_m().map_err(|_| reader.damaged("pending"))?))
            .collect::<Result<_, _>>()?,
        Some(_) => return Err(reader.damaged("pending")),
    };
    let collection = EventMarkerCollection {
        id: reader.parsed("id", CollectionId::parse)?,
        project_id: reader.parsed("projectId", ProjectId::parse)?,
        name: reader.text("name")?.to_owned(),
        description: reader.text("description")?.to_owned(),
        source: reader.optional_parsed("source", |name| MarkerSource::parse(name).ok())?,
        event_count: reader.count("eventCount")?,
        created_at: reader.time("createdAt")?,
        updated_at: reader.time("updatedAt")?,
    };
    Ok(Found { collection, pending })
}

pub(super) fn write_event(collection: CollectionId, event: &EventMarker) -> Item {
    let sk = format!("{}#{}", time_key(event.occurred_at), event.id);
    let values = event.attributes.iter().map(|(key, value)| (key.clone(), s(value)));
    item_at(
        key(&events_pk(collection), &sk),
        [
            ("id", s(event.id)),
            ("name", s(&event.name)),
            ("occurredAt", s(event.occurred_at)),
            ("description", s(&event.description)),
            ("attributes", AttributeValue::M(values.collect())),
        ],
    )
}

fn write_pending(collection: CollectionId, events: &[EventMarker]) -> AttributeValue {
    let items = events.iter().map(|event| AttributeValue::M(write_event(collection, event)));
    AttributeValue::L(items.collect())
}

pub(super) fn read_event(item: &Item) -> Result<EventMarker, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let attributes = item.get("attributes").and_then(|attributes| attributes.as_m().ok());
    let attributes = attributes.ok_or_else(|| reader.damaged("attributes"))?;
    let mut read = BTreeMap::new();
    for (key, value) in attributes {
        let value = value.as_s().map_err(|_| reader.damaged("attributes"))?;
        read.insert(key.clone(), value.clone());
    }
    Ok(EventMarker {
        id: reader.parsed("id", |text| Uuid::try_parse(text).ok())?,
        name: reader.text("name")?.to_owned(),
        occurred_at: reader.time("occurredAt")?,
        description: reader.text("description")?.to_owned(),
        attributes: read,
    })
}
