//! Assembles bundles from their chunks: verifies them, prepares all maps, and publishes them. A
//! bundle with one bad map is rejected as a whole.

use std::time::Duration;

use shared::app::App;
use shared::dynamodb::StoreError;

use crate::bundle::{Bundle, Checksum, PreparedMap};
use crate::store::{BundleState, ProjectMaps, StoredMap, Upload};
use crate::{BundleFault, MAX_PROJECT_BYTES, UPLOAD_AGAIN, invalid};

/// Maximum bytes of maps, before compression, that one request assembles. It prepares about 30 MB
/// per second.
pub const MAX_REQUEST_BYTES: u64 = 64 << 20;

/// Opens a bundle that was joined from its chunks. Fails if it differs from its checksum.
pub fn open(upload: &Upload, bundle: Vec<u8>) -> Result<Bundle, BundleFault> {
    if Checksum::of(&bundle) != upload.checksum {
        let problem = "the chunks do not add up to a bundle with its checksum";
        return Err(invalid(problem, UPLOAD_AGAIN));
    }
    Bundle::open(bundle, upload.release.as_deref(), upload.dist.as_deref())
}

/// Assembles an opened bundle in several projects: in all or none of them, unless a concurrent
/// request interferes. Returns `false` if the bundle was removed in the meantime, or the fault of a
/// rejected bundle, which is noted in each project. `most` is the time that the invocation has.
pub async fn assemble(
    app: &App,
    projects: &[ProjectMaps<'_>],
    upload: &Upload,
    opened: Result<Bundle, BundleFault>,
    most: Duration,
) -> Result<Result<bool, BundleFault>, StoreError> {
    let keys = opened.as_ref().map(Bundle::map_keys).unwrap_or_default();
    let mut prepared = opened.and_then(Bundle::prepare);
    for project in projects {
        if let Ok(maps) = &prepared
            && let Some(fault) = find_capacity_fault(*project, maps).await?
        {
            prepared = Err(fault);
        }
    }
    let maps = match prepared {
        Ok(maps) => maps,
        Err(fault) => {
            for project in projects {
                project.fail(upload, &fault.to_string(), &keys, app.clock.now()).await?;
            }
            return Ok(Err(fault));
        }
    };
    for project in projects {
        if !publish(app, *project, upload, &maps, most).await? {
            return Ok(Ok(false));
        }
    }
    Ok(Ok(true))
}

/// Returns the fault of a project without capacity for some maps.
async fn find_capacity_fault(
    project: ProjectMaps<'_>,
    maps: &[PreparedMap],
) -> Result<Option<BundleFault>, StoreError> {
    let new: u64 = maps.iter().map(|map| map.pieces.bytes() * map.map.keys.len() as u64).sum();
    let stored = project.stored_bytes().await?;
    let is_full = stored.saturating_add(new) > MAX_PROJECT_BYTES;
    Ok(is_full.then(|| {
        BundleFault::QuotaReached(format!(
            "the project's source maps have {stored} bytes, and these {new}, but the limit is \
             {MAX_PROJECT_BYTES}; delete source maps of old releases with delete-source-maps"
        ))
    }))
}

/// Stores and publishes prepared maps in a project. Returns `false` if the bundle was removed. A
/// concurrent assembly of the bundle publishes the same maps.
async fn publish(
    app: &App,
    project: ProjectMaps<'_>,
    upload: &Upload,
    maps: &[PreparedMap],
    most: Duration,
) -> Result<bool, StoreError> {
    let began = app.clock.now();
    project.begin(upload, began.plus(most)).await?;
    let store_maps = async {
        let mut stored = Vec::new();
        for prepared in maps {
            for key in &prepared.map.keys {
                let map = StoredMap { map_id: app.ids.new_uuid(began), key, prepared };
                project.put_pieces(map, began).await?;
                stored.push(map);
            }
        }
        project.publish(upload, &stored, app.clock.now()).await
    };
    let published = store_maps.await;
    match published {
        Ok(true) => project.end(upload, BundleState::Assembled).await?,
        Ok(false) => {}
        // Another request can retry immediately. If this fails too, the time ends anyway.
        Err(_) => drop(project.end(upload, BundleState::Assembling(began)).await),
    }
    published
}
