//! Packs the logs of error events into runs, and merges these. A schedule runs it every minute; who
//! queries packs as well, so that nothing depends on the schedule.
//!
//! It may be killed anywhere, run twice at once, or stop in the middle: what is left is a project in the
//! queue, and the next run goes on with it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use shared::app::{App, Deadline, Job};
use shared::dynamodb::StoreError;
use shared::error_tracking::ErrorId;
use shared::error_tracking::store::{PackingLimits, QueueEntry, Step, Waiting};
use shared::projects::project::ProjectId;
use shared::telemetry::log_metric;

/// What this function is.
pub static JOB: Job =
    Job { name: env!("CARGO_PKG_NAME"), run: |app, deadline| Box::pin(run(app, deadline)) };

/// The name of the metric that tells for how many seconds at most a row may have been waiting.
pub const OLDEST_UNPACKED_ROW_AGE: &str = "OldestUnpackedRowAge";
/// The name of the metric that tells how many projects could not be packed.
pub const FAILED_PROJECTS: &str = "FailedProjects";

/// The name of the metric that tells how many rows were waiting when their projects were last looked at.
pub const UNPACKED_ROWS: &str = "UnpackedRows";

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
    let queue = app.store.list_packing_queue().await?;
    let mut due: Vec<QueueEntry> = queue.iter().filter(|entry| entry.due <= now).copied().collect();
    due.sort_by_key(|entry| entry.due);
    let first = |entry| Turn { entry, is_packed: false };
    let turns = Turns {
        projects: Mutex::new(due.into_iter().map(first).collect()),
        waiting: Mutex::new(queue.iter().map(|it| (it.project, it.waiting)).collect()),
        deadline,
        own: Deadline::after(WORKING_TIME),
    };
    let workers = join_all((0..WORKERS).map(|_| work(app, &turns))).await;
    let failures: Vec<StoreError> = workers.into_iter().flatten().collect();

    let now = app.clock.now();
    let waiting = turns.waiting.into_inner().unwrap_or_else(PoisonError::into_inner);
    let oldest = waiting.values().map(|waiting| waiting.since).min();
    let rows: u64 = waiting.values().map(|waiting| waiting.rows).sum();
    let age = oldest.map_or(0, |since| since.until(now).as_secs());
    #[allow(clippy::cast_precision_loss)] // Seconds, rows and projects are far below 2^53.
    let [age, rows, failed] = [age, rows, failures.len() as u64].map(|value| value as f64);
    log_metric(JOB.name, OLDEST_UNPACKED_ROW_AGE, "Seconds", age, now);
    log_metric(JOB.name, UNPACKED_ROWS, "Count", rows, now);
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
    /// What is waiting of each project of the queue, as far as is known.
    waiting: Mutex<HashMap<ProjectId, Waiting>>,
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

    fn note(&self, project: ProjectId, waiting: Waiting) {
        let mut all = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(project, waiting);
    }
}

/// Takes one project after the other, and answers what failed.
async fn work(app: &App, turns: &Turns) -> Vec<StoreError> {
    let mut failures = Vec::new();
    while let Some(turn) = turns.next() {
        match take(app, turn, turns).await {
            Ok(Some(next)) => turns.again(next),
            Ok(None) => {}
            Err(failure) => {
                // It must not hold up the others, nor be tried in vain each minute.
                let due = app.clock.now().plus(PAUSE_AFTER_FAILURE);
                let postponed = app.store.postpone(&turn.entry, due, turn.entry.waiting);
                failures.extend(postponed.await.err());
                failures.push(failure);
            }
        }
    }
    failures
}

/// Takes one step of packing a project, and one of merging. Answers the turn that it needs besides.
async fn take(app: &App, turn: Turn, turns: &Turns) -> Result<Option<Turn>, StoreError> {
    let Turn { entry, is_packed } = turn;
    let limits = PackingLimits::default();
    let has_rows = !is_packed && pack(app, &entry, &limits, turns).await?;
    let (store, now) = (&app.store, app.clock.now());
    let merges_more = store.merge_step(entry.project, &limits.merging, now).await?;
    store.count_errors(entry.project, now).await?;
    Ok((has_rows || merges_more).then_some(Turn { entry, is_packed: !has_rows }))
}

/// Packs rows of a project, and says when it is due again. Answers whether there are more rows.
async fn pack(
    app: &App,
    entry: &QueueEntry,
    limits: &PackingLimits,
    turns: &Turns,
) -> Result<bool, StoreError> {
    let now = app.clock.now();
    let new_id = || ErrorId::new(app.ids.new_uuid(app.clock.now()));
    let (due, waiting) = match app.store.pack_step(entry.project, limits, &new_id, now).await? {
        Step::Packed { has_more: true, .. } => return Ok(true),
        Step::Packed { backlog, .. } => {
            (backlog.next_visit_once_packed(now), Waiting { since: now, rows: 0 })
        }
        // Whoever packs it also says when it is due.
        Step::Lost => return Ok(false),
        Step::ProjectGone => {
            app.store.leave_queue(entry).await?;
            return Ok(false);
        }
        Step::Left(backlog) => match backlog.oldest {
            Some(since) => {
                let rows = u64::try_from(backlog.rows).unwrap_or(u64::MAX);
                (backlog.next_visit(now), Waiting { since, rows })
            }
            None if now >= entry.may_leave() && !backlog.has_deletions => {
                app.store.leave_queue(entry).await?;
                return Ok(false);
            }
            None => {
                let due = backlog.next_visit(now).min(entry.may_leave().max(now));
                (due, Waiting { since: now, rows: 0 })
            }
        },
    };
    turns.note(entry.project, waiting);
    app.store.postpone(entry, due, waiting).await?;
    Ok(false)
}
