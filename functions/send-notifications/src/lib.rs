//! Sends emails to users and publishes events on Amazon EventBridge, every minute
//! (`docs/notifications.md`).
//!
//! Invocations can run concurrently, and can be killed at any point: the next one sends the rest.

mod audience;
mod confirmations;
mod emails;
mod events;
mod leases;
mod markers;
mod outbox;
mod people_emails;
pub mod senders;
mod subjects;

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use leases::Leases;
use senders::Senders;

use errors::ErrorId;
use errors::spike::Hour;
use notifications::domain_event::{DigestSubject, Visibility};
use notifications::store::{NotificationStore, Shard};
use shared::app::{App, Deadline, Job};
use shared::dynamodb::StoreError;
use shared::dynamodb::client::ClientError;
use shared::projects::project::{Project, ProjectId};
use shared::telemetry::{log_count, log_metric};
use shared::timestamp::Timestamp;

/// The definition of this function.
pub static JOB: Job = Job {
    name: env!("CARGO_PKG_NAME"),
    run: |app, deadline| Box::pin(run(app, configured(), MIN_PAUSE, deadline)),
};

/// Metric: age of the oldest overdue notification, in seconds.
pub const OLDEST_WAITING_AGE: &str = "OldestWaitingNotificationAge";
/// Metric: number of permanently rejected emails.
pub const REJECTED_EMAILS: &str = "RejectedEmails";

/// Minimum pause before the second pass. The next invocation usually needs less for its first pass.
pub const MIN_PAUSE: Duration = Duration::from_secs(5);
/// Maximum pause before the second pass: shorter than a lease.
const MAX_PAUSE: Duration = Duration::from_secs(10);

static CONFIGURED: OnceLock<Senders> = OnceLock::new();

/// Configures the senders from the environment.
///
/// # Errors
/// [`ClientError`] from [`Senders::from_environment`].
pub fn configure() -> Result<(), ClientError> {
    let senders = Senders::from_environment()?;
    if senders.mailer.is_none() {
        tracing::warn!("MailFrom is empty: no emails are sent");
    }
    CONFIGURED.get_or_init(|| senders);
    Ok(())
}

fn configured() -> &'static Senders {
    CONFIGURED.get_or_init(Senders::default)
}

/// The dependencies and caches of one invocation.
struct JobContext<'r> {
    app: &'r App,
    senders: &'r Senders,
    deadline: Deadline,
    leases: Leases,
    projects: HashMap<ProjectId, Option<Project>>,
    /// Event counts for plots.
    plotted: HashMap<(ProjectId, ErrorId), Vec<u64>>,
    /// Event counts of a project's most frequent errors since an hour.
    frequent: HashMap<(ProjectId, Hour), HashMap<ErrorId, u64>>,
    /// `true` for existing errors, insights and flags, `false` for deleted ones.
    exists: HashMap<(ProjectId, DigestSubject), bool>,
    /// The time since which the oldest unsent notification is overdue.
    waiting_since: Option<Timestamp>,
    rejected_emails: u32,
    /// The first failure. The job continues after failures.
    failure: Option<StoreError>,
}

impl<'r> JobContext<'r> {
    /// Returns the store of notifications.
    fn notifications(&self) -> NotificationStore<'r> {
        NotificationStore::new(&self.app.store)
    }

    /// Records an unsent notification that is overdue since a time.
    fn note_waiting(&mut self, since: Timestamp) {
        self.waiting_since = Some(self.waiting_since.map_or(since, |known| known.min(since)));
    }

    /// Returns a successful outcome, or records the failure, so that the job continues.
    fn unless_failed<T>(&mut self, outcome: Result<T, StoreError>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(failure) => {
                self.note_failure(failure);
                None
            }
        }
    }

    fn note_failure(&mut self, failure: StoreError) {
        self.failure.get_or_insert(failure);
    }

    /// Returns a project, cached for this invocation.
    async fn project(&mut self, id: ProjectId) -> Result<Option<Project>, StoreError> {
        if let Some(known) = self.projects.get(&id) {
            return Ok(known.clone());
        }
        let found = self.app.store.read_project(id).await?;
        self.projects.insert(id, found.clone());
        Ok(found)
    }

    /// Returns `false` for a deleted project. Unreadable projects exist.
    async fn visibility_exists(&mut self, visibility: &Visibility) -> Result<bool, StoreError> {
        match visibility {
            Visibility::User(..) => Ok(true),
            Visibility::Project(id) => match self.project(*id).await {
                Err(StoreError::Damaged { .. }) => Ok(true),
                found => Ok(found?.is_some()),
            },
        }
    }

    /// Returns a project for its name. `None` if it is deleted or unreadable: notifications do not
    /// wait for an unreadable project.
    async fn named_project(&mut self, id: ProjectId) -> Result<Option<Project>, StoreError> {
        match self.project(id).await {
            Err(failure @ StoreError::Damaged { .. }) => {
                self.note_failure(failure);
                Ok(None)
            }
            found => found,
        }
    }
}

