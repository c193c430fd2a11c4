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
use source_maps::assembly::{self, Outcome};
use source_maps::bundle::Checksum;
use source_maps::store::{BundleState, SourceMapStore};

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
    let store = SourceMapStore::new(&app.store);
    let bundle = store.find_bundle(project, checksum).await?;
    let upload = match bundle.map(|it| (it.state, it.upload)) {
        Some((BundleState::Assembling(until), _)) if until > app.clock.now() => return Ok(()),
        Some((BundleState::Queued | BundleState::Assembling(_), upload)) => upload,
        _ => return store.dequeue(project, checksum).await,
    };
    let chunks = store.find_chunks(&upload, app.clock.now()).await?;
    let opened = assembly::open(&upload, &chunks);
    drop(chunks);
    match assembly::assemble(app, &[project], &upload, opened, LONGEST).await {
        Ok(Outcome::Assembled | Outcome::Rejected(_)) => store.dequeue(project, checksum).await,
        Ok(Outcome::Removed) => Ok(()),
        Err(failure) if queued_at.plus(RETRY_PERIOD) < app.clock.now() => {
            let detail = "the service failed to assemble the bundle; upload it again";
            store.fail(project, &upload, detail, &[].into(), app.clock.now()).await?;
            store.dequeue(project, checksum).await?;
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
            store.settle(entry, now).await?;
        }
    }
}
