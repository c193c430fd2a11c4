//! Erases projects and users. A schedule runs this job every minute.
//!
//! The job can be killed at any point, and can run twice concurrently. Every step deletes existing
//! data and can be repeated. Progress is stored only if no other invocation has stored progress in
//! the meantime. `docs/erasure.md` describes each stage, and why the next one can start.

use errors::store::ErrorStore;
use flags::store::FlagStore;
use insights::store::InsightStore;
use markers::store::MarkerStore;
use notifications::store::{NotificationStore, UserName};
use people::store::PeopleStore;
use shared::app::{App, Deadline, Job};
use shared::dynamodb::{StoreError, Sweep};
use shared::projects::erasure::{Erasure, Stage, Subject};
use shared::projects::project::ProjectId;
use shared::telemetry::log_metric;
use shared::timestamp::Timestamp;
use source_maps::store::ProjectMaps;

/// The job of this function.
pub static JOB: Job =
    Job { name: env!("CARGO_PKG_NAME"), run: |app, deadline| Box::pin(run(app, deadline)) };

/// Metric of the seconds for which the longest due erasure has been due.
pub const ERASURE_DELAY: &str = "ErasureDelay";

/// Returns the seconds for which the longest due erasure has been due at `now`. An erasure that
/// waits for another job is due.
pub fn delay_in_seconds(erasures: &[Erasure], now: Timestamp) -> i64 {
    let delays = erasures.iter().map(|it| now.as_seconds() - it.due_since.as_seconds());
    delays.max().unwrap_or_default().max(0)
}

/// Continues all due erasures, oldest first, until the time is up.
async fn run(app: &App, deadline: Deadline) -> Result<(), StoreError> {
    let erasures = app.store.list_erasures().await?;
    let now = app.clock.now();
    #[allow(clippy::cast_precision_loss)] // Seconds are far below 2^53.
    let delay = delay_in_seconds(&erasures, now) as f64;
    log_metric(JOB.name, ERASURE_DELAY, "Seconds", delay, now);

    let mut outcome = Ok(());
    for erasure in erasures {
        // A failed erasure must not hold up the others.
        outcome = outcome.and(continue_erasure(app, erasure, deadline).await);
    }
    outcome
}

/// Takes steps of an erasure while it is due and no other invocation continues it.
async fn continue_erasure(
    app: &App,
    mut at: Erasure,
    deadline: Deadline,
) -> Result<(), StoreError> {
    while !deadline.has_passed() && at.not_before <= app.clock.now() {
        let done = step(app, &at).await?;
        let now = app.clock.now();
        let removed = at.removed.saturating_add(done.sweep.removed);
        let next = if done.is_last {
            at.advanced(now).map(|next| Erasure { removed, ..next })
        } else {
            let not_before = done.pause.map_or(at.not_before, |pause| now.plus(pause));
            Some(Erasure { removed, after: done.sweep.after, not_before, ..at.clone() })
        };
        let Some(next) = next else {
            return app.store.finish_erasure(&at).await.map(drop);
        };
        if !app.store.note_erasure(&at, &next).await? {
            return Ok(());
        }
        at = Erasure { revision: at.revision.saturating_add(1), ..next };
    }
    Ok(())
}

/// The outcome of a step.
struct StepOutcome {
    sweep: Sweep,
    /// `true` if the stage has ended.
    is_last: bool,
    /// Time to wait before the next step.
    pause: Option<std::time::Duration>,
}

/// Time that a stage waits if it depends on another job.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(50);

impl StepOutcome {
    /// Returns the outcome of one page of a table scan.
    fn page(sweep: Sweep) -> Self {
        Self { is_last: sweep.after.is_none(), sweep, pause: None }
    }

    /// Returns the outcome of deleting some listed items. The stage ends once none are found.
    fn some(sweep: Sweep) -> Self {
        Self { is_last: sweep.removed == 0, sweep, pause: None }
    }

    /// Returns the outcome of a step that completes its stage.
    fn all(sweep: Sweep) -> Self {
        Self { is_last: true, sweep, pause: None }
    }

    /// Returns the outcome of a stage that waits until another job is done.
    fn once(is_done: bool, sweep: Sweep) -> Self {
        Self { is_last: is_done, sweep, pause: (!is_done).then_some(PAUSE) }
    }
}

