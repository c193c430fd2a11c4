//! Sends what happened to users, by mail, and to Amazon EventBridge (`docs/notifications.md`). A schedule runs
//! it every minute.
//!
//! It may be killed anywhere, run twice at once, or stop in the middle: what was not sent is still there, and
//! the next run goes on with it.

mod audience;
mod confirmations;
mod events;
mod leases;
mod mails;
mod outbox;
pub mod senders;
mod subjects;

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use leases::Leases;
use senders::Senders;

use errors::ErrorId;
use errors::spike::Hour;
use errors::store::EventsByHour;
use notifications::domain_event::{DigestSubject, Visibility};
use notifications::store::{NotificationStore, Shard};
use shared::app::{App, Deadline, Job};
use shared::dynamodb::StoreError;
use shared::dynamodb::client::ClientError;
use shared::projects::project::{Project, ProjectId};
use shared::telemetry::log_metric;
use shared::timestamp::Timestamp;

/// What this function is.
pub static JOB: Job = Job {
    name: env!("CARGO_PKG_NAME"),
    run: |app, deadline| Box::pin(run(app, configured(), LEAST_PAUSE, deadline)),
};

/// The name of the metric that tells for how many seconds at most something has been waiting that could have
/// been sent.
pub const OLDEST_WAITING_AGE: &str = "OldestWaitingNotificationAge";
/// The name of the metric that counts mails that were refused for good.
pub const REFUSED_MAILS: &str = "RefusedMails";

/// How long a run pauses at least before it looks once more: longer than the next one takes, unless much happens
/// where nothing did in the minute before.
pub const LEAST_PAUSE: Duration = Duration::from_secs(5);
/// How long it pauses at most. Its leases outlive that.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

static CONFIGURED: OnceLock<Senders> = OnceLock::new();

/// Takes what the environment names to send with.
pub fn configure() -> Result<(), ClientError> {
    let senders = Senders::from_environment()?;
    if senders.mailer.is_none() {
        tracing::warn!("MailFrom names no address: no mail is sent");
    }
    CONFIGURED.get_or_init(|| senders);
    Ok(())
}

fn configured() -> &'static Senders {
    CONFIGURED.get_or_init(Senders::default)
}

/// A run: what it works with, and what it has seen.
struct JobContext<'r> {
    app: &'r App,
    senders: &'r Senders,
    deadline: Deadline,
    leases: Leases,
    projects: HashMap<ProjectId, Option<Project>>,
    /// What plots of errors show.
    plotted: HashMap<(ProjectId, ErrorId), EventsByHour>,
    /// The errors of projects that have most events since an hour, with how many.
    frequent: HashMap<(ProjectId, Hour), HashMap<ErrorId, u64>>,
    /// `true` for existing errors, insights and flags, `false` for deleted ones.
    exists: HashMap<(ProjectId, DigestSubject), bool>,
    /// When the first of what was left happened.
    waiting_since: Option<Timestamp>,
    refused: u32,
    /// The first failure; what comes after it was done all the same.
    failure: Option<StoreError>,
}

impl JobContext<'_> {
    /// Notes what happened at a time and is left for the next run.
    fn leave(&mut self, since: Timestamp) {
        self.waiting_since = Some(self.waiting_since.map_or(since, |known| known.min(since)));
    }

    /// What something gave; nothing if it failed, which must not hold up the rest.
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

    /// A project, read once in a run.
    async fn project(&mut self, id: ProjectId) -> Result<Option<Project>, StoreError> {
        if let Some(known) = self.projects.get(&id) {
            return Ok(known.clone());
        }
        let found = self.app.store.read_project(id).await?;
        self.projects.insert(id, found.clone());
        Ok(found)
    }

    /// Whether what happened there is anybody's business still: nobody is told of a project that is gone. One
    /// that is damaged is there.
    async fn is_there(&mut self, scene: &Visibility) -> Result<bool, StoreError> {
        match scene {
            Visibility::User(..) => Ok(true),
            Visibility::Project(id) => match self.project(*id).await {
                Err(StoreError::Damaged { .. }) => Ok(true),
                found => Ok(found?.is_some()),
            },
        }
    }

    /// A project, for what it is called; none of one that is damaged: whoever is told of it is told all the
    /// same, and others are not held up.
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

/// Sends what is there.
async fn pass(run: &mut JobContext<'_>) -> Result<(), StoreError> {
    take_busy_shards(run).await?;
    // All of the outbox comes first: what is taken from one shard may be mailed from another.
    outbox::empty(run).await;
    // Its steps may be of shards in which nothing was on its way before.
    if !run.leases.shards().is_empty() {
        take_busy_shards(run).await?;
    }
    events::publish(run).await;
    confirmations::send(run).await;
    mails::send(run).await;
    Ok(())
}

/// Takes the shards in which anything is on its way, but for those on which another run works.
async fn take_busy_shards(run: &mut JobContext<'_>) -> Result<(), StoreError> {
    let app = run.app;
    for shard in Shard::all() {
        if !run.leases.has(shard) && NotificationStore::new(&app.store).is_shard_busy(shard).await?
        {
            run.leases.take(app, shard).await?;
        }
    }
    Ok(())
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// For how long at most something has been waiting that could have been sent.
    pub oldest_waiting: Duration,
    /// How many mails were refused for good.
    pub refused_mails: u32,
    /// The first failure; what comes after it was done all the same.
    pub failure: Option<StoreError>,
}

/// Sends as [`send`] does, and tells the metrics.
pub async fn run(
    app: &App,
    senders: &Senders,
    least_pause: Duration,
    deadline: Deadline,
) -> Result<(), StoreError> {
    let outcome = send(app, senders, least_pause, deadline).await?;
    let (age, now) = (outcome.oldest_waiting.as_secs(), app.clock.now());
    #[allow(clippy::cast_precision_loss)] // Seconds are far below 2^53.
    log_metric(JOB.name, OLDEST_WAITING_AGE, "Seconds", age as f64, now);
    log_metric(JOB.name, REFUSED_MAILS, "Count", f64::from(outcome.refused_mails), now);
    outcome.failure.map_or(Ok(()), Err)
}

/// Sends all that can be sent, until the time is up, and looks once more after a pause: as long a one as the
/// first look took with all that it sent, and at least the one that is given. What comes after that waits for
/// the next run, a minute after this one began; so it waits no longer than a minute in all, as long as the
/// next run sends it within that pause (`docs/notifications.md`, "How soon").
pub async fn send(
    app: &App,
    senders: &Senders,
    least_pause: Duration,
    deadline: Deadline,
) -> Result<Outcome, StoreError> {
    let now = app.clock.now();
    let mut run = JobContext {
        app,
        senders,
        deadline,
        leases: Leases::new(app.ids.new_uuid(now)),
        projects: HashMap::new(),
        plotted: HashMap::new(),
        frequent: HashMap::new(),
        exists: HashMap::new(),
        waiting_since: None,
        refused: 0,
        failure: None,
    };
    let started = Instant::now();
    pass(&mut run).await?;
    // What could not be sent now is left to the next run.
    if run.waiting_since.is_none() && run.failure.is_none() {
        let pause = started.elapsed().clamp(least_pause, LONGEST_PAUSE);
        // So is all, if the time would be up before the second look.
        if pause < deadline.left() {
            tokio::time::sleep(pause).await;
            pass(&mut run).await?;
        }
    }
    run.leases.release(app).await?;

    let now = app.clock.now();
    Ok(Outcome {
        oldest_waiting: run.waiting_since.map_or(Duration::ZERO, |since| since.until(now)),
        refused_mails: run.refused,
        failure: run.failure,
    })
}
