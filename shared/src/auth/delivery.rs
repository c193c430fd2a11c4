//! The project that an SDK's delivery is for (`contract.md` §6).

use crate::app::App;
use crate::errors::ingestion::IngestionFault;
use crate::http::{Incoming, Problem};
use crate::models::dsn::{IngestId, PublicKey};
use crate::models::project::ProjectId;

/// The project of an ingest id, if the key is its own. Fails with 403 otherwise; whether the project
/// or the key is unknown is not told.
pub async fn find_ingest_project(
    app: &App,
    incoming: &Incoming,
    ingest_id: Option<IngestId>,
    key: PublicKey,
) -> Result<ProjectId, Problem> {
    let refused = || Problem::from(IngestionFault::Unauthorized);
    let ingest_id = ingest_id.ok_or_else(refused)?;
    let now = app.clock.now();
    // A key that is not the remembered one may be new.
    let remembered = app.access.recall_ingest(ingest_id, now);
    let remembered = remembered.filter(|access| access.public_key == key);
    let access = if let Some(access) = remembered {
        access
    } else {
        let access = app.store.find_ingest_access(ingest_id).await?.ok_or_else(refused)?;
        app.access.remember_ingest(ingest_id, &access, now);
        access
    };
    if access.public_key != key {
        return Err(refused());
    }
    let _ = incoming.project_id.set(access.project);
    Ok(access.project)
}
