//! Spikes of errors, in projects that got events lately.

use std::time::Duration;

use futures_util::future::join_all;

use errors::spike::Hour;
use errors::store::ErrorStore;
use notifications::store::{NotificationStore, Pass};
use shared::app::App;
use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use crate::{AT_ONCE, JobContext, step};

/// The name of the pass.
const SPIKES: &str = "spikes";
/// For how long an hour that is over is looked at: its last minutes came after the last look, and some of
/// their events still come.
const LATE: Duration = Duration::from_mins(20);
/// How often a spike is announced: each hour that begins one, once.
const REST: u64 = 1;

/// Looks at each project that is in the packing queue, which all are that got events in the last day. A run
/// that does not come to the end leaves the rest to the next one.
pub(crate) async fn announce(run: &mut JobContext<'_>) -> Result<(), StoreError> {
    let (app, now) = (run.app, run.app.clock.now());
    let queue = ErrorStore::new(&app.store).list_packing_queue().await?;
    let mut projects: Vec<ProjectId> = queue.iter().map(|entry| entry.project).collect();
    if projects.is_empty() {
        return Ok(());
    }
    projects.sort_unstable();
    let left_at =
        NotificationStore::new(&app.store).find_pass(SPIKES).await?.and_then(|pass| pass.after);
    let left_at = left_at.as_deref().and_then(ProjectId::parse);
    let first = left_at.map_or(0, |after| projects.partition_point(|project| *project <= after));
    projects.rotate_left(first);

    let mut last_visited = None;
    let mut is_cut = false;
    for some in projects.chunks(AT_ONCE.into()) {
        if run.deadline.has_passed() {
            is_cut = true;
            break;
        }
        let visits = some.iter().map(|project| step(*project, visit(app, *project, now)));
        for failure in join_all(visits).await.into_iter().filter_map(Result::err) {
            run.note_failure(failure.into());
        }
        last_visited = some.last();
    }
    let after = if is_cut { last_visited.map(ToString::to_string) } else { None };
    if after.is_some() || left_at.is_some() {
        NotificationStore::new(&app.store).save_pass(SPIKES, &Pass { round: 0, after }).await?;
    }
    Ok(())
}

async fn visit(app: &App, project: ProjectId, now: Timestamp) -> Result<(), StoreError> {
    let hour = Hour::of(now);
    let late = (now < hour.start().plus(LATE)).then(|| hour.minus(1));
    for hour in late.into_iter().chain([hour]) {
        for spike in ErrorStore::new(&app.store).find_spikes(project, hour, now).await? {
            NotificationStore::new(&app.store).announce_once(&[spike], REST).await?;
        }
    }
    Ok(())
}
