//! Announces what no single write makes happen: spikes of errors, insights that affect many more sessions
//! than before, and each Monday what the week was like (`docs/notifications.md`, "What nobody writes"). A
//! schedule runs it every ten minutes.
//!
//! It may be killed anywhere, run twice at once, or stop in the middle: what was announced is remembered with
//! it, and a pass over all projects goes on where it was.

pub mod digest;
mod passes;
mod spikes;
mod trends;

use std::time::Duration;

use shared::app::{App, Deadline, Job};
use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;

/// What this function is.
pub static JOB: Job =
    Job { name: env!("CARGO_PKG_NAME"), run: |app, deadline| Box::pin(run(app, deadline)) };

/// How long one project may take: the others must not wait for it.
const STEP: Duration = Duration::from_secs(20);
/// How many projects are looked at at the same time, before the deadline is looked at again.
const AT_ONCE: u8 = 8;

/// A run: what it works with, and what it has seen.
struct JobContext<'r> {
    app: &'r App,
    deadline: Deadline,
    /// The first failure; what comes after it was done all the same.
    failure: Option<StoreError>,
}

impl JobContext<'_> {
    fn note_failure(&mut self, failure: StoreError) {
        self.failure.get_or_insert(failure);
    }
}

/// Looks at all that is due, until the time is up.
pub async fn run(app: &App, deadline: Deadline) -> Result<(), StoreError> {
    let mut run = JobContext { app, deadline, failure: None };
    // What is most urgent comes first.
    for outcome in [
        spikes::announce(&mut run).await,
        passes::weekly(&mut run).await,
        passes::daily(&mut run).await,
    ] {
        if let Err(failure) = outcome {
            run.note_failure(failure);
        }
    }
    run.failure.map_or(Ok(()), Err)
}

/// Why a project was not looked at.
enum SkipReason {
    /// It took too long, and would most likely again.
    TookTooLong,
    /// Something failed.
    Failed(StoreError),
}

impl SkipReason {
    /// Whether it may be looked at a while later.
    fn may_pass(&self) -> bool {
        matches!(self, Self::Failed(failure) if failure.may_pass())
    }
}

impl From<SkipReason> for StoreError {
    fn from(not_done: SkipReason) -> Self {
        match not_done {
            SkipReason::TookTooLong => Self::Unavailable("a project took too long".into()),
            SkipReason::Failed(failure) => failure,
        }
    }
}

/// Takes a step for one project, which is cut off if it takes too long.
async fn step(
    project: ProjectId,
    work: impl Future<Output = Result<(), StoreError>>,
) -> Result<(), SkipReason> {
    step_within(STEP, project, work).await
}

async fn step_within(
    time: Duration,
    project: ProjectId,
    work: impl Future<Output = Result<(), StoreError>>,
) -> Result<(), SkipReason> {
    match tokio::time::timeout(time, work).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(failure)) => {
            tracing::error!(%project, %failure, "a project could not be looked at");
            Err(SkipReason::Failed(failure))
        }
        Err(_) => {
            tracing::error!(%project, "a project took too long to be looked at");
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
    async fn a_project_that_takes_too_long_is_cut_off_and_does_not_hold_up_the_pass() {
        let project = ProjectId::parse("01902f3c-0000-7000-8000-000000000000").unwrap();
        let cut = step_within(TIME, project, pending()).await;
        let Err(cut @ SkipReason::TookTooLong) = cut else { panic!("it is cut off") };
        assert!(!cut.may_pass(), "each run would come no further than to it");
        assert!(matches!(StoreError::from(cut), StoreError::Unavailable(_)));

        assert!(step_within(TIME, project, async { Ok(()) }).await.is_ok());
        let failed = async { Err(StoreError::Unavailable("out of reach".into())) };
        let failed = step_within(TIME, project, failed).await;
        assert!(failed.is_err_and(|failed| failed.may_pass()));
    }
}
