//! Error spikes, in projects with recent events.

use std::time::Duration;

use futures_util::future::join_all;

use errors::spike::Hour;
use errors::store::ErrorStore;
use notifications::store::{NotificationStore, Pass};
use shared::app::App;
use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use crate::{CONCURRENT_PROJECTS, JobContext, PROJECT_TIMEOUT, check_project};

/// Name of the pass.
const SPIKES: &str = "spikes";
/// Time for which the previous hour is checked. Its last minutes are not checked yet, and events
/// can arrive late.
const LATE_EVENTS_PERIOD: Duration = Duration::from_mins(20);
/// Minimum hours between two announcements of an error.
const MIN_INTERVAL: u64 = 1;

/// Checks all projects in the packing queue. It contains every project with events in the last day.
/// The next invocation resumes at the first unchecked project.
pub(crate) async fn announce(job: &mut JobContext<'_>) -> Result<(), StoreError> {
    let (app, now) = (job.app, job.app.clock.now());
    let queue = ErrorStore::new(&app.store).list_packing_queue().await?;
    let mut projects: Vec<ProjectId> = queue.iter().map(|entry| entry.project).collect();
    if projects.is_empty() {
        return Ok(());
    }
    projects.sort_unstable();
    let notifications = NotificationStore::new(&app.store);
    let left_at = notifications.find_pass(SPIKES).await?.and_then(|pass| pass.after);
    let left_at = left_at.as_deref().and_then(ProjectId::parse);
    let first = left_at.map_or(0, |after| projects.partition_point(|project| *project <= after));
    projects.rotate_left(first);

    let mut last_visited = None;
    let mut is_cut = false;
    for some in projects.chunks(CONCURRENT_PROJECTS.into()) {
        if job.deadline.has_passed() {
            is_cut = true;
            break;
        }
        let checked = some
            .iter()
            .map(|project| check_project(PROJECT_TIMEOUT, *project, check(app, *project, now)));
        for failure in join_all(checked).await.into_iter().filter_map(Result::err) {
            job.note_failure(failure);
        }
        last_visited = some.last();
    }
    let after = if is_cut { last_visited.map(ToString::to_string) } else { None };
    if after.is_some() || left_at.is_some() {
        notifications.save_pass(SPIKES, &Pass { round: 0, after }).await?;
    }
    Ok(())
}

async fn check(app: &App, project: ProjectId, now: Timestamp) -> Result<(), StoreError> {
    let hour = Hour::of(now);
    let late = (now < hour.start().plus(LATE_EVENTS_PERIOD)).then(|| hour.minus(1));
    for hour in late.into_iter().chain([hour]) {
        for spike in ErrorStore::new(&app.store).find_spikes(project, hour, now).await? {
            NotificationStore::new(&app.store).announce_once(&[spike], MIN_INTERVAL).await?;
        }
    }
    Ok(())
}