/// Sends all due notifications once.
async fn pass(job: &mut JobContext<'_>) -> Result<(), StoreError> {
    people_emails::send(job).await;
    take_busy_shards(job).await?;
    // The whole outbox first: events of one shard can go to a feed in another.
    outbox::dispatch_all(job).await;
    // Feeds can be in shards that were empty before.
    if !job.leases.shards().is_empty() {
        take_busy_shards(job).await?;
    }
    events::publish(job).await;
    confirmations::send(job).await;
    emails::send(job).await;
    Ok(())
}

/// Leases the shards with items, except for those that another invocation holds.
async fn take_busy_shards(job: &mut JobContext<'_>) -> Result<(), StoreError> {
    let app = job.app;
    for shard in Shard::all() {
        if !job.leases.has(shard) && job.notifications().is_shard_busy(shard).await? {
            job.leases.take(app, shard).await?;
        }
    }
    Ok(())
}

/// The outcome of an invocation.
#[derive(Debug)]
pub struct Outcome {
    /// The age of the oldest overdue notification.
    pub oldest_waiting: Duration,
    /// The number of permanently rejected emails.
    pub rejected_emails: u32,
    /// The first failure. The job continued after it.
    pub failure: Option<StoreError>,
}

/// Runs [`send`] and logs the metrics.
///
/// # Errors
/// The first failure.
pub async fn run(
    app: &App,
    senders: &Senders,
    min_pause: Duration,
    deadline: Deadline,
) -> Result<(), StoreError> {
    let outcome = send(app, senders, min_pause, deadline).await?;
    let (age, now) = (outcome.oldest_waiting.as_secs(), app.clock.now());
    #[allow(clippy::cast_precision_loss)] // Seconds are far below 2^53.
    log_metric(JOB.name, OLDEST_WAITING_AGE, "Seconds", age as f64, now);
    log_count(JOB.name, REJECTED_EMAILS, f64::from(outcome.rejected_emails), now);
    outcome.failure.map_or(Ok(()), Err)
}

/// Sends all due notifications until the deadline, in two passes. The pause between them is as long
/// as the first pass took, but at least `min_pause`.
///
/// Later notifications wait for the next invocation, which starts a minute after this one. They are
/// sent within a minute if its first pass takes no longer than this pause
/// (`docs/notifications.md`).
///
/// # Errors
/// [`StoreError`] if shards or leases cannot be accessed. Other failures are in the outcome.
pub async fn send(
    app: &App,
    senders: &Senders,
    min_pause: Duration,
    deadline: Deadline,
) -> Result<Outcome, StoreError> {
    let now = app.clock.now();
    let mut job = JobContext {
        app,
        senders,
        deadline,
        leases: Leases::new(app.ids.new_uuid(now)),
        projects: HashMap::new(),
        plotted: HashMap::new(),
        frequent: HashMap::new(),
        exists: HashMap::new(),
        waiting_since: None,
        rejected_emails: 0,
        failure: None,
    };
    let started = Instant::now();
    pass(&mut job).await?;
    // The next invocation retries unsent notifications.
    if job.waiting_since.is_none() && job.failure.is_none() {
        let pause = started.elapsed().clamp(min_pause, MAX_PAUSE);
        if pause < deadline.left() {
            tokio::time::sleep(pause).await;
            pass(&mut job).await?;
        }
    }
    job.leases.release(app).await?;

    let now = app.clock.now();
    Ok(Outcome {
        oldest_waiting: job.waiting_since.map_or(Duration::ZERO, |since| since.until(now)),
        rejected_emails: job.rejected_emails,
        failure: job.failure,
    })
}
