//! What a delivery of an SDK needs, each of it remembered by a warm function: the project that it is
//! for, the day that it counts on, and the error that it belongs to.

use std::num::NonZeroUsize;
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
use super::log::day::Day;
use super::log::row::Fingerprint;
use super::{ErrorDescription, ErrorId};

/// How long anything is remembered: the longest that a key which was replaced may go on working.
const MAX_AGE: Duration = Duration::from_mins(1);
/// How many of each are remembered.
const CAPACITY: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

/// What deliveries had in common lately.
#[derive(Debug)]
struct DeliveryCache {
    projects: TimedCache<IngestId, IngestAccess>,
    days: TimedCache<(ProjectId, Day), u8>,
    errors: TimedCache<(ProjectId, Fingerprint), ErrorId>,
}

impl Default for DeliveryCache {
    fn default() -> Self {
        Self {
            projects: TimedCache::new(CAPACITY, MAX_AGE),
            days: TimedCache::new(CAPACITY, MAX_AGE),
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

/// Opens a day of a project for events, and answers over how many partitions they are spread.
pub async fn open_day(app: &App, project: ProjectId, day: Day) -> Result<u8, StoreError> {
    let now = app.clock.now();
    let cache = app.cache::<DeliveryCache>();
    if let Some(shards) = cache.days.get(&(project, day), now) {
        return Ok(shards);
    }
    let shards = app.store.open_day(project, day).await?;
    cache.days.insert((project, day), shards, now);
    Ok(shards)
}

/// Spreads the events of a day over more partitions, of which `shards` took no more.
pub async fn add_shards(
    app: &App,
    project: ProjectId,
    day: Day,
    shards: u8,
) -> Result<u8, StoreError> {
    let shards = app.store.add_shards(project, day, shards).await?;
    app.cache::<DeliveryCache>().days.insert((project, day), shards, app.clock.now());
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
