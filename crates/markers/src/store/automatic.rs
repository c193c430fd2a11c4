//! Automatic events of collections with a source (`docs/semantics/event-markers.md`, "Automatic
//! events").

use aws_sdk_dynamodb::types::TransactWriteItem;
use uuid::Uuid;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, n, s};
use shared::dynamodb::request::IntoAction;
use shared::dynamodb::transaction::{MAX_ATTEMPTS, Transaction};
use shared::projects::project::{Project, ProjectId};
use shared::timestamp::Timestamp;

use super::MarkerStore;
use super::collections::{TABLE, collection_key, project_pk, write_collection, write_event};
use crate::{CollectionDraft, CollectionId, EventMarker, MarkerSource};

/// Maximum collections of a source that get events: the oldest ones.
const MAX_COLLECTIONS: usize = 10;
/// Maximum events per transaction, which also counts them.
const MAX_EVENTS: usize = 90;

impl MarkerStore<'_> {
    /// Returns the actions that create a new project's collections, one of each source. `new_id`
    /// returns their IDs.
    pub fn automatic_collections(
        self,
        project: &Project,
        new_id: impl Fn() -> Uuid,
    ) -> Result<Vec<TransactWriteItem>, StoreError> {
        let mut collections = Vec::new();
        for source in MarkerSource::ALL {
            let collection = CollectionDraft::automatic(source).into_collection(
                CollectionId::new(new_id()),
                project.id,
                project.created_at,
            );
            collections.push(self.db.put(TABLE, write_collection(&collection)).into_action()?);
        }
        Ok(collections)
    }

    /// Returns the actions that add an event to the collections of a source. They fail if a
    /// collection was deleted in the meantime, or has the event.
    pub async fn automatic_event(
        self,
        project: ProjectId,
        source: MarkerSource,
        event: &EventMarker,
        now: Timestamp,
    ) -> Result<Vec<TransactWriteItem>, StoreError> {
        let mut actions = Vec::new();
        for collection in self.collections_of(project, source).await? {
            actions.push(self.count_automatic(project, collection, 1, now)?);
            actions.push(self.put_automatic(collection, event)?);
        }
        Ok(actions)
    }

    /// Adds events to the collections of a source, each once: repetitions change nothing.
    pub async fn add_automatic_events(
        self,
        project: ProjectId,
        source: MarkerSource,
        events: &[EventMarker],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for collection in self.collections_of(project, source).await? {
            for some in events.chunks(MAX_EVENTS) {
                self.add_missing(project, collection, some, now).await?;
            }
        }
        Ok(())
    }

    async fn add_missing(
        self,
        project: ProjectId,
        collection: CollectionId,
        events: &[EventMarker],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for _ in 0..MAX_ATTEMPTS {
            let keys = events.iter().map(|event| event_key(collection, event)).collect();
            let stored = self.db.get_all(TABLE, keys).await?;
            let is_missing = |event: &&EventMarker| {
                let sk = event_key(collection, event).remove("sk");
                stored.iter().all(|item| item.get("sk") != sk.as_ref())
            };
            let missing: Vec<&EventMarker> = events.iter().filter(is_missing).collect();
            if missing.is_empty() {
                return Ok(());
            }
            let mut transaction = Transaction::default();
            let count = self.count_automatic(project, collection, missing.len(), now)?;
            transaction.add("collection", count)?;
            for event in missing {
                transaction.add("event", self.put_automatic(collection, event)?)?;
            }
            match self.db.commit_all(transaction).await? {
                None => return Ok(()),
                // The collection was deleted.
                Some(cancelled) if cancelled.failed("collection") => return Ok(()),
                // A concurrent invocation has just added some.
                Some(cancelled) if cancelled.failed("event") => {}
                Some(cancelled) => return Err(cancelled.into_error()),
            }
        }
        Err(StoreError::Contended("the collection kept changing".into()))
    }

    /// Returns the collections of a source that get events. Strongly consistent.
    async fn collections_of(
        self,
        project: ProjectId,
        source: MarkerSource,
    ) -> Result<Vec<CollectionId>, StoreError> {
        let query = self
            .db
            .partition(TABLE, project_pk(project))
            .filter_expression("#source = :source")
            .expression_attribute_names("#source", "source")
            .expression_attribute_values(":source", s(source.as_str()));
        let id = |item: &Item| ItemReader { table: TABLE, item }.parsed("id", CollectionId::parse);
        let mut found: Vec<_> = self.db.undamaged(&self.db.all(query).await?, id)?;
        found.truncate(MAX_COLLECTIONS);
        Ok(found)
    }

    fn count_automatic(
        self,
        project: ProjectId,
        collection: CollectionId,
        events: usize,
        now: Timestamp,
    ) -> Result<TransactWriteItem, StoreError> {
        self.db
            .update(TABLE, collection_key(project, collection))
            .condition_expression("attribute_exists(pk)")
            .update_expression("ADD eventCount :count SET updatedAt = :now")
            .expression_attribute_values(":count", n(i64::try_from(events).unwrap_or(i64::MAX)))
            .expression_attribute_values(":now", s(now))
            .into_action()
    }

    fn put_automatic(
        self,
        collection: CollectionId,
        event: &EventMarker,
    ) -> Result<TransactWriteItem, StoreError> {
        let put = self.db.put(TABLE, write_event(collection, event));
        put.condition_expression("attribute_not_exists(pk)").into_action()
    }
}

/// Returns the key of a collection's event.
fn event_key(collection: CollectionId, event: &EventMarker) -> Item {
    let mut item = write_event(collection, event);
    item.retain(|name, _| name == "pk" || name == "sk");
    item
}
