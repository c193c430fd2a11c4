//! Assembles bundles from their chunks: verifies them, prepares all maps, and publishes them. A
//! bundle with one bad map is rejected as a whole.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use shared::app::App;
use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;
use uuid::Uuid;

use crate::bundle::{Bundle, Checksum, PreparedMap};
use crate::store::{BundleState, SourceMapStore, StoredMap, Upload};
use crate::{BundleFault, FaultKind, MAX_PROJECT_BYTES, MapKey};

/// Maximum bytes of maps, before compression, that one request assembles. It prepares about 30 MB
/// per second.
pub const MAX_REQUEST_BYTES: u64 = 64 << 20;

/// The outcome of an assembly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All maps are published.
    Assembled,
    /// Another invocation assembles the bundle, or it was removed.
    Busy,
    /// The bundle is rejected.
    Rejected(BundleFault),
}

/// Joins the chunks of a bundle. Fails if one is missing, or if the bundle differs from its
/// checksum.
#[allow(clippy::implicit_hasher)] // The store reads chunks into this type.
pub fn join(upload: &Upload, chunks: &HashMap<Checksum, Vec<u8>>) -> Result<Vec<u8>, BundleFault> {
    let mut bundle = Vec::new();
    for checksum in &upload.chunks {
        let Some(chunk) = chunks.get(checksum) else {
            return Err(BundleFault::invalid("chunks of the bundle have expired; upload it again"));
        };
        bundle.extend_from_slice(chunk);
    }
    if Checksum::of(&bundle) != upload.checksum {
        return Err(BundleFault::invalid(
            "the chunks do not add up to a bundle with its checksum; upload it again",
        ));
    }
    Ok(bundle)
}

/// Opens a joined bundle, with the release and distribution of its upload.
pub fn open<'b>(upload: &Upload, bundle: &'b [u8]) -> Result<Bundle<'b>, BundleFault> {
    Bundle::open(bundle, upload.release.as_deref(), upload.dist.as_deref())
}

/// Assembles an opened bundle in several projects: in all or none of them, unless a concurrent
/// request interferes. A rejected bundle is noted in each project. `most` is the time that the
/// invocation has.
pub async fn assemble(
    app: &App,
    projects: &[ProjectId],
    upload: &Upload,
    opened: Result<Bundle<'_>, BundleFault>,
    most: Duration,
) -> Result<Outcome, StoreError> {
    let keys = opened.as_ref().map(Bundle::map_keys).unwrap_or_default();
    let maps = match opened.and_then(Bundle::prepare) {
        Ok(maps) => maps,
        Err(fault) => return reject(app, projects, upload, &keys, fault).await,
    };
    for project in projects {
        if let Err(fault) = check_capacity(app, *project, &maps).await? {
            return reject(app, projects, upload, &keys, fault).await;
        }
    }
    for project in projects {
        if !publish(app, *project, upload, &maps, most).await? {
            return Ok(Outcome::Busy);
        }
    }
    Ok(Outcome::Assembled)
}

async fn reject(
    app: &App,
    projects: &[ProjectId],
    upload: &Upload,
    map_keys: &BTreeSet<MapKey>,
    fault: BundleFault,
) -> Result<Outcome, StoreError> {
    let store = SourceMapStore::new(&app.store);
    for project in projects {
        store.fail(*project, upload, &fault.detail, map_keys, app.clock.now()).await?;
    }
    Ok(Outcome::Rejected(fault))
}

/// Fails if a project has no capacity for some maps.
async fn check_capacity(
    app: &App,
    project: ProjectId,
    maps: &[PreparedMap],
) -> Result<Result<(), BundleFault>, StoreError> {
    let new: u64 = maps.iter().map(|map| map.pieces.bytes() * map.map.keys.len() as u64).sum();
    let stored = SourceMapStore::new(&app.store).stored_bytes(project).await?;
    if stored.saturating_add(new) <= MAX_PROJECT_BYTES {
        return Ok(Ok(()));
    }
    let detail = format!(
        "the project's source maps have {stored} bytes, and these {new}, but the limit is \
         {MAX_PROJECT_BYTES}; delete source maps of old releases with delete-source-maps"
    );
    Ok(Err(BundleFault { kind: FaultKind::QuotaReached, detail }))
}

/// Stores and publishes prepared maps in a project. Returns `false` if another invocation assembles
/// the bundle, or if it was removed.
async fn publish(
    app: &App,
    project: ProjectId,
    upload: &Upload,
    maps: &[PreparedMap],
    most: Duration,
) -> Result<bool, StoreError> {
    let (store, now) = (SourceMapStore::new(&app.store), app.clock.now());
    let lease = app.ids.new_uuid(now);
    if !store.lease(project, upload, lease, most, now).await? {
        return Ok(false);
    }
    let published = store_under(app, project, upload, lease, maps, now).await;
    match published {
        Ok(true) => store.end_lease(project, upload, lease, BundleState::Assembled).await?,
        Ok(false) => {}
        Err(_) => {
            // Another request can retry immediately. If this fails too, the lease ends anyway.
            let retried = BundleState::Assembling(now);
            let _ = store.end_lease(project, upload, lease, retried).await;
        }
    }
    published
}

async fn store_under(
    app: &App,
    project: ProjectId,
    upload: &Upload,
    lease: Uuid,
    maps: &[PreparedMap],
    began: Timestamp,
) -> Result<bool, StoreError> {
    let store = SourceMapStore::new(&app.store);
    let mut stored = Vec::new();
    for PreparedMap { map, pieces } in maps {
        for key in &map.keys {
            let one = StoredMap {
                map_id: app.ids.new_uuid(began),
                key: key.clone(),
                url: map.url.clone(),
                bytes: map.bytes,
                stored_bytes: pieces.bytes(),
                index: pieces.index.clone(),
            };
            store.put_pieces(project, &one, pieces, began).await?;
            stored.push(one);
        }
    }
    store.publish(project, upload, lease, &stored, app.clock.now()).await
}
