//! Passes over all projects: daily for insights, weekly for digests.

use std::time::Duration;

use futures_util::future::join_all;

use notifications::store::{NotificationStore, Pass};
use shared::app::App;
use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use crate::digest::{self, Week};
use crate::{CONCURRENT_PROJECTS, JobContext, PROJECT_TIMEOUT, check_project, resolution, trends};

/// Period of the pass for insights.
const DAY: Duration = Duration::from_hours(24);

/// The check of a pass in each project.
#[derive(Debug, Clone, Copy)]
enum Check {
    /// Announces trending insights, and resolves those without recent pain points.
    Insights,
    /// Announces the digest of a week.
    Digest(Week),
}

impl Check {
    /// Returns the name of the pass.
    fn name(self) -> &'static str {
        match self {
            Self::Insights => "insights",
            Self::Digest(_) => "digest",
        }
    }

    async fn run(self, app: &App, project: ProjectId, now: Timestamp) -> Result<(), StoreError> {
        match self {
            Self::Insights => {
                let announced = trends::check(app, project, now).await;
                resolution::check(app, project, now).await.and(announced)
            }
            Self::Digest(week) => digest::check(app, project, &week, now).await,
        }
    }
}

/// Checks insights, once a day.
pub(crate) async fn daily(job: &mut JobContext<'_>) -> Result<(), StoreError> {
    let epoch = Timestamp::from_millis(0);
    let today = epoch.until(job.app.clock.now()).as_secs() / DAY.as_secs();
    each_project(job, Check::Insights, today).await
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
    let notifications = NotificationStore::new(&app.store);
    let mut after = match notifications.find_pass(check.name()).await? {
        Some(Pass { round: known, after: None }) if known >= round => return Ok(()),
        Some(Pass { round: known, after }) if known == round => after,
        _ => None,
    };
    while !job.deadline.has_passed() {
        let page =
            app.store.page_of_all_projects(after.as_deref(), CONCURRENT_PROJECTS.into()).await?;
        let checks = page.items.iter().map(|project| {
            check_project(PROJECT_TIMEOUT, project.id, check.run(app, project.id, now))
        });
        let failures: Vec<_> = join_all(checks).await.into_iter().filter_map(Result::err).collect();
        let has_transient_failure = failures.iter().any(StoreError::may_pass);
        for failure in failures {
            job.note_failure(failure);
        }
        if has_transient_failure {
            // The next invocation retries this page, and announces nothing twice.
            return Ok(());
        }
        after = page.end;
        let pass = Pass { round, after: after.clone() };
        notifications.save_pass(check.name(), &pass).await?;
        if after.is_none() {
            return Ok(());
        }
    }
    Ok(())
}
