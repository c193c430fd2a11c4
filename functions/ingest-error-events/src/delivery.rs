//! Stores the event of a delivery. A warm function caches data that deliveries share: the project,
//! the shards of its log, and the error of a fingerprint.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use errors::attribute::Attribute;
use errors::grouping::Fingerprint;
use errors::http::DROPPED_CATEGORIES;
use errors::ingestion::{IngestionFault, NormalizedEvent, capacity_for_tags};
use errors::log::pack_schedule::early_check;
use errors::log::row::EventRow;
use errors::store::{
    CountOutcome, ErrorOfEvent, ErrorStore, FingerprintEntry, OpenLog, Registrar, SeenEvent,
};
use errors::tag::{MAX_TAG_KEYS, OTHER_VALUE, TagHash, TagKey, sampled_keys};
use errors::{ErrorDescription, ErrorId, ErrorLimits, EventId, NewError};
use markers::store::MarkerStore;
use markers::{EventMarker, MarkerSource};
use shared::app::App;
use shared::cache::TimedCache;
use shared::dynamodb::StoreError;
use shared::http::{ApiRequest, Problem};
use shared::projects::dsn::{IngestId, PublicKey};
use shared::projects::limits::{Limit, Limits};
use shared::projects::project::ProjectId;
use shared::projects::store::IngestAccess;
use shared::telemetry::{ERRORS_AT_CAP, log_bound_met};
use shared::timestamp::Timestamp;

/// Longest time that data is cached, and that a replaced key still works.
const MAX_AGE: Duration = Duration::from_mins(1);
/// Longest time that a release or tag is cached.
const MAX_RELEASE_AGE: Duration = Duration::from_hours(1);
/// Number of cached entries of each kind.
const CAPACITY: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();
/// Number of cached tags.
const TAG_CAPACITY: NonZeroUsize = NonZeroUsize::new(20_000).unwrap();

/// Most attempts at counting an event. Another one follows if a partition was throttled, or if
/// another delivery created the error.
const MAX_ATTEMPTS: u32 = 4;
/// Seconds after which SDKs retry if all attempts failed.
const SECONDS_TO_WAIT: u16 = 5;

/// Cached data that deliveries share.
#[derive(Debug)]
struct DeliveryCache {
    projects: TimedCache<IngestId, IngestAccess>,
    /// Keys that did not match a project. New keys are random, so none of them was sent before.
    rejected_keys: TimedCache<(IngestId, PublicKey), ()>,
    /// The log of a project.
    logs: TimedCache<ProjectId, OpenLog>,
    /// Registered tags.
    tags: TimedCache<(ProjectId, TagHash), ()>,
    /// Tags that have reached their limit of new values.
    full_tags: TimedCache<(ProjectId, TagKey), ()>,
    errors: TimedCache<(ProjectId, Fingerprint), ErrorId>,
    /// Projects that have reached their error limit.
    full: TimedCache<ProjectId, ()>,
    /// The time when a release was first seen. Never changes.
    releases: TimedCache<(ProjectId, Box<str>), Timestamp>,
    /// Projects that have reached their limit of new releases.
    full_of_releases: TimedCache<ProjectId, ()>,
}

impl Default for DeliveryCache {
    fn default() -> Self {
        Self {
            projects: TimedCache::new(CAPACITY, MAX_AGE),
            rejected_keys: TimedCache::new(CAPACITY, MAX_AGE),
            logs: TimedCache::new(CAPACITY, MAX_AGE),
            tags: TimedCache::new(TAG_CAPACITY, MAX_RELEASE_AGE),
            full_tags: TimedCache::new(CAPACITY, MAX_AGE),
            errors: TimedCache::new(CAPACITY, MAX_AGE),
            full: TimedCache::new(CAPACITY, MAX_AGE),
            releases: TimedCache::new(CAPACITY, MAX_RELEASE_AGE),
            full_of_releases: TimedCache::new(CAPACITY, MAX_AGE),
        }
    }
}

