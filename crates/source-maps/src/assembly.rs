//! Assembles bundles from their chunks: verifies them, prepares all maps, and publishes them. A
//! bundle with one bad map is rejected as a whole.

use std::collections::BTreeSet;
use std::time::Duration;

use shared::app::App;
use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;

use crate::bundle::{Bundle, Checksum, PreparedMap};
use crate::store::{BundleState, Chunks, SourceMapStore, StoredMap, Upload};
use crate::{BundleFault, FaultKind, MAX_PROJECT_BYTES, MapKey};

/// Maximum bytes of maps, before compression, that one request assembles. It prepares about 30 MB
/// per second.
pub const MAX_REQUEST_BYTES: u64 = 64 << 20;

/// The outcome of an assembly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All maps are published.
    Assembled,
    /// The bundle was removed in the meantime.
    Removed,
    /// The bundle is rejected.
    Rejected(BundleFault),
}

/// Joins the chunks of a bundle and opens it. Fails if a chunk is missing, or if the bundle differs
/// from its checksum.
pub fn open(upload: &Upload, chunks: &Chunks) -> Result<Bundle, BundleFault> {
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
    Bundle::open(bundle, upload.release.as_deref(), upload.dist.as_deref())
}

/// Assembles an opened bundle in several projects: in all or none of them, unless a concurrent
/// request interferes. A rejected bundle is noted in each project. `most` is the time that the
/// invocation has.
pub async fn assemble(
    app: &App,
    projects: &[ProjectId],
    upload: &Upload,
    opened: Result<Bundle, BundleFault>,
    most: Duration,
) -> Result<Outcome, StoreError> {
    let keys = opened.as_ref().map(Bundle::map_keys).unwrap_or_default();
    let maps = match opened.and_then(Bundle::prepare) {
        Ok(maps) => maps,
        Err(fault) => return reject(app, projects, upload, &keys, fault).await,
    };
    for project in projects {
        if let Some(fault) = lack_of_capacity(app, *project, &maps).await? {
            return reject(app, projects, upload, &keys, fault).await;
        }
    }
    for project in projects {
        if !publish(app, *project, upload, &maps, most).await? {
            return Ok(Outcome::Removed);
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

/// Returns the fault if a project has no capacity for some maps.
async fn lack_of_capacity(
    app: &App,
    project: ProjectId,
    maps: &[PreparedMap],
) -> Result<Option<BundleFault>, StoreError> {
    let new: u64 = maps.iter().map(|map| map.pieces.bytes() * map.map.keys.len() as u64).sum();
    let stored = SourceMapStore::new(&app.store).stored_bytes(project).await?;
    if stored.saturating_add(new) <= MAX_PROJECT_BYTES {
        return Ok(None);
    }
    let detail = format!(
        "the project's source maps have {stored} bytes, and these {new}, but the limit is \
         {MAX_PROJECT_BYTES}; delete source maps of old releases with delete-source-maps"
    );
    Ok(Some(BundleFault { kind: FaultKind::QuotaReached, detail }))
}

/// Stores and publishes prepared maps in a project. Returns `false` if the bundle was removed. A
/// concurrent assembly of the bundle publishes the same maps.
async fn publish(
    app: &App,
    project: ProjectId,
    upload: &Upload,
    maps: &[PreparedMap],
    most: Duration,
) -> Result<bool, StoreError> {
    let (store, began) = (SourceMapStore::new(&app.store), app.clock.now());
    store.begin(project, upload, began.plus(most)).await?;
    let store_maps = async {
        let mut stored = Vec::new();
        for prepared in maps {
            for key in &prepared.map.keys {
                let map = StoredMap { map_id: app.ids.new_uuid(began), key, prepared };
                store.put_pieces(project, map, began).await?;
                stored.push(map);
            }
        }
        store.publish(project, upload, &stored, app.clock.now()).await
    };
    let published = store_maps.await;
    match published {
        Ok(true) => store.end(project, upload, BundleState::Assembled).await?,
        Ok(false) => {}
        // Another request can retry immediately. If this fails too, the time ends anyway.
        Err(_) => drop(store.end(project, upload, BundleState::Assembling(began)).await),
    }
    published
}
