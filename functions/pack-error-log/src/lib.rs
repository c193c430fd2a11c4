//! Packs the logs of error events into runs, and compacts the runs. A schedule runs this job every
//! minute.
//!
//! The job can be killed at any point, and can run twice concurrently. Unfinished projects stay in
//! the queue, and the next invocation continues with them.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};

use errors::ErrorId;
use errors::store::{ErrorStore, PackOutcome, PackingLimits, QueueBacklog, QueueEntry};
use shared::app::{App, Deadline, Job};
use shared::dynamodb::StoreError;
use shared::projects::project::ProjectId;
use shared::telemetry::{log_count, log_metric};
use shared::timestamp::Timestamp;

/// The job of this function.
pub static JOB: Job =
    Job { name: env!("CARGO_PKG_NAME"), run: |app, deadline| Box::pin(run(app, deadline)) };

/// Metric of the most seconds for which a row can have been waiting.
pub const OLDEST_UNPACKED_ROW_AGE: &str = "OldestUnpackedRowAge";
/// Metric of the projects that could not be packed.
pub const FAILED_PROJECTS: &str = "FailedProjects";

/// Metric of the approximate number of waiting rows of due projects.
pub const UNPACKED_ROWS: &str = "UnpackedRows";

/// Number of projects that are packed concurrently: while one waits for DynamoDB, another one is
/// encoded.
const PROJECTS_AT_ONCE: usize = 4;
/// Time in which an invocation starts steps. The next invocation is a minute later.
const WORKING_TIME: Duration = Duration::from_secs(55);
/// Time that a project waits after packing failed.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_mins(10);

/// The limits of an invocation.
#[derive(Debug, Clone, Copy)]
pub struct RunLimits {
    /// Limits of one step of a project.
    pub packing: PackingLimits,
    /// Time in which further steps are started.
    pub time: Duration,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self { packing: PackingLimits::default(), time: WORKING_TIME }
    }
}

/// The outcome of an invocation.
#[derive(Debug)]
pub struct RunOutcome {
    /// Earliest time since which rows can be waiting; `None` if no project is in the queue.
    pub oldest: Option<Timestamp>,
    /// Approximate number of waiting rows of due projects. Other projects have few rows, which are
    /// meant to wait.
    pub rows: u64,
    /// The errors of projects that could not be packed or compacted.
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
    log_count(JOB.name, UNPACKED_ROWS, rows, now);
    log_count(JOB.name, FAILED_PROJECTS, failed, now);
    failures.into_iter().next().map_or(Ok(()), Err)
}

/// Packs the due projects, longest due first, until the time is up. In each round, each project
/// takes one step, so that none waits for another's backlog.
pub async fn pack_due(
    app: &App,
    limits: &RunLimits,
    deadline: Deadline,
) -> Result<RunOutcome, StoreError> {
    let now = app.clock.now();
    let mut queue = ErrorStore::new(&app.store).list_packing_queue().await?;
    queue.sort_by_key(|entry| entry.due);
    let snapshot =
        |entry: &QueueEntry| QueueSnapshot { waiting: entry.waiting, is_due: entry.due <= now };
    let mut seen: HashMap<ProjectId, QueueSnapshot> =
        queue.iter().map(|entry| (entry.project, snapshot(entry))).collect();
    let due = queue.into_iter().filter(|entry| entry.due <= now);
    let first = |entry| ProjectTurn { seen: snapshot(&entry), entry, packs: true, compacts: true };
    let mut turns: Vec<ProjectTurn> = due.map(first).collect();
    let own = Deadline::after(limits.time);
    let (deadline, own) = (&deadline, &own);
    let is_over = || deadline.has_passed() || own.has_passed();
    let mut failures = Vec::new();
    while !turns.is_empty() && !is_over() {
        let round: Vec<_> = turns
            .drain(..)
            .map(|turn| async move {
                if is_over() { None } else { Some(take(app, turn, &limits.packing).await) }
            })
            .collect();
        let mut round = stream::iter(round).buffer_unordered(PROJECTS_AT_ONCE);
        while let Some(taken) = round.next().await {
            let Some((turn, failed)) = taken else { continue };
            seen.insert(turn.entry.project, turn.seen);
            failures.extend(failed);
            turns.extend(Some(turn).filter(|turn| turn.packs || turn.compacts));
        }
    }
    let rows = seen.values().filter(|seen| seen.is_due).map(|seen| seen.waiting.rows);
    Ok(RunOutcome {
        oldest: seen.values().map(|seen| seen.waiting.since).min(),
        rows: rows.fold(0, u64::saturating_add),
        failures,
    })
}

