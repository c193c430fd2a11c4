//! Passes over all projects: daily for trending and unseen insights, weekly for digests.

use std::time::Duration;

use futures_util::future::join_all;

use errors::log::day::Day;
use notifications::store::{NotificationStore, Pass};
use shared::app::App;
use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use crate::digest::{self, Week};
use crate::{CONCURRENT_PROJECTS, JobContext, SkipReason, check_project, resolution, trends};

/// Period of the pass for trending insights.
const DAY: Duration = Duration::from_hours(24);

/// The check of a pass in each project.
#[derive(Debug, Clone, Copy)]
enum Check {
    /// Announces trending insights.
    Trends,
    /// Resolves insights without recent pain points.
    Resolution,
    /// Announces the digest of a week.
    Digest(Week),
}

impl Check {
    /// Returns the name of the pass.
    fn name(self) -> &'static str {
        match self {
            Self::Trends => "insights",
            Self::Resolution => "resolution",
            Self::Digest(_) => "digest",
        }
    }

    async fn run(self, app: &App, project: ProjectId, now: Timestamp) -> Result<(), StoreError> {
        match self {
            Self::Trends => trends::check(app, project, now).await,
            Self::Resolution => resolution::check(app, project, now).await,
            Self::Digest(week) => digest::check(app, project, &week, now).await,
        }
    }
}

/// Announces trending insights, once a day.
pub(crate) async fn daily(job: &mut JobContext<'_>) -> Result<(), StoreError> {
    let round = day_of(job);
    each_project(job, Check::Trends, round).await
}

/// Resolves insights without recent pain points, once a day.
pub(crate) async fn resolve(job: &mut JobContext<'_>) -> Result<(), StoreError> {
    let round = day_of(job);
    each_project(job, Check::Resolution, round).await
}

/// Returns the number of the current day.
fn day_of(job: &JobContext<'_>) -> u64 {
    let today = Day::of(job.app.clock.now()).start();
    Timestamp::from_millis(0).until(today).as_secs() / DAY.as_secs()
}

/// Announces the digest of the last week, if it is due.
pub(crate) async fn weekly(job: &mut JobContext<'_>) -> Result<(), StoreError> {
    let Some(week) = Week::due_at(job.app.clock.now()) else { return Ok(()) };
    each_project(job, Check::Digest(week), week.number()).await
}

/// Checks all projects once per round. Resumes where an earlier invocation stopped, at its deadline
/// or at a transient failure.
async fn each_project(
    job: &mut JobContext<'_>,
    check: Check,
    round: u64,
) -> Result<(), StoreError> {
    let (app, now) = (job.app, job.app.clock.now());
    let mut after = match NotificationStore::new(&app.store).find_pass(check.name()).await? {
        Some(Pass { round: known, after: None }) if known >= round => return Ok(()),
        Some(Pass { round: known, after }) if known == round => after,
        _ => None,
    };
    while !job.deadline.has_passed() {
        let page =
            app.store.page_of_all_projects(after.as_deref(), CONCURRENT_PROJECTS.into()).await?;
        let checks = page
            .items
            .iter()
            .map(|project| check_project(project.id, check.run(app, project.id, now)));
        let failures: Vec<_> = join_all(checks).await.into_iter().filter_map(Result::err).collect();
        let has_transient_failure = failures.iter().any(SkipReason::is_transient);
        for failure in failures {
            job.note_failure(failure.into());
        }
        if has_transient_failure {
            // The next invocation retries this page, and announces nothing twice.
            return Ok(());
        }
        after = page.end;
        NotificationStore::new(&app.store)
            .save_pass(check.name(), &Pass { round, after: after.clone() })
            .await?;
        if after.is_none() {
            return Ok(());
        }
    }
    Ok(())
}
