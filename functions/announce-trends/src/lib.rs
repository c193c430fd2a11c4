//! Announces error spikes, trending insights and weekly digests (`docs/notifications.md`), and
//! resolves insights without recent pain points. No single write causes these events, so a schedule
//! runs this function every ten minutes.
//!
//! Invocations can run concurrently, and can be killed at any point. Each announcement is stored
//! with its outbox items, so none is repeated, and passes over all projects resume.

pub mod digest;
mod passes;
mod resolution;
mod spikes;
mod trends;

use std::time::Duration;

use shared::app::{App, Deadline, Job};
use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;

/// The definition of this function.
pub static JOB: Job =
    Job { name: env!("CARGO_PKG_NAME"), run: |app, deadline| Box::pin(run(app, deadline)) };

/// Timeout of one project, so that it does not delay the others.
const PROJECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Projects checked concurrently, between two checks of the deadline.
const CONCURRENT_PROJECTS: u8 = 8;

/// The dependencies and the failure of one invocation.
struct JobContext<'r> {
    app: &'r App,
    deadline: Deadline,
    /// The first failure. The job continues after failures.
    failure: Option<StoreError>,
}

impl JobContext<'_> {
    fn note_failure(&mut self, failure: StoreError) {
        self.failure.get_or_insert(failure);
    }
}

/// Runs all due checks until the deadline.
///
/// # Errors
/// The first failure.
pub async fn run(app: &App, deadline: Deadline) -> Result<(), StoreError> {
    let mut job = JobContext { app, deadline, failure: None };
    // The most urgent check comes first.
    for outcome in [
        spikes::announce(&mut job).await,
        passes::weekly(&mut job).await,
        passes::daily(&mut job).await,
        passes::resolve(&mut job).await,
    ] {
        if let Err(failure) = outcome {
            job.note_failure(failure);
        }
    }
    job.failure.map_or(Ok(()), Err)
}

/// The reason why a project was skipped.
enum SkipReason {
    /// The check timed out. A retry would most likely time out too.
    TookTooLong,
    /// The check failed.
    Failed(StoreError),
}

impl SkipReason {
    /// Returns `true` if a retry can succeed.
    fn is_transient(&self) -> bool {
        matches!(self, Self::Failed(failure) if failure.may_pass())
    }
}

impl From<SkipReason> for StoreError {
    fn from(reason: SkipReason) -> Self {
        match reason {
            SkipReason::TookTooLong => Self::Unavailable("project check timed out".into()),
            SkipReason::Failed(failure) => failure,
        }
    }
}

/// Runs the check of one project, with a timeout.
async fn check_project(
    project: ProjectId,
    work: impl Future<Output = Result<(), StoreError>>,
) -> Result<(), SkipReason> {
    check_within(PROJECT_TIMEOUT, project, work).await
}

async fn check_within(
    timeout: Duration,
    project: ProjectId,
    work: impl Future<Output = Result<(), StoreError>>,
) -> Result<(), SkipReason> {
    match tokio::time::timeout(timeout, work).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(failure)) => {
            tracing::error!(%project, %failure, "project check failed");
            Err(SkipReason::Failed(failure))
        }
        Err(_) => {
            tracing::error!(%project, "project check timed out");
            Err(SkipReason::TookTooLong)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    const TIME: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn slow_projects_are_skipped() {
        let project = ProjectId::parse("01902f3c-0000-7000-8000-000000000000").unwrap();
        let cut = check_within(TIME, project, pending()).await;
        let Err(cut @ SkipReason::TookTooLong) = cut else { panic!("no timeout") };
        assert!(!cut.is_transient(), "retries would block the pass");
        assert!(matches!(StoreError::from(cut), StoreError::Unavailable(_)));

        assert!(check_within(TIME, project, async { Ok(()) }).await.is_ok());
        let failed = async { Err(StoreError::Unavailable("connection refused".into())) };
        let failed = check_within(TIME, project, failed).await;
        assert!(failed.is_err_and(|failed| failed.is_transient()));
    }
}