/// A project's turn.
#[derive(Clone, Copy)]
struct ProjectTurn {
    entry: QueueEntry,
    seen: QueueSnapshot,
    /// `true` if there can be rows to pack.
    packs: bool,
    /// `true` if there can be runs to compact, and compaction has not failed in this invocation.
    compacts: bool,
}

/// The last known state of a project in the queue.
#[derive(Clone, Copy)]
struct QueueSnapshot {
    waiting: QueueBacklog,
    /// `true` if the project is due and has not been checked, or not sufficiently.
    is_due: bool,
}

/// Takes one packing step and one compaction step of a project. Returns its next turn, and the
/// failure of a step.
async fn take(
    app: &App,
    mut turn: ProjectTurn,
    limits: &PackingLimits,
) -> (ProjectTurn, Option<StoreError>) {
    let project = turn.entry.project;
    if turn.packs {
        match pack(app, &turn.entry, limits, &mut turn.seen).await {
            Ok(has_more) => turn.packs = has_more,
            Err(failure) => {
                // A failed project must neither hold up the others nor be retried each minute.
                let due = app.clock.now().plus(PAUSE_AFTER_FAILURE);
                let store = ErrorStore::new(&app.store);
                let postponed = store.postpone(&turn.entry, due, turn.seen.waiting).await;
                if let Err(failure) = postponed {
                    tracing::error!(%project, %failure, "a failed project stays due");
                }
                tracing::error!(%project, %failure, "packing failed");
                return (ProjectTurn { packs: false, compacts: false, ..turn }, Some(failure));
            }
        }
    }
    if turn.compacts {
        match compact(app, &turn.entry, limits).await {
            Ok(compacts_more) => turn.compacts = turn.packs || compacts_more,
            // Rows do not wait for compaction, so it is retried when the project is next due.
            Err(failure) => {
                tracing::error!(%project, %failure, "compaction failed");
                return (ProjectTurn { compacts: false, ..turn }, Some(failure));
            }
        }
    }
    (turn, None)
}

/// Takes one compaction step of a project. Returns `true` if there can be another one.
async fn compact(
    app: &App,
    entry: &QueueEntry,
    limits: &PackingLimits,
) -> Result<bool, StoreError> {
    let (store, now) = (ErrorStore::new(&app.store), app.clock.now());
    let compacts_more = store.compact_step(entry.project, &limits.compaction, now).await?;
    store.count_errors(entry.project, now).await?;
    Ok(compacts_more)
}

/// Packs rows of a project, and sets when it is due again. Returns `true` if there are more rows.
async fn pack(
    app: &App,
    entry: &QueueEntry,
    limits: &PackingLimits,
    seen: &mut QueueSnapshot,
) -> Result<bool, StoreError> {
    let (store, now) = (ErrorStore::new(&app.store), app.clock.now());
    let new_id = || ErrorId::new(app.ids.new_uuid(app.clock.now()));
    let step = store.pack_step(entry.project, limits, &new_id, now).await?;
    let none = QueueBacklog { since: now, rows: 0 };
    let (due, waiting) = match step {
        PackOutcome::Packed { has_more: true, backlog, until } => {
            let waiting = QueueBacklog { since: until, rows: backlog.rows_since(until, now) };
            *seen = QueueSnapshot { waiting, is_due: true };
            store.postpone(entry, entry.due, waiting).await?;
            return Ok(true);
        }
        PackOutcome::Packed { backlog, .. } => (backlog.next_visit_once_packed(now), none),
        // The other packer also sets when the project is due.
        PackOutcome::Lost => return Ok(false),
        PackOutcome::ProjectGone => {
            store.leave_queue(entry).await?;
            return Ok(false);
        }
        PackOutcome::Left(backlog) => match backlog.oldest {
            Some(since) => {
                let rows = u64::try_from(backlog.rows).unwrap_or(u64::MAX);
                (backlog.next_check(now), QueueBacklog { since, rows })
            }
            None if now >= entry.may_leave() && !backlog.has_deletions => {
                store.leave_queue(entry).await?;
                return Ok(false);
            }
            None => (backlog.next_check(now).min(entry.may_leave().max(now)), none),
        },
    };
    *seen = QueueSnapshot { waiting, is_due: false };
    store.postpone(entry, due, waiting).await?;
    Ok(false)
}