async fn step(app: &App, at: &Erasure) -> Result<StepOutcome, StoreError> {
    let after = at.after.as_deref();
    Ok(match (&at.subject, at.stage) {
        (_, Stage::Settling) => StepOutcome::all(Sweep::default()),
        (Subject::Project(project), Stage::People) => {
            StepOutcome::page(PeopleStore::new(&app.store).sweep_project(*project, after).await?)
        }
        (Subject::User(organization, user), Stage::People) => {
            let people = PeopleStore::new(&app.store);
            StepOutcome::page(people.sweep_user(organization, user, after).await?)
        }
        (subject, Stage::Notifications) => notifications_step(app, subject, after).await?,
        (_, Stage::Responses) => {
            StepOutcome::page(app.store.sweep_responses(app.clock.now(), after).await?)
        }
        (_, Stage::Quotas) => {
            StepOutcome::page(app.store.sweep_windows(app.clock.now(), after).await?)
        }
        (Subject::Project(project), stage) => project_step(app, *project, stage, at).await?,
        (Subject::User(organization, user), _) => {
            let name = UserName { organization: organization.clone(), user: user.clone() };
            let store = &app.store;
            let removed = NotificationStore::new(store)
                .erase_email_preferences(organization, user)
                .await?
                .removed
                + NotificationStore::new(store).erase_delivery_state(&name).await?.removed
                + store.erase_keys_of(organization, user, at.requested_at).await?.removed;
            StepOutcome::all(Sweep { removed, after: None })
        }
    })
}

/// Prefix of a position if an earlier page contains mentions of the subject.
const MENTIONED: char = '+';

/// Scans all notifications, repeatedly until none mentions the subject.
async fn notifications_step(
    app: &App,
    subject: &Subject,
    after: Option<&str>,
) -> Result<StepOutcome, StoreError> {
    let position = after.map(|after| after.trim_start_matches(MENTIONED));
    let swept = NotificationStore::new(&app.store).sweep_notifications(subject, position).await?;
    let was_mentioned = after.is_some_and(|after| after.starts_with(MENTIONED));
    let is_mentioned = was_mentioned || swept.mentions > 0;
    let removed = swept.sweep.removed;
    Ok(match swept.sweep.after {
        Some(after) if is_mentioned => {
            StepOutcome::page(Sweep { removed, after: Some(format!("{MENTIONED}{after}")) })
        }
        None if is_mentioned => StepOutcome::once(false, Sweep { removed, after: None }),
        after => StepOutcome::page(Sweep { removed, after }),
    })
}

async fn project_step(
    app: &App,
    project: ProjectId,
    stage: Stage,
    at: &Erasure,
) -> Result<StepOutcome, StoreError> {
    let (store, now): (_, Timestamp) = (&app.store, app.clock.now());
    let after = at.after.as_deref();
    Ok(match stage {
        Stage::Packing => {
            // Without its bundle, a running assembly cannot publish maps.
            let bundles = ProjectMaps::new(store, project).erase_bundles().await?;
            if bundles.removed > 0 {
                return Ok(StepOutcome::some(bundles));
            }
            StepOutcome::all(ErrorStore::new(store).end_packing(project).await?)
        }
        Stage::Flags => StepOutcome::some(FlagStore::new(store).erase_flags(project).await?),
        Stage::FlagChanges => {
            StepOutcome::page(FlagStore::new(store).sweep_flag_changes(project, after).await?)
        }
        Stage::Collections => {
            StepOutcome::some(MarkerStore::new(store).erase_collections(project, now).await?)
        }
        Stage::Events => {
            // The stage began after the last collection was deleted, and stores that time as its
            // position.
            let began = after.and_then(|after| Timestamp::parse_date_or_date_time(after).ok());
            let began = began.unwrap_or(at.not_before);
            let sweep = Sweep { removed: 0, after: Some(began.to_string()) };
            StepOutcome::once(MarkerStore::new(store).are_events_purged(began).await?, sweep)
        }
        Stage::PainPoints => StepOutcome::page(
            InsightStore::new(store).sweep_pain_points(project, now, after).await?,
        ),
        Stage::Insights => {
            StepOutcome::some(InsightStore::new(store).erase_insights(project).await?)
        }
        Stage::Errors => {
            StepOutcome::page(ErrorStore::new(store).sweep_errors(project, after).await?)
        }
        Stage::SourceMaps => {
            let maps = ProjectMaps::new(store, project);
            let removed = maps.erase_bundles().await?.removed + maps.erase_maps().await?.removed;
            StepOutcome::some(Sweep { removed, after: None })
        }
        Stage::Keys => {
            StepOutcome::all(store.erase_project_from_keys(&at.organization, project).await?)
        }
        // Stages of users, and stages of both subjects that are handled above.
        Stage::Settling
        | Stage::User
        | Stage::People
        | Stage::Notifications
        | Stage::Responses
        | Stage::Quotas => StepOutcome::all(Sweep::default()),
    })
}
