//! What a delivery of an SDK needs, each of it remembered by a warm function: the project that it is
//! for, the log that its row goes to, and the error that it belongs to.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::app::App;
use crate::cache::TimedCache;
use crate::dynamodb::StoreError;
use crate::http::{Incoming, Problem};
use crate::projects::dsn::{IngestId, PublicKey};
use crate::projects::project::ProjectId;
use crate::projects::store::IngestAccess;
use crate::timestamp::Timestamp;

use super::ingestion::IngestionFault;
use super::log::row::Fingerprint;
use super::store::Taken;
use super::{ErrorDescription, ErrorId};

/// How long anything is remembered: the longest that a key which was replaced may go on working.
const MAX_AGE: Duration = Duration::from_mins(1);
/// How many of each are remembered.
const CAPACITY: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

/// How long events are counted at most of which the log is not looked at.
const LONGEST_COUNT: Duration = Duration::from_mins(10);

/// Events of a project since some time.
#[derive(Debug)]
struct TakenEvents {
    since: Timestamp,
    events: AtomicU64,
}

/// What deliveries had in common lately.
#[derive(Debug)]
struct DeliveryCache {
    projects: TimedCache<IngestId, IngestAccess>,
    /// Over how many partitions the rows of a project are spread.
    logs: TimedCache<ProjectId, u8>,
    /// How many events were taken of a project since its log was looked at.
    taken: TimedCache<ProjectId, Arc<TakenEvents>>,
    errors: TimedCache<(ProjectId, Fingerprint), ErrorId>,
}

impl Default for DeliveryCache {
    fn default() -> Self {
        Self {
            projects: TimedCache::new(CAPACITY, MAX_AGE),
            logs: TimedCache::new(CAPACITY, MAX_AGE),
            taken: TimedCache::new(CAPACITY, LONGEST_COUNT),
            errors: TimedCache::new(CAPACITY, MAX_AGE),
        }
    }
}

/// The project of an ingest id, if the key is its own and it takes more this minute. Fails with 403 or
/// 429 otherwise; whether the project or the key is unknown is not told.
pub async fn find_ingest_project(
    app: &App,
    incoming: &Incoming,
    ingest_id: Option<IngestId>,
    key: PublicKey,
) -> Result<ProjectId, Problem> {
    let refused = || Problem::from(IngestionFault::Unauthorized);
    let ingest_id = ingest_id.ok_or_else(refused)?;
    let now = app.clock.now();
    let cache = app.cache::<DeliveryCache>();
    // A key that is not the remembered one may be new.
    let remembered = cache.projects.get(&ingest_id, now);
    let remembered = remembered.filter(|access| access.public_key == key);
    let access = if let Some(access) = remembered {
        access
    } else {
        let access = app.store.find_ingest_access(ingest_id).await?.ok_or_else(refused)?;
        cache.projects.insert(ingest_id, access.clone(), now);
        access
    };
    if access.public_key != key {
        return Err(refused());
    }
    incoming.note_project(access.project);
    app.count_event(access.project, access.events_per_minute).await?;
    Ok(access.project)
}

/// Opens the log of a project for an event: it will be packed. Answers over how many partitions its rows
/// are spread.
pub async fn open_log(app: &App, project: ProjectId) -> Result<u8, StoreError> {
    let now = app.clock.now();
    let cache = app.cache::<DeliveryCache>();
    let taken = cache.taken.get(&project, now);
    if let Some(shards) = cache.logs.get(&project, now) {
        if let Some(taken) = taken {
            taken.events.fetch_add(1, Ordering::Relaxed);
        }
        return Ok(shards);
    }
    let seen = taken.map_or(Taken { events: 0, time: MAX_AGE }, |taken| Taken {
        events: taken.events.load(Ordering::Relaxed),
        time: taken.since.until(now),
    });
    let shards = app.store.want_packing(project, seen, now).await?;
    cache.logs.insert(project, shards, now);
    let taken = TakenEvents { since: now, events: AtomicU64::new(1) };
    cache.taken.insert(project, Arc::new(taken), now);
    Ok(shards)
}

/// Spreads the rows of a project over more partitions, of which `shards` took no more.
pub async fn add_log_shards(app: &App, project: ProjectId, shards: u8) -> Result<u8, StoreError> {
    let shards = app.store.add_log_shards(project, shards).await?;
    app.cache::<DeliveryCache>().logs.insert(project, shards, app.clock.now());
    Ok(shards)
}

/// Makes the error of a counted event known.
pub async fn see_error(
    app: &App,
    project: ProjectId,
    description: &ErrorDescription,
    at: Timestamp,
) -> Result<(), StoreError> {
    let now = app.clock.now();
    let cache = app.cache::<DeliveryCache>();
    let fingerprint = description.fingerprint;
    let known = cache.errors.get(&(project, fingerprint), now);
    let new = ErrorId::new(app.ids.new_uuid(now));
    let id = app.store.see_error(project, known, new, description, at).await?;
    cache.errors.insert((project, fingerprint), id, now);
    Ok(())
}
