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
    ] {
        if let Err(failure) = outcome {
            job.note_failure(failure);
        }
    }
    job.failure.map_or(Ok(()), Err)
}

/// Runs the check of one project, with a timeout.
async fn check_project(
    timeout: Duration,
    project: ProjectId,
    work: impl Future<Output = Result<(), StoreError>>,
) -> Result<(), StoreError> {
    let checked = match tokio::time::timeout(timeout, work).await {
        Ok(checked) => checked,
        // Not transient: a retry would most likely time out too, and block the pass.
        Err(_) => Err(StoreError::OtherService {
            service: "project check",
            cause: "timed out".to_owned(),
        }),
    };
    checked.inspect_err(|failure| tracing::error!(%project, %failure, "project check failed"))
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    const TIME: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn slow_projects_are_skipped() {
        let project = ProjectId::parse("01902f3c-0000-7000-8000-000000000000").unwrap();
        let cut = check_project(TIME, project, pending()).await;
        assert!(!cut.unwrap_err().may_pass(), "retries would block the pass");
        assert!(check_project(TIME, project, async { Ok(()) }).await.is_ok());
        let failed = async { Err(StoreError::Unavailable("connection refused".into())) };
        assert!(check_project(TIME, project, failed).await.unwrap_err().may_pass());
    }
}
