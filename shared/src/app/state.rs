//! State shared by operations and jobs: tables, clock, ids, caches and limits.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::auth::{AccessCache, Caller, Credential};
use crate::dynamodb::{Store, StoreError};
use crate::http::{ApiRequest, ApiResponse, CursorKey, OriginSecrets, Problem};
pub use crate::id::Ids;
use crate::idempotency::IdempotentRequest;
use crate::projects::dsn::IngestId;
use crate::projects::limits::{Limit, Limits};
use crate::projects::member::Member;
use crate::projects::project::ProjectId;
use crate::projects::session::Session;
use crate::projects::store::IngestAccess;
use crate::quotas::{ENVELOPES_PER_EVENT, Quotas};
use crate::telemetry::{SENDERS_OVER_QUOTA, log_bound_met};
use crate::timestamp::Timestamp;

/// Environment variable with the key that signs list cursors. `template.yaml` sets it for list
/// functions.
pub const CURSOR_KEY_VARIABLE: &str = "WAYMARK_CURSOR_KEY";

/// The state of an operation or job.
#[derive(Debug)]
pub struct App {
    /// The tables.
    pub store: Store,
    /// The clock.
    pub clock: Clock,
    /// The source of new identifiers.
    pub ids: Ids,
    pub(super) access: AccessCache,
    caches: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    cursor_key: Option<CursorKey>,
    pub(super) origin_secrets: OriginSecrets,
    /// The template's limits.
    limits: Limits,
    quotas: Quotas,
    /// Replaces each operation's time budget, if set.
    pub(super) time_budget: Option<Duration>,
    /// `true` if the last uses of keys and sessions are recorded.
    pub(super) records_uses: bool,
    pub(super) is_cold: AtomicBool,
}

impl App {
    /// Creates an app with empty caches.
    pub fn new(store: Store, clock: Clock, ids: Ids) -> Self {
        Self {
            store,
            clock,
            ids,
            access: AccessCache::default(),
            caches: Mutex::default(),
            cursor_key: None,
            origin_secrets: OriginSecrets::default(),
            limits: Limits::default(),
            quotas: Quotas::default(),
            time_budget: None,
            records_uses: false,
            is_cold: AtomicBool::new(true),
        }
    }

    /// Sets the key that signs list cursors.
    #[must_use]
    pub fn with_cursor_key(mut self, key: Option<CursorKey>) -> Self {
        self.cursor_key = key;
        self
    }

    /// Sets the origin secrets. With secrets, the app accepts only requests from a distribution.
    #[must_use]
    pub fn with_origin_secrets(mut self, secrets: OriginSecrets) -> Self {
        self.origin_secrets = secrets;
        self
    }

    /// Sets the template's limits of requests, events and errors.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Records the last uses of keys and sessions. Tests that count requests to the tables do not.
    #[must_use]
    pub fn recording_uses(mut self) -> Self {
        self.records_uses = true;
        self
    }

    /// Replaces each operation's time budget. Tests need this, since they share busy machines.
    #[must_use]
    pub fn with_time_budget(mut self, budget: Duration) -> Self {
        self.time_budget = Some(budget);
        self
    }

    /// Returns the limits of the stack as they were last read, or else of the template.
    pub fn limits(&self) -> Limits {
        self.access.limits(self.clock.now()).or(&self.limits)
    }

    /// Returns `true` if the limits of the stack must be read again.
    pub fn needs_limits(&self) -> bool {
        self.access.needs_limits(self.clock.now())
    }

    /// Returns the project that receives errors with a numeric id. Also reads the limits of the
    /// stack if necessary, in the same round trip.
    pub async fn find_ingest_access(
        &self,
        id: IngestId,
    ) -> Result<Option<IngestAccess>, StoreError> {
        let now = self.clock.now();
        let (found, limits) = self.store.find_ingest_access(id, self.needs_limits()).await?;
        if let Some(limits) = limits {
            self.access.insert_limits(limits, now);
        }
        Ok(found)
    }

