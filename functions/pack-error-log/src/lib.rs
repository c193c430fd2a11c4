//! Packs the logs of error events into runs, and merges these. A schedule runs it every minute.
//!
//! It may be killed anywhere, run twice at once, or stop in the middle: what is left is a project in the
//! queue, and the next run goes on with it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;

use errors::ErrorId;
use errors::store::{ErrorStore, PackOutcome, PackingLimits, QueueBacklog, QueueEntry};
use shared::app::{App, Deadline, Job};
use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;
use shared::telemetry::log_metric;
use shared::timestamp::Timestamp;

/// What this function is.
pub static JOB: Job =
    Job { name: env!("CARGO_PKG_NAME"), run: |app, deadline| Box::pin(run(app, deadline)) };

/// The name of the metric that tells for how many seconds at most a row may have been waiting.
pub const OLDEST_UNPACKED_ROW_AGE: &str = "OldestUnpackedRowAge";
/// The name of the metric that tells how many projects could not be packed.
pub const FAILED_PROJECTS: &str = "FailedProjects";

/// The name of the metric that tells about how many rows were waiting of projects that are due.
pub const UNPACKED_ROWS: &str = "UnpackedRows";

/// How many projects are packed at once: while one waits for DynamoDB, another one is encoded.
const WORKERS: usize = 4;
/// How long a run takes on projects: the next one is a minute later.
const WORKING_TIME: Duration = Duration::from_secs(55);
/// How long a project waits that could not be packed.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_mins(10);

/// How much a run does.
#[derive(Debug, Clone, Copy)]
pub struct RunLimits {
    /// How much a step of a project does.
    pub packing: PackingLimits,
    /// How long further steps are begun.
    pub time: Duration,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { packing: PackingLimits::default(), time: WORKING_TIME }
    }
}

/// What became of a run.
#[derive(Debug)]
pub struct RunOutcome {
    /// Since when there may be rows that wait; `None` if no project is in the queue.
    pub oldest: Option<Timestamp>,
    /// About how many rows are waiting of projects that are due. What a project has that is not due is to
    /// wait, and is little.
    pub rows: u64,
    /// Why some projects could not be packed or merged.
    pub failures: Vec<StoreError>,
}

async fn run(app: &App, deadline: Deadline) -> Result<(), StoreError> {
    let RunOutcome { oldest, rows, failures } =
        pack_due(app, &RunLimits::default(), deadline).await?;
    let now = app.clock.now();
    let age = oldest.map_or(0, |since| since.until(now).as_secs());
    #[allow(clippy::cast_precision_loss)] // Seconds, rows and projects are far below 2^53.
    let [age, rows, failed] = [age, rows, failures.len() as u64].map(|value| value as f64);
    log_metric(JOB.name, OLDEST_UNPACKED_ROW_AGE, "Seconds", age, now);
    log_metric(JOB.name, UNPACKED_ROWS, "Count", rows, now);
    log_metric(JOB.name, FAILED_PROJECTS, "Count", failed, now);
    failures.into_iter().next().map_or(Ok(()), Err)
}

/// Packs the projects that are due, the longest due first, until the time is up. They take turns of one
/// step each, so that none waits for another's backlog.
pub async fn pack_due(
    app: &App,
    limits: &RunLimits,
    deadline: Deadline,
) -> Result<RunOutcome, StoreError> {
    let now = app.clock.now();
    let queue = ErrorStore::new(&app.store).list_packing_queue().await?;
    let mut due: Vec<QueueEntry> = queue.iter().filter(|entry| entry.due <= now).copied().collect();
    due.sort_by_key(|entry| entry.due);
    let first = |entry| ProjectTurn { entry, packs: true, merges: true };
    let seen =
        |entry: &QueueEntry| QueueSnapshot { waiting: entry.waiting, is_due: entry.due <= now };
    let turns = RoundRobin {
        projects: Mutex::new(due.into_iter().map(first).collect()),
        seen: Mutex::new(queue.iter().map(|entry| (entry.project, seen(entry))).collect()),
        limits: limits.packing,
        deadline,
        own: Deadline::after(limits.time),
    };
    let workers = join_all((0..WORKERS).map(|_| work(app, &turns))).await;
    let seen = turns.seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    let rows = seen.values().filter(|seen| seen.is_due).map(|seen| seen.waiting.rows);
    Ok(RunOutcome {
        oldest: seen.values().map(|seen| seen.waiting.since).min(),
        rows: rows.fold(0, u64::saturating_add),
        failures: workers.into_iter().flatten().collect(),
    })
}

/// A project's turn.
#[derive(Clone, Copy)]
struct ProjectTurn {
    entry: QueueEntry,
    /// Whether there may be rows to pack.
    packs: bool,
    /// Whether there may be runs to merge, and that did not fail in this run.
    merges: bool,
}

/// What is known of a project in the queue.
#[derive(Clone, Copy)]
struct QueueSnapshot {
    waiting: QueueBacklog,
    /// Whether it is to be looked at, and was not yet, or not enough.
    is_due: bool,
}