/// Returns the project of an ingest id, if the key matches. Fails with 403 otherwise, whether the
/// project is unknown or the key is wrong.
pub(crate) async fn find_ingest_project(
    app: &App,
    incoming: &ApiRequest,
    ingest_id: Option<IngestId>,
    key: PublicKey,
) -> Result<IngestAccess, Problem> {
    let unauthorized = || Problem::from(IngestionFault::Unauthorized);
    let ingest_id = ingest_id.ok_or_else(unauthorized)?;
    let now = app.clock.now();
    let cache = app.cache::<DeliveryCache>();
    // A key that differs from the cached one may be new.
    let cached = cache.projects.get(&ingest_id, now);
    let access = match cached.filter(|access| access.public_key == key) {
        Some(access) if !app.needs_limits() => access,
        _ if cache.rejected_keys.holds(&(ingest_id, key), now) => return Err(unauthorized()),
        _ => {
            let found = app.find_ingest_access(ingest_id).await?;
            if let Some(access) = &found {
                cache.projects.insert(ingest_id, access.clone(), now);
            }
            let found = found.filter(|access| access.public_key == key);
            let Some(access) = found else {
                cache.rejected_keys.insert((ingest_id, key), (), now);
                return Err(unauthorized());
            };
            access
        }
    };
    incoming.note_project(access.project);
    Ok(access)
}

/// Returns the limits of the project, or else of the stack.
pub(crate) fn limits_of(app: &App, access: &IngestAccess) -> Limits {
    access.limits.or(&app.limits())
}

/// Counts a delivery to a project, by whether it has an event. Fails with 429 over either limit. A
/// page sends envelopes without an event for each visit; they must not use up the events' limit.
pub(crate) async fn count_delivery(
    app: &App,
    access: &IngestAccess,
    has_event: bool,
) -> Result<(), Problem> {
    let limits = limits_of(app, access);
    let counted = app.count_delivery(access.project, &limits, has_event).await;
    counted.map_err(|over| if has_event { over } else { over.limiting(DROPPED_CATEGORIES) })
}

/// Opens the log of a project for an event, so that it will be packed. The random `draw` decides
/// whether the log is checked early.
async fn open_log(app: &App, project: ProjectId, draw: u32) -> Result<OpenLog, StoreError> {
    let now = app.clock.now();
    let cache = app.cache::<DeliveryCache>();
    let (early, known) = (early_check(draw, now), cache.logs.get(&project, now));
    if let (None, Some(log)) = (early, known) {
        return Ok(log);
    }
    let log = ErrorStore::new(&app.store).enqueue_for_packing(project, early, now).await?;
    cache.logs.insert(project, log.clone(), now);
    Ok(log)
}

/// The tags of an event in its row.
#[derive(Debug, Default)]
struct EventTags {
    /// The registered tags.
    values: Vec<(TagKey, String)>,
    /// Keys that are not categories.
    others: Vec<TagKey>,
}

/// Opens the log of a project for an event. Returns the number of partitions for its rows, and the
/// event's tags.
///
/// SDKs drop events of failed deliveries, so after a transient failure, the event has no tags.
async fn open_log_for(
    app: &App,
    project: ProjectId,
    event: &NormalizedEvent,
    draw: u32,
) -> Result<(u8, EventTags), StoreError> {
    let log = open_log(app, project, draw).await?;
    let shards = log.shards;
    if event.tags.is_empty() {
        return Ok((shards, EventTags::default()));
    }
    match register_tags(app, project, event, log, draw).await {
        Ok(tags) => Ok((shards, tags)),
        Err(failure) if failure.may_pass() => {
            tracing::warn!(cause = %failure, "the tags of an event are not registered");
            Ok((shards, EventTags::default()))
        }
        Err(failure) => Err(failure),
    }
}

