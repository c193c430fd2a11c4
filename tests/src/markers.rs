//! Event marker collections with many events. They are stored directly, because that is fast.

use std::collections::BTreeMap;
use std::time::Duration;

use markers::store::{CollectionCreation, EventAddition, MarkerStore};
use markers::{CollectionId, EventMarker, EventMarkerCollection};
use shared::app::{Clock, Ids};
use shared::dynamodb::Store;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

/// Maximum events per transaction.
const BATCH_SIZE: usize = 98;

/// Returns a new collection that is not stored yet.
pub fn collection(project_id: ProjectId) -> EventMarkerCollection {
    let now = Clock::System.now();
    EventMarkerCollection {
        id: CollectionId::new(Ids::Random.new_uuid(now)),
        project_id,
        name: "Releases".to_owned(),
        description: String::new(),
        source: None,
        event_count: 0,
        created_at: now,
        updated_at: now,
    }
}

/// Stores a new collection with `events` events, one per second, starting in 1970.
pub async fn filled(store: &Store, project_id: ProjectId, events: usize) -> CollectionId {
    let collection = collection(project_id);
    let written = MarkerStore::new(store)
        .create_collection(&collection, None)
        .await
        .expect("the collection is stored");
    assert_eq!(written, CollectionCreation::Created);
    let mut at = Timestamp::from_millis(0);
    let mut left = events;
    while left > 0 {
        let count = left.min(BATCH_SIZE);
        let events: Vec<EventMarker> = (0..count)
            .map(|_| {
                at = at.plus(Duration::from_secs(1));
                event(at)
            })
            .collect();
        let added =
            MarkerStore::new(store).add_events(project_id, collection.id, &events, at, None).await;
        assert_eq!(added.expect("the events are stored"), EventAddition::Added);
        left -= count;
    }
    collection.id
}

fn event(occurred_at: Timestamp) -> EventMarker {
    EventMarker {
        id: Ids::Random.new_uuid(Clock::System.now()),
        name: "v1.2.3".to_owned(),
        occurred_at,
        description: String::new(),
        attributes: BTreeMap::new(),
    }
}
