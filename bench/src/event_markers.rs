//! Deletions of event marker collections, and the purge of their events.

use std::collections::BTreeMap;

use markers::store::MarkerStore;
use markers::{CollectionId, EventMarker, EventMarkerCollection};
use shared::app::{Clock, Ids};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use crate::Result;
use crate::counter::{calls, most_of_warm};
use crate::process::{Process, Requests};
use crate::program::{Program, Programs};
use crate::progress::progress;
use crate::report::{Report, at_most, under};
use crate::request::DELETE_COLLECTION;
use crate::stack::Stack;
use crate::statistics::count;

/// The number of deleted collections of each size.
const COLLECTIONS: usize = 10;
/// The number of events of a large collection.
const EVENTS: usize = 20_000;
/// The maximum number of events of one transaction.
const EVENTS_AT_ONCE: usize = 98;
/// The number of deletions that are not measured.
const WARM_UPS: usize = 20;
/// The number of deletions whose round trips are counted.
const COUNTED: usize = 51;

/// Deletes empty and large collections alternately, then purges their events.
pub(crate) async fn event_markers(programs: &Programs, report: &mut Report) -> Result<()> {
    let stack = Stack::start().await?;
    let project = stack.project("deleted").await?;
    let request = |collection: &CollectionId| {
        stack.request(DELETE_COLLECTION, &[&project, collection]).event()
    };
    let counted = collections(&stack, project, COUNTED, 0).await?;
    let program = Program::DeleteEventMarkerCollection;
    let counted = counted.iter().map(request);
    let most = calls(programs, (program, &[]), &stack, 204, counted).await?;
    let most = most_of_warm(&most, |calls| count(calls.len()));
    report.add(program, "warm request, round trips, most", most, "", at_most(1.0));

    progress(&format!("deletions: creating {COLLECTIONS} collections of {EVENTS} events"));
    let empty = collections(&stack, project, WARM_UPS + COLLECTIONS, 0).await?;
    let large = collections(&stack, project, COLLECTIONS, EVENTS).await?;

    progress(&format!("deletions: {COLLECTIONS} each of an empty and a large collection"));
    let mut delete = Process::start(programs, program, &stack.endpoint(), &[]).await?;
    let (warm_ups, empty) = empty.split_at(WARM_UPS);
    for collection in warm_ups {
        delete.expect(204, request(collection)).await?;
    }
    let (mut of_empty, mut of_large) = (Requests::default(), Requests::default());
    for (empty, large) in empty.iter().zip(&large) {
        delete.send(204, [request(empty)], &mut of_empty).await?;
        delete.send(204, [request(large)], &mut of_large).await?;
    }
    report.add_requests(program, "an empty collection", &of_empty, None);
    let ratio = of_large.latency().median() / of_empty.latency().median();
    report.add_requests(program, "20,000 events", &of_large, None);
    report.add(program, "20,000 events, as a multiple of none", ratio, "×", at_most(1.5));
    report.add_memory(program, delete.peak_memory()?, under(20.0));

    progress("deletions: purging the events");
    let program = Program::PurgeEventMarkers;
    let mut purge = Process::start(programs, program, &stack.endpoint(), &[]).await?;
    let is_left = async || {
        for collection in &large {
            let events = MarkerStore::new(stack.store()).event_keys(*collection, 1).await?;
            if !events.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    };
    purge.measure_job(report, COLLECTIONS * EVENTS, is_left).await?;
    report.add_memory(program, purge.peak_memory()?, under(20.0));
    Ok(())
}

/// Creates collections, each with `events` event markers, one per second from 1970 on.
pub(crate) async fn collections(
    stack: &Stack,
    project: ProjectId,
    count: usize,
    events: usize,
) -> Result<Vec<CollectionId>> {
    let now = Clock::System.now();
    let store = MarkerStore::new(stack.store());
    let times = (1..).take(events).map(|second| Timestamp::from_millis(second * 1_000));
    let mut ids = Vec::with_capacity(count);
    for _ in 0..count {
        let id = CollectionId::new(Ids::Random.new_uuid(now));
        let collection = EventMarkerCollection {
            id,
            project_id: project,
            name: "Releases".to_owned(),
            description: "Deployments to production.".to_owned(),
            source: None,
            event_count: 0,
            created_at: now,
            updated_at: now,
        };
        store.create_collection(&collection, None).await?;
        let markers: Vec<EventMarker> = times.clone().map(marker).collect();
        for markers in markers.chunks(EVENTS_AT_ONCE) {
            store.add_events(project, id, markers, now, None).await?;
        }
        ids.push(id);
    }
    Ok(ids)
}

fn marker(occurred_at: Timestamp) -> EventMarker {
    EventMarker {
        id: Ids::Random.new_uuid(occurred_at),
        name: "v1.2.3".to_owned(),
        occurred_at,
        description: "A release of the web application.".to_owned(),
        attributes: BTreeMap::from([("commit".to_owned(), "9f2c1e7".to_owned())]),
    }
}