/// Registers the tags of an event that are new. A value without capacity becomes [`OTHER_VALUE`].
async fn register_tags(
    app: &App,
    project: ProjectId,
    event: &NormalizedEvent,
    mut log: OpenLog,
    draw: u32,
) -> Result<EventTags, StoreError> {
    let now = app.clock.now();
    let (cache, store) = (app.cache::<DeliveryCache>(), ErrorStore::new(&app.store));
    let is_new = |key: &TagKey, keys: &[TagKey]| !keys.contains(key);
    let keys = || event.tags.iter().map(|(key, _)| *key);
    let new: Vec<TagKey> = keys().filter(|key| is_new(key, &log.tags)).collect();
    if !new.is_empty() && log.tags.len() < MAX_TAG_KEYS {
        log.tags = store.add_tag_keys(project, &new, now).await?;
        cache.logs.insert(project, log.clone(), now);
    }
    let others = sampled_keys(keys().filter(|key| is_new(key, &log.tags)), draw);
    let of_event = log.tags.iter().filter_map(|key| {
        let (key, value) = event.tags.iter().find(|(of_event, _)| of_event == key)?;
        Some((*key, value.as_str()))
    });
    let mut tags: Vec<_> = of_event.take(capacity_for_tags(&event.attributes)).collect();
    let is_cached = |(key, value): &(TagKey, &str)| {
        cache.tags.get(&(project, TagHash::of(*key, value)), now).is_some()
    };
    let unknown: Vec<_> = tags.iter().filter(|tag| !is_cached(tag)).copied().collect();
    let registered = store.registered_tags(project, &unknown, now).await?;
    for (unknown, is_registered) in unknown.into_iter().zip(registered) {
        let (key, value) = unknown;
        let is_registered = is_registered
            || cache.full_tags.get(&(project, key), now).is_none()
                && store.register_tag(project, key, value, now).await?;
        let value = if is_registered { value } else { OTHER_VALUE };
        if !is_registered {
            if cache.full_tags.get(&(project, key), now).is_none() {
                cache.full_tags.insert((project, key), (), now);
            }
            if !is_cached(&(key, OTHER_VALUE)) {
                store.register_tag(project, key, OTHER_VALUE, now).await?;
            }
            tags.iter_mut().filter(|(of_event, _)| *of_event == key).for_each(|tag| tag.1 = value);
        }
        cache.tags.insert((project, TagHash::of(key, value)), (), now);
    }
    let values = tags.into_iter().map(|(key, value)| (key, value.to_owned())).collect();
    Ok(EventTags { values, others })
}

/// Spreads the rows of a project over more partitions, since `shards` of them are throttled.
pub async fn add_log_shards(app: &App, project: ProjectId, shards: u8) -> Result<u8, StoreError> {
    let shards = ErrorStore::new(&app.store).add_log_shards(project, shards).await?;
    let (cache, now) = (app.cache::<DeliveryCache>(), app.clock.now());
    if let Some(log) = cache.logs.get(&project, now) {
        cache.logs.insert(project, OpenLog { shards, ..log }, now);
    }
    Ok(shards)
}

/// Stores an event, counts it once, and updates its error. This can be interrupted at any point: a
/// counted event has its payload and its error. The next event, or packing of its row, repairs a
/// missing update of the error.
pub(crate) async fn store_event(
    app: &App,
    access: &IngestAccess,
    event_id: EventId,
    mut event: NormalizedEvent,
    received_at: Timestamp,
    draw: u32,
) -> Result<(), Problem> {
    let project_id = access.project;
    let kind = event.description.clone();
    let release = event.attributes.get(Attribute::Release);
    let (release_seen, (mut shards, tags), mut found, ()) = tokio::try_join!(
        see_release(app, project_id, release),
        open_log_for(app, project_id, &event, draw),
        find_error_of(app, access, kind.clone(), CacheValidity::Usable),
        ErrorStore::new(&app.store).put_payload(project_id, event_id, &event.payload, received_at)
    )?;
    for (key, value) in tags.values {
        event.attributes.set_tag(key, value);
    }
    event.attributes.set_other_tags(tags.others);
    let mut row = EventRow {
        occurred_at: event.occurred_at,
        fingerprint: kind.fingerprint,
        attributes: event.attributes,
    };
    for _ in 0..MAX_ATTEMPTS {
        row.fingerprint = found.description.fingerprint;
        // Each attempt has its own start time, so that rows are in the order of the log, to within
        // seconds.
        let now = app.clock.now();
        let counting = ErrorStore::new(&app.store)
            .count_event(project_id, event_id, &row, &found.error, shards, now)
            .await?;
        let (description, occurred_at, counted_at) = match counting {
            CountOutcome::Counted if let ErrorOfEvent::New(new) = &found.error => {
                let cache = app.cache::<DeliveryCache>();
                cache.errors.insert((project_id, row.fingerprint), new.id, app.clock.now());
                return Ok(());
            }
            CountOutcome::Counted => (&found.description, row.occurred_at, now),
            // The first delivery determines the error and the time of the event.
            CountOutcome::Duplicate { fingerprint, occurred_at, received_at } => {
                let descriptions = [&kind, &found.description];
                let known = descriptions.into_iter().find(|kind| kind.fingerprint == fingerprint);
                let Some(description) = known else { return Ok(()) };
                (description, occurred_at, received_at)
            }
            // The packer updates the error if the first delivery did not.
            CountOutcome::UnreadableDuplicate => return Ok(()),
            CountOutcome::ErrorExists => {
                found = find_error_of(app, access, kind.clone(), CacheValidity::Outdated).await?;
                continue;
            }
            CountOutcome::Throttled => {
                shards = add_log_shards(app, project_id, shards).await?;
                continue;
            }
        };
        let times = (occurred_at, counted_at, release_seen);
        match see_error(app, project_id, description, times).await {
            Ok(true) => {}
            // The event was deleted with its error. A second delivery must not restore it.
            Ok(false) => ErrorStore::new(&app.store).delete_payload(project_id, event_id).await?,
            // The event counts. The next event or the packer updates the error.
            Err(failure) if failure.may_pass() => {
                tracing::warn!(cause = %failure, "an error is not yet updated for an event");
            }
            Err(failure) => return Err(failure.into()),
        }
        return Ok(());
    }
    Err(Problem::overloaded(SECONDS_TO_WAIT))
}

