//! Assembles bundles that are too large for one request, and removes maps that have expired. A
//! schedule runs this job every minute.
//!
//! The job can be killed at any point, and can run twice concurrently: a bundle has the time until
//! which an invocation assembles it, and each assembly or removal can be repeated.

use std::time::Duration;

use shared::app::{App, Deadline, Job};
use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;
use source_maps::BundleFault;
use source_maps::assembly;
use source_maps::bundle::Checksum;
use source_maps::store::{BundleState, ProjectMaps, SourceMapStore};

/// The job of this function.
pub static JOB: Job =
    Job { name: env!("CARGO_PKG_NAME"), run: |app, deadline| Box::pin(run(app, deadline)) };

/// Longest time of one invocation.
const LONGEST: Duration = Duration::from_mins(5);
/// Time after which a bundle that keeps failing is given up.
const RETRY_PERIOD: Duration = Duration::from_mins(30);

/// Assembles all queued bundles, and then removes due maps, until the time is up.
async fn run(app: &App, deadline: Deadline) -> Result<(), StoreError> {
    let queued = SourceMapStore::new(&app.store).list_queued().await?;
    let mut outcome = Ok(());
    for (project, checksum, at) in queued {
        if deadline.has_passed() {
            return outcome;
        }
        // A failed bundle must not hold up the others.
        outcome = outcome.and(assemble(app, project, &checksum, at).await);
    }
    outcome.and(remove_due(app, deadline).await)
}

/// Assembles a bundle, and removes it from the queue.
async fn assemble(
    app: &App,
    project: ProjectId,
    checksum: &Checksum,
    queued_at: Timestamp,
) -> Result<(), StoreError> {
    let store = ProjectMaps::new(&app.store, project);
    let bundle = store.find_bundle(checksum).await?;
    let upload = match bundle.map(|it| (it.state, it.upload)) {
        Some((BundleState::Assembling(until), _)) if until > app.clock.now() => return Ok(()),
        Some((BundleState::Queued | BundleState::Assembling(_), upload)) => upload,
        _ => return store.dequeue(checksum).await,
    };
    let chunks = SourceMapStore::new(&app.store).find_chunks(&upload, app.clock.now()).await?;
    let expired = "chunks of the bundle have expired; upload it again";
    let chunks = chunks.map_err(|_| BundleFault::Invalid(expired.to_owned()));
    let opened = chunks.and_then(|bundle| assembly::open(&upload, bundle));
    match assembly::assemble(app, &[store], &upload, opened, LONGEST).await {
        Ok(Ok(true) | Err(_)) => store.dequeue(checksum).await,
        Ok(Ok(false)) => Ok(()),
        Err(failure) if queued_at.plus(RETRY_PERIOD) < app.clock.now() => {
            let detail = "the service failed to assemble the bundle; upload it again";
            store.fail(&upload, detail, &[].into(), app.clock.now()).await?;
            store.dequeue(checksum).await?;
            Err(failure)
        }
        Err(failure) => Err(failure),
    }
}

/// Removes maps that have expired, and pieces that no map names.
async fn remove_due(app: &App, deadline: Deadline) -> Result<(), StoreError> {
    let store = SourceMapStore::new(&app.store);
    loop {
        let now = app.clock.now();
        let due = store.list_due(now).await?;
        if due.is_empty() {
            return Ok(());
        }
        for entry in &due {
            if deadline.has_passed() {
                return Ok(());
            }
            ProjectMaps::new(&app.store, entry.project).settle(entry, now).await?;
        }
    }
}
