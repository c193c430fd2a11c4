//! Packs the logs of error events into runs, and merges these. A schedule runs it every minute; who
//! queries packs as well, so that nothing depends on the schedule.
//!
//! It may be killed anywhere, run twice at once, or stop in the middle: what is left is a project in the
//! queue, and the next run goes on with it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use shared::app::{App, Deadline, Job};
use shared::dynamodb::StoreError;
use shared::error_tracking::ErrorId;
use shared::error_tracking::store::{PackingLimits, QueueEntry, Step};
use shared::telemetry::log_metric;

/// What this function is.
pub static JOB: Job =
    Job { name: env!("CARGO_PKG_NAME"), run: |app, deadline| Box::pin(run(app, deadline)) };

/// The name of the metric that tells for how many seconds at most a row may have been waiting.
pub const OLDEST_UNPACKED_ROW_AGE: &str = "OldestUnpackedRowAge";
/// The name of the metric that tells how many projects could not be packed.
pub const FAILED_PROJECTS: &str = "FailedProjects";

/// How many projects are packed at once: while one waits for DynamoDB, another one is encoded.
const WORKERS: usize = 4;
/// How long a run takes on projects: the next one is a minute later.
const WORKING_TIME: Duration = Duration::from_secs(55);
/// How long a project waits that could not be packed.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_mins(10);

/// Packs the projects that are due, the longest due first, until the time is up. They take turns of one
/// step each, so that none waits for another's backlog.
async fn run(app: &App, deadline: Deadline) -> Result<(), StoreError> {
    let now = app.clock.now();
    let mut due = app.store.list_packing_queue().await?;
    due.retain(|entry| entry.due <= now);
    due.sort_by_key(|entry| entry.due);
    let first = |entry| Turn { entry, is_packed: false };
    let turns = Turns {
        projects: Mutex::new(due.into_iter().map(first).collect()),
        deadline,
        own: Deadline::after(WORKING_TIME),
    };
    let workers = join_all((0..WORKERS).map(|_| work(app, &turns))).await;
    let failures: Vec<StoreError> = workers.into_iter().flatten().collect();

    let (queue, now) = (app.store.list_packing_queue().await?, app.clock.now());
    let oldest = queue.iter().map(|entry| entry.waiting_since).min();
    #[allow(clippy::cast_precision_loss)] // Seconds and projects are far below 2^53.
    let (age, failed) =
        (oldest.map_or(0, |since| since.until(now).as_secs()) as f64, failures.len() as f64);
    log_metric(JOB.name, OLDEST_UNPACKED_ROW_AGE, "Seconds", age, now);
    log_metric(JOB.name, FAILED_PROJECTS, "Count", failed, now);
    failures.into_iter().next().map_or(Ok(()), Err)
}

/// A project's turn.
#[derive(Clone, Copy)]
struct Turn {
    entry: QueueEntry,
    /// Whether only merging is left to do.
    is_packed: bool,
}

/// The turns that are to come.
struct Turns {
    projects: Mutex<VecDeque<Turn>>,
    deadline: Deadline,
    own: Deadline,
}

impl Turns {
    fn next(&self) -> Option<Turn> {
        if self.deadline.has_passed() || self.own.has_passed() {
            return None;
        }
        self.projects.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn again(&self, turn: Turn) {
        self.projects.lock().unwrap_or_else(PoisonError::into_inner).push_back(turn);
    }
}

/// Takes one project after the other, and answers what failed.
async fn work(app: &App, turns: &Turns) -> Vec<StoreError> {
    let mut failures = Vec::new();
    while let Some(turn) = turns.next() {
        match take(app, turn).await {
            Ok(Some(next)) => turns.again(next),
            Ok(None) => {}
            Err(failure) => {
                // It must not hold up the others, nor be tried in vain each minute.
                let due = app.clock.now().plus(PAUSE_AFTER_FAILURE);
                let postponed = app.store.postpone(&turn.entry, due, turn.entry.waiting_since);
                failures.extend(postponed.await.err());
                failures.push(failure);
            }
        }
    }
    failures
}

/// Takes one step of packing a project, and one of merging. Answers the turn that it needs besides.
async fn take(app: &App, turn: Turn) -> Result<Option<Turn>, StoreError> {
    let Turn { entry, is_packed } = turn;
    let limits = PackingLimits::default();
    let has_rows = !is_packed && pack(app, &entry, &limits).await?;
    let merges_more = app.store.merge_step(entry.project, &limits.merging, app.clock.now()).await?;
    Ok((has_rows || merges_more).then_some(Turn { entry, is_packed: !has_rows }))
}

/// Packs rows of a project, and says when it is due again. Answers whether there are more rows.
async fn pack(app: &App, entry: &QueueEntry, limits: &PackingLimits) -> Result<bool, StoreError> {
    let now = app.clock.now();
    let new_id = || ErrorId::new(app.ids.new_uuid(app.clock.now()));
    let (due, waiting_since) =
        match app.store.pack_step(entry.project, limits, &new_id, now).await? {
            Step::Packed { has_more: true, .. } => return Ok(true),
            Step::Packed { backlog, .. } => (backlog.next_visit_once_packed(now), now),
            // Whoever packs it also says when it is due.
            Step::Lost => return Ok(false),
            Step::Left(backlog) => match backlog.oldest {
                Some(oldest) => (backlog.next_visit(now), oldest),
                None if now >= entry.may_leave() => {
                    app.store.leave_queue(entry).await?;
                    return Ok(false);
                }
                None => (backlog.next_visit(now).min(entry.may_leave()), now),
            },
        };
    app.store.postpone(entry, due, waiting_since).await?;
    Ok(false)
}