/// Registers the release of an event, with its automatic markers. Returns when it was first seen.
/// `None` without a release, or if the project has no capacity for it today.
///
/// SDKs drop events of failed deliveries, so a transient failure is only logged: the release is
/// registered with its next event.
async fn see_release(
    app: &App,
    project: ProjectId,
    release: Option<&str>,
) -> Result<Option<Timestamp>, StoreError> {
    let Some(release) = release else { return Ok(None) };
    let seen = find_or_register_release(app, project, release).await;
    seen.or_else(|failure| {
        if !failure.may_pass() {
            return Err(failure);
        }
        tracing::warn!(cause = %failure, "a release is not yet registered");
        Ok(None)
    })
}

async fn find_or_register_release(
    app: &App,
    project: ProjectId,
    release: &str,
) -> Result<Option<Timestamp>, StoreError> {
    let now = app.clock.now();
    let cache = app.cache::<DeliveryCache>();
    let cached = (project, Box::from(release));
    if let Some(seen) = cache.releases.get(&cached, now) {
        return Ok(Some(seen));
    }
    if cache.full_of_releases.holds(&project, now) {
        return Ok(None);
    }
    let marker = EventMarker::of_release(project, release, now);
    let (errors, markers) = (ErrorStore::new(&app.store), MarkerStore::new(&app.store));
    let add = || markers.automatic_event(project, MarkerSource::Releases, &marker, now);
    let seen = errors.see_release(project, release, Registrar::Event, add, now).await?;
    match seen {
        Some(seen) => cache.releases.insert(cached, seen, now),
        None => cache.full_of_releases.insert(project, (), now),
    }
    Ok(seen)
}

/// The error under which an event counts: that of its fingerprint, or the overflow error.
#[derive(Debug, Clone)]
struct FoundError {
    /// The error's description.
    description: ErrorDescription,
    /// The error, which is perhaps not stored yet.
    error: ErrorOfEvent,
}

/// Returns the error under which a stored event counts.
pub(crate) async fn error_of_fingerprint(
    app: &App,
    access: &IngestAccess,
    fingerprint: Fingerprint,
) -> Result<Option<ErrorId>, StoreError> {
    let project = access.project;
    let found = find_fingerprint(app, project, fingerprint, CacheValidity::Usable).await?;
    if found.error.is_some() {
        return Ok(found.error);
    }
    let overflow = ErrorDescription::of_overflow(&error_limits(app, access)).fingerprint;
    Ok(find_fingerprint(app, project, overflow, CacheValidity::Usable).await?.error)
}