    /// Returns the caller that a new session of a member stands for.
    pub fn caller_of<'r>(
        &'r self,
        incoming: &'r ApiRequest,
        session: Session,
        member: Member,
    ) -> Result<Caller<'r>, Problem> {
        Caller::of_session(&self.store, &self.access, incoming, session, member, self.clock.now())
    }

    /// Counts a request by its credential. Fails with 429 over the limit. A project with a limit of
    /// its own counts alone.
    pub(super) async fn count_request(
        &self,
        credential: &Credential,
        own_limit: Option<(ProjectId, u32)>,
    ) -> Result<(), Problem> {
        if let Some((project, limit)) = own_limit {
            let limit = NonZeroU32::new(limit);
            return self.count(|| format!("requests#{credential}#{project}"), limit).await;
        }
        let limit = self.limits().most(Limit::RequestsPerMinute);
        self.count(|| format!("requests#{credential}"), limit).await
    }

    /// Counts a delivery to a project. Fails with 429 over the limit.
    ///
    /// Envelopes without an event have [`ENVELOPES_PER_EVENT`] times the limit of events.
    pub async fn count_delivery(
        &self,
        project: ProjectId,
        limits: &Limits,
        has_event: bool,
    ) -> Result<(), Problem> {
        let events = limits.most(Limit::EventsPerMinute);
        if has_event {
            return self.count(|| format!("events#{project}"), events).await;
        }
        let envelopes = events.map(|events| events.saturating_mul(ENVELOPES_PER_EVENT));
        self.count(|| format!("envelopes#{project}"), envelopes).await
    }

    /// Counts a replay segment of a project. Fails with 429 over the limit.
    pub async fn count_replay(&self, project: ProjectId, limits: &Limits) -> Result<(), Problem> {
        let limit = limits.most(Limit::ReplaysPerMinute);
        self.count(|| format!("replays#{project}"), limit).await
    }

    async fn count(
        &self,
        sender: impl FnOnce() -> String,
        limit: Option<NonZeroU32>,
    ) -> Result<(), Problem> {
        let Some(limit) = limit else { return Ok(()) };
        let (sender, now) = (sender(), self.clock.now());
        let counted = self.quotas.count(&self.store, &sender, limit, now).await;
        counted.map_err(|over| {
            if over.is_first {
                log_bound_met(SENDERS_OVER_QUOTA, &sender, now);
            }
            Problem::throttled(limit, over.retry_after)
        })
    }

    /// Returns the response to a rejected request: the replay of an earlier request with the same
    /// idempotency key, or else `rejection`. The earlier success can itself be the reason for the
    /// rejection.
    pub async fn replay_or(
        &self,
        rejection: impl Into<Problem>,
        request: Option<&IdempotentRequest>,
    ) -> Result<ApiResponse, Problem> {
        match self.store.find_replay(request, self.clock.now()).await? {
            Some(replay) => ApiResponse::replay(replay),
            None => Err(rejection.into()),
        }
    }

    /// Returns the cache of type `C`, which is created on first use. There is one cache per type.
    pub fn cache<C: Any + Default + Send + Sync>(&self) -> Arc<C> {
        // A panic while the lock was held cannot have left the map half-changed.
        let mut caches = self.caches.lock().unwrap_or_else(PoisonError::into_inner);
        let cache = caches.entry(TypeId::of::<C>()).or_insert_with(|| Arc::new(C::default()));
        // The entry of a type's id always has that type.
        Arc::clone(cache).downcast().unwrap_or_default()
    }

    /// Returns the key that signs list cursors.
    pub fn cursor_key(&self) -> Result<&CursorKey, Problem> {
        let missing = || Problem::internal(format!("{CURSOR_KEY_VARIABLE} is not set"));
        self.cursor_key.as_ref().ok_or_else(missing)
    }
}

/// The source of the current time.
#[derive(Debug)]
pub enum Clock {
    /// The system's clock.
    System,
    /// Milliseconds since the Unix epoch, set by a test.
    Fixed(AtomicU64),
}

impl Clock {
    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => SystemTime::now().into(),
            Self::Fixed(millis) => {
                let millis = millis.load(Ordering::Relaxed);
                Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
            }
        }
    }
}

/// The time by which a job must stop.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// Returns a deadline that is `time` from now.
    pub fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// Returns `true` if the deadline has passed.
    pub fn has_passed(self) -> bool {
        self.left().is_zero()
    }

    /// Returns the time left, or zero.
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}
