//! Assembles bundles from their chunks: verifies them, prepares all maps, and publishes them. A
//! bundle with one bad map is rejected as a whole.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use shared::app::App;
use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;

use crate::bundle::{Bundle, Checksum, PreparedMap};
use crate::store::{SourceMapStore, StoredMap, Upload};
use crate::{BundleFault, FaultKind, MAX_PROJECT_BYTES};

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

/// Joins the chunks of a bundle. Returns `None` if one is missing, and fails if the bundle differs
/// from its checksum.
#[allow(clippy::implicit_hasher)] // The store reads chunks into this type.
pub fn join(
    upload: &Upload,
    mut chunks: HashMap<Checksum, Vec<u8>>,
) -> Result<Option<Vec<u8>>, BundleFault> {
    let mut bundle = Vec::new();
    let mut last_use: HashMap<Checksum, usize> = HashMap::new();
    for (index, checksum) in upload.chunks.iter().enumerate() {
        last_use.insert(*checksum, index);
    }
    for (index, checksum) in upload.chunks.iter().enumerate() {
        let Some(chunk) = chunks.get(checksum) else { return Ok(None) };
        bundle.extend_from_slice(chunk);
        if last_use.get(checksum) == Some(&index) {
            chunks.remove(checksum);
        }
    }
    if Checksum::of(&bundle) != upload.checksum {
        return Err(BundleFault::invalid(
            "the chunks do not add up to a bundle with its checksum; upload it again",
        ));
    }
    Ok(Some(bundle))
}

/// Opens a joined bundle, with the release and distribution of its upload.
pub fn open<'b>(upload: &Upload, bundle: &'b [u8]) -> Result<Bundle<'b>, BundleFault> {
    Bundle::open(bundle, upload.release.as_deref(), upload.dist.as_deref())
}

/// Assembles a bundle in several projects: in all or none of them, unless a concurrent request
/// interferes. A rejected bundle is noted in each project.
pub async fn assemble(
    app: &App,
    projects: &[ProjectId],
    upload: &Upload,
    most: Duration,
) -> Result<Outcome, StoreError> {
    let store = SourceMapStore::new(&app.store);
    let chunks = store.find_chunks(&upload.organization, &upload.chunks, app.clock.now()).await?;
    let bundle = match join(upload, chunks) {
        Ok(Some(bundle)) => bundle,
        Ok(None) => {
            let detail = "chunks of the bundle have expired; upload it again";
            return reject(app, projects, upload, &BTreeSet::new(), BundleFault::invalid(detail))
                .await;
        }
        Err(fault) => return reject(app, projects, upload, &BTreeSet::new(), fault).await,
    };
    assemble_joined(app, projects, upload, &bundle, most).await
}

/// Assembles a bundle that is already joined.
pub async fn assemble_joined(
    app: &App,
    projects: &[ProjectId],
    upload: &Upload,
    bundle: &[u8],
    most: Duration,
) -> Result<Outcome, StoreError> {
    let opened = match open(upload, bundle) {
        Ok(opened) => opened,
        Err(fault) => return reject(app, projects, upload, &BTreeSet::new(), fault).await,
    };
    let keys = map_keys(&opened);
    let maps = match opened.prepare() {
        Ok(maps) => maps,
        Err(fault) => return reject(app, projects, upload, &keys, fault).await,
    };
    for project in projects {
        if let Err(fault) = check_capacity(app, *project, &maps).await? {
            return reject(app, projects, upload, &keys, fault).await;
        }
    }
    for project in projects {
        let outcome = publish(app, *project, upload, &maps, most).await?;
        if outcome != Outcome::Assembled {
            return Ok(outcome);
        }
    }
    Ok(Outcome::Assembled)
}

async fn reject(
    app: &App,
    projects: &[ProjectId],
    upload: &Upload,
    map_keys: &BTreeSet<String>,
    fault: BundleFault,
) -> Result<Outcome, StoreError> {
    let store = SourceMapStore::new(&app.store);
    for project in projects {
        store.fail(*project, upload, &fault.detail, map_keys, app.clock.now()).await?;
    }
    Ok(Outcome::Rejected(fault))
}

/// Returns the stored form of the keys of a bundle's maps.
fn map_keys(bundle: &Bundle<'_>) -> BTreeSet<String> {
    bundle.maps().iter().flat_map(|map| &map.keys).map(ToString::to_string).collect()
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

/// Stores and publishes prepared maps in a project. `most` is the time that the invocation has.
async fn publish(
    app: &App,
    project: ProjectId,
    upload: &Upload,
    maps: &[PreparedMap],
    most: Duration,
) -> Result<Outcome, StoreError> {
    let store = SourceMapStore::new(&app.store);
    let now = app.clock.now();
    let Some(lease) = store.lease(project, upload, app.ids.new_uuid(now), most, now).await? else {
        return Ok(Outcome::Busy);
    };
    let stored = store_under(app, project, maps, &lease, now).await;
    match stored {
        Ok(true) => {
            store.finish(project, upload, &lease).await?;
            Ok(Outcome::Assembled)
        }
        Ok(false) => Ok(Outcome::Busy),
        Err(failure) => {
            // Another request can retry immediately. If this fails too, the lease ends anyway.
            let _ = store.release(project, upload, &lease).await;
            Err(failure)
        }
    }
}

async fn store_under(
    app: &App,
    project: ProjectId,
    maps: &[PreparedMap],
    lease: &crate::store::Lease,
    began: shared::timestamp::Timestamp,
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
                tables: pieces.tables.len(),
                texts: pieces.texts.len(),
            };
            store.put_pieces(project, &one, pieces, began).await?;
            stored.push(one);
        }
    }
    store.publish(project, lease, &stored, app.clock.now()).await
}
