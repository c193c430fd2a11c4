//! Passes over all projects: one a day for insights, one a week for the digest.

use std::time::Duration;

use futures_util::future::join_all;

use errors::log::day::Day;
use notifications::store::{NotificationStore, Pass};
use shared::app::App;
use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use crate::digest::{self, Week};
use crate::{AT_ONCE, JobContext, SkipReason, step, trends};

/// How often the pass for insights is made.
const DAY: Duration = Duration::from_hours(24);

/// What is looked for in each project.
#[derive(Debug, Clone, Copy)]
enum Visit {
    /// Insights that trend.
    Insights,
    /// What the week was like.
    Digest(Week),
}

impl Visit {
    /// The name of its pass.
    fn name(self) -> &'static str {
        match self {
            Self::Insights => "insights",
            Self::Digest(_) => "digest",
        }
    }

    async fn make(self, app: &App, project: ProjectId, now: Timestamp) -> Result<(), StoreError> {
        match self {
            Self::Insights => trends::visit(app, project, now).await,
            Self::Digest(week) => digest::visit(app, project, &week, now).await,
        }
    }
}

/// Looks for insights that trend, once a day.
pub(crate) async fn daily(run: &mut JobContext<'_>) -> Result<(), StoreError> {
    let today = Day::of(run.app.clock.now()).start();
    let round = Timestamp::from_millis(0).until(today).as_secs() / DAY.as_secs();
    each_project(run, Visit::Insights, round).await
}

/// Sums up the week, once it is over.
pub(crate) async fn weekly(run: &mut JobContext<'_>) -> Result<(), StoreError> {
    let Some(week) = Week::to_sum_up(run.app.clock.now()) else { return Ok(()) };
    each_project(run, Visit::Digest(week), week.number()).await
}

/// Visits all projects once in a round. Goes on where an earlier run stopped: because its time was up, or
/// because some could not be visited at the moment.
async fn each_project(
    run: &mut JobContext<'_>,
    visit: Visit,
    round: u64,
) -> Result<(), StoreError> {
    let (app, now) = (run.app, run.app.clock.now());
    let mut after = match NotificationStore::new(&app.store).find_pass(visit.name()).await? {
        Some(Pass { round: known, after: None }) if known >= round => return Ok(()),
        Some(Pass { round: known, after }) if known == round => after,
        _ => None,
    };
    while !run.deadline.has_passed() {
        let page = app.store.page_of_all_projects(after.as_deref(), AT_ONCE.into()).await?;
        let visits =
            page.items.iter().map(|project| step(project.id, visit.make(app, project.id, now)));
        let failures: Vec<_> = join_all(visits).await.into_iter().filter_map(Result::err).collect();
        let is_worth_another_try = failures.iter().any(SkipReason::may_pass);
        for failure in failures {
            run.note_failure(failure.into());
        }
        if is_worth_another_try {
            // In the next run. What was announced of this page is not announced again.
            return Ok(());
        }
        after = page.end;
        NotificationStore::new(&app.store)
            .save_pass(visit.name(), &Pass { round, after: after.clone() })
            .await?;
        if after.is_none() {
            return Ok(());
        }
    }
    Ok(())
}