/// The validity of a cached error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CacheValidity {
    /// The cached error can be used.
    Usable,
    /// The cached error turned out to be wrong.
    Outdated,
}

/// Returns the error of an event with this description. For the first event of a fingerprint,
/// returns the error to create.
async fn find_error_of(
    app: &App,
    access: &IngestAccess,
    description: ErrorDescription,
    validity: CacheValidity,
) -> Result<FoundError, StoreError> {
    let project = access.project;
    let entry = find_fingerprint(app, project, description.fingerprint, validity).await?;
    if entry.error.is_some() || reserve_error_capacity(app, access).await? {
        let error = error_of_event(app, &description, &entry);
        return Ok(FoundError { description, error });
    }
    let description = ErrorDescription::of_overflow(&error_limits(app, access));
    let entry = find_fingerprint(app, project, description.fingerprint, validity).await?;
    let error = error_of_event(app, &description, &entry);
    Ok(FoundError { description, error })
}

async fn find_fingerprint(
    app: &App,
    project: ProjectId,
    fingerprint: Fingerprint,
    validity: CacheValidity,
) -> Result<FingerprintEntry, StoreError> {
    let now = app.clock.now();
    let cache = app.cache::<DeliveryCache>();
    let known = cache.errors.get(&(project, fingerprint), now);
    if let (Some(known), CacheValidity::Usable) = (known, validity) {
        return Ok(FingerprintEntry { error: Some(known), deleted_at: None });
    }
    let entry = ErrorStore::new(&app.store).find_fingerprint(project, fingerprint, now).await?;
    if let Some(known) = entry.error {
        cache.errors.insert((project, fingerprint), known, now);
    }
    Ok(entry)
}

/// Reserves capacity for one more error of a project, if any is left.
async fn reserve_error_capacity(app: &App, access: &IngestAccess) -> Result<bool, StoreError> {
    let (project, now) = (access.project, app.clock.now());
    let cache = app.cache::<DeliveryCache>();
    if cache.full.get(&project, now).is_some() {
        return Ok(false);
    }
    let is_reserved =
        ErrorStore::new(&app.store).reserve_error(project, &error_limits(app, access), now).await?;
    if !is_reserved {
        cache.full.insert(project, (), now);
        log_bound_met(ERRORS_AT_CAP, &format!("errors#{project}"), now);
    }
    Ok(is_reserved)
}

/// Returns the limits of a project's errors.
fn error_limits(app: &App, access: &IngestAccess) -> ErrorLimits {
    let (limits, default) = (limits_of(app, access), ErrorLimits::default());
    let or = |limit, default| limits.most(limit).map_or(default, NonZeroU32::get);
    ErrorLimits {
        errors: or(Limit::ErrorsPerProject, default.errors),
        new_errors_per_hour: or(Limit::NewErrorsPerHour, default.new_errors_per_hour),
    }
}

fn error_of_event(
    app: &App,
    description: &ErrorDescription,
    entry: &FingerprintEntry,
) -> ErrorOfEvent {
    if let Some(known) = entry.error {
        return ErrorOfEvent::Known(known);
    }
    let id = ErrorId::new(app.ids.new_uuid(app.clock.now()));
    let (description, events_since) = (description.clone(), entry.deleted_at);
    ErrorOfEvent::New(Box::new(NewError { id, description, events_since }))
}

/// Updates the error of a counted event. Returns `false` if the event was deleted with its error.
async fn see_error(
    app: &App,
    project: ProjectId,
    description: &ErrorDescription,
    (occurred_at, received_at, release_seen): (Timestamp, Timestamp, Option<Timestamp>),
) -> Result<bool, StoreError> {
    let now = app.clock.now();
    let cache = app.cache::<DeliveryCache>();
    let fingerprint = description.fingerprint;
    let known = cache.errors.get(&(project, fingerprint), now);
    let new = ErrorId::new(app.ids.new_uuid(now));
    let seen = SeenEvent { occurred_at, received_at, release_seen, is_packed: false, now };
    let seen =
        ErrorStore::new(&app.store).see_error(project, known, description, &seen, new).await?;
    if let Some(known) = seen {
        cache.errors.insert((project, fingerprint), known, now);
    }
    Ok(seen.is_some())
}
