//! Removes the events of deleted collections. A schedule runs this job every five minutes.
//!
//! The job can be killed at any point, and can run twice concurrently. An unfinished purge job
//! stays queued, and the next invocation continues it.

use std::time::Duration;

use markers::PurgeJob;
use markers::store::MarkerStore;
use shared::app::{App, Deadline, Job};
use shared::dynamodb::StoreError;
use shared::telemetry::log_metric;
use shared::timestamp::Timestamp;

/// The job of this function.
pub static JOB: Job =
    Job { name: env!("CARGO_PKG_NAME"), run: |app, deadline| Box::pin(run(app, deadline)) };

/// Metric of the seconds since the oldest purge job was queued.
pub const OLDEST_JOB_AGE: &str = "OldestPurgeJobAge";

/// Number of events that are read at once: few enough that a lease outlives their deletion.
const EVENTS_AT_ONCE: i32 = 1_000;

/// Time after a collection's deletion from which an empty partition is trusted to stay empty. Every
/// write of an event requires that its collection exists, so no write should come late. If one
/// does, it comes while a request is still running.
const LATE_WRITERS: Duration = Duration::from_mins(1);

/// Works on all jobs, oldest first, until they are done or the time is up.
async fn run(app: &App, deadline: Deadline) -> Result<(), StoreError> {
    let jobs = MarkerStore::new(&app.store).list_purge_jobs().await?;
    let now = app.clock.now();
    #[allow(clippy::cast_precision_loss)] // An age in seconds is far below 2^53.
    log_metric(JOB.name, OLDEST_JOB_AGE, "Seconds", oldest_job_age(&jobs, now) as f64, now);

    let owner = app.ids.new_uuid(now).to_string();
    let mut outcome = Ok(());
    for job in jobs {
        if deadline.has_passed() {
            break;
        }
        // A failed job must not hold up the others.
        outcome = outcome.and(purge(app, job, &owner, deadline).await);
    }
    outcome
}

/// Returns the seconds since the oldest job was queued, or 0 if there is none.
pub fn oldest_job_age(jobs: &[PurgeJob], now: Timestamp) -> i64 {
    let ages = jobs.iter().map(|job| now.as_seconds().saturating_sub(job.deleted_at.as_seconds()));
    ages.fold(0, i64::max)
}

/// Removes a collection's events, and then the job.
async fn purge(
    app: &App,
    job: PurgeJob,
    owner: &str,
    deadline: Deadline,
) -> Result<(), StoreError> {
    let collection = job.collection;
    while MarkerStore::new(&app.store).lease_purge_job(collection, owner, app.clock.now()).await? {
        let began = app.clock.now();
        let events = MarkerStore::new(&app.store).event_keys(collection, EVENTS_AT_ONCE).await?;
        if !events.is_empty() && !deadline.has_passed() {
            MarkerStore::new(&app.store).delete_events(collection, &events).await?;
        } else if events.is_empty() && began >= job.deleted_at.plus(LATE_WRITERS) {
            return MarkerStore::new(&app.store).finish_purge_job(collection, owner).await;
        } else {
            return MarkerStore::new(&app.store).release_purge_job(collection, owner).await;
        }
    }
    // Another invocation has the lease.
    Ok(())
}