/// The turns that are to come.
struct RoundRobin {
    projects: Mutex<VecDeque<ProjectTurn>>,
    seen: Mutex<HashMap<ProjectId, QueueSnapshot>>,
    limits: PackingLimits,
    deadline: Deadline,
    own: Deadline,
}

impl RoundRobin {
    fn next(&self) -> Option<ProjectTurn> {
        if self.deadline.has_passed() || self.own.has_passed() {
            return None;
        }
        self.projects.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn again(&self, turn: ProjectTurn) {
        self.projects.lock().unwrap_or_else(PoisonError::into_inner).push_back(turn);
    }

    fn note(&self, project: ProjectId, seen: QueueSnapshot) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(project, seen);
    }

    /// What is waiting of a project, as it was seen last.
    fn waiting(&self, entry: &QueueEntry) -> QueueBacklog {
        let all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&entry.project).map_or(entry.waiting, |seen| seen.waiting)
    }
}

/// Takes one project after the other, and answers what failed.
async fn work(app: &App, turns: &RoundRobin) -> Vec<StoreError> {
    let mut failures = Vec::new();
    while let Some(turn) = turns.next() {
        let next = take(app, turn, turns, &mut failures).await;
        if next.packs || next.merges {
            turns.again(next);
        }
    }
    failures
}

/// Takes one step of packing a project, and one of merging. Answers what it needs besides.
async fn take(
    app: &App,
    turn: ProjectTurn,
    turns: &RoundRobin,
    failures: &mut Vec<StoreError>,
) -> ProjectTurn {
    let ProjectTurn { entry, mut packs, mut merges } = turn;
    if packs {
        match pack(app, &entry, turns).await {
            Ok(has_more) => packs = has_more,
            Err(failure) => {
                // It must not hold up the others, nor be tried in vain each minute.
                let due = app.clock.now().plus(PAUSE_AFTER_FAILURE);
                let postponed =
                    ErrorStore::new(&app.store).postpone(&entry, due, turns.waiting(&entry));
                failures.extend(postponed.await.err());
                failures.push(failure);
                return ProjectTurn { entry, packs: false, merges: false };
            }
        }
    }
    if merges {
        match merge(app, &entry, turns).await {
            Ok(merges_more) => merges = packs || merges_more,
            // Rows do not wait for that: it is tried again when the project is due next.
            Err(failure) => {
                failures.push(failure);
                merges = false;
            }
        }
    }
    ProjectTurn { entry, packs, merges }
}

/// Takes one step of merging a project. Answers whether there may be another one.
async fn merge(app: &App, entry: &QueueEntry, turns: &RoundRobin) -> Result<bool, StoreError> {
    let (store, now) = (&app.store, app.clock.now());
    let merges_more =
        ErrorStore::new(store).merge_step(entry.project, &turns.limits.merging, now).await?;
    ErrorStore::new(store).count_errors(entry.project, now).await?;
    Ok(merges_more)
}

/// Packs rows of a project, and says when it is due again. Answers whether there are more rows.
async fn pack(app: &App, entry: &QueueEntry, turns: &RoundRobin) -> Result<bool, StoreError> {
    let now = app.clock.now();
    let new_id = || ErrorId::new(app.ids.new_uuid(app.clock.now()));
    let step =
        ErrorStore::new(&app.store).pack_step(entry.project, &turns.limits, &new_id, now).await?;
    let none = QueueBacklog { since: now, rows: 0 };
    let (due, waiting) = match step {
        PackOutcome::Packed { has_more: true, backlog, until } => {
            let waiting = QueueBacklog { since: until, rows: backlog.rows_since(until, now) };
            turns.note(entry.project, QueueSnapshot { waiting, is_due: true });
            ErrorStore::new(&app.store).postpone(entry, entry.due, waiting).await?;
            return Ok(true);
        }
        PackOutcome::Packed { backlog, .. } => (backlog.next_visit_once_packed(now), none),
        // Whoever packs it also says when it is due.
        PackOutcome::Lost => return Ok(false),
        PackOutcome::ProjectGone => {
            ErrorStore::new(&app.store).leave_queue(entry).await?;
            return Ok(false);
        }
        PackOutcome::Left(backlog) => match backlog.oldest {
            Some(since) => {
                let rows = u64::try_from(backlog.rows).unwrap_or(u64::MAX);
                (backlog.next_check(now), QueueBacklog { since, rows })
            }
            None if now >= entry.may_leave() && !backlog.has_deletions => {
                ErrorStore::new(&app.store).leave_queue(entry).await?;
                return Ok(false);
            }
            None => (backlog.next_check(now).min(entry.may_leave().max(now)), none),
        },
    };
    turns.note(entry.project, QueueSnapshot { waiting, is_due: false });
    ErrorStore::new(&app.store).postpone(entry, due, waiting).await?;
    Ok(false)
}
