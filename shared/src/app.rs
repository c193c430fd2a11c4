//! What `main.rs` starts: configuration, clients, clock, and the loop around a handler.

use std::convert::Infallible;
use std::env;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt;
use lambda_http::http::header::HOST;
use lambda_http::http::{Method, Response};
use lambda_http::request::LambdaRequest;
use lambda_http::{Adapter, Body, Request, Service};
use lambda_runtime::{LambdaEvent, service_fn};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::de::IgnoredAny;
use uuid::Uuid;

use crate::auth::AccessCache;
use crate::errors::day::Day;
use crate::http::{Answer, CursorKey, Incoming, Problem, Protocol, preflight};
use crate::models::error::{ErrorDescription, ErrorId};
use crate::models::idempotency::IdempotentRequest;
use crate::models::project::ProjectId;
use crate::models::timestamp::Timestamp;
use crate::remembered_flags::RememberedFlags;
use crate::store::{Store, StoreError, client};
use crate::telemetry::{self, Spent};
use crate::usage::{Usage, counted};

/// The prefix of all table names, set by `template.yaml`.
pub const TABLE_PREFIX_VARIABLE: &str = "WAYMARK_TABLE_PREFIX";
/// The prefix where none is set.
pub const DEFAULT_TABLE_PREFIX: &str = "waymark-";

/// What the cursors of lists are signed with, set by `template.yaml` for functions that list.
pub const CURSOR_KEY_VARIABLE: &str = "WAYMARK_CURSOR_KEY";

/// How long a request may take before it is answered with 503, whatever it waits for. With the
/// first connection of a cold start, that leaves every caller an answer within 3 seconds.
pub const REQUEST_BUDGET: Duration = Duration::from_millis(2_400);
/// As long for an operation that counts events, of which there may be many: API Gateway waits for 30
/// seconds.
const LARGE_QUERY_BUDGET: Duration = Duration::from_secs(25);
/// How long a cold start may wait for its first connection.
const WARM_UP_BUDGET: Duration = Duration::from_millis(500);

/// Why a function could not start.
pub type StartError = lambda_runtime::Error;

/// All that an operation works with.
#[derive(Debug)]
pub struct App {
    /// The tables.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// New identifiers.
    pub ids: Ids,
    pub(crate) access: AccessCache,
    pub(crate) flags: RememberedFlags,
    cursor_key: Option<CursorKey>,
    is_cold: AtomicBool,
}

impl App {
    /// An app that remembers nothing yet.
    pub fn new(store: Store, clock: Clock, ids: Ids) -> Self {
        Self {
            store,
            clock,
            ids,
            access: AccessCache::default(),
            flags: RememberedFlags::default(),
            cursor_key: None,
            is_cold: AtomicBool::new(true),
        }
    }

    /// The app with a key for the cursors of its lists.
    #[must_use]
    pub fn with_cursor_key(mut self, key: Option<CursorKey>) -> Self {
        self.cursor_key = key;
        self
    }

    /// The answer to a request that is refused: that of its own earlier success under the same
    /// idempotency key, whose traces may be what is in the way now, or else the `refusal`.
    pub async fn repeated_or(
        &self,
        refusal: impl Into<Problem>,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer, Problem> {
        match self.store.find_repetition(request, self.clock.now()).await? {
            Some(repetition) => Answer::repeated(repetition),
            None => Err(refusal.into()),
        }
    }

    /// Opens a day of a project for events, unless a warm function remembers that it is open, and
    /// answers over how many partitions they are spread.
    pub async fn open_day(&self, project: ProjectId, day: Day) -> Result<u8, StoreError> {
        let now = self.clock.now();
        if let Some(lanes) = self.access.recall_day(project, day, now) {
            return Ok(lanes);
        }
        let lanes = self.store.open_day(project, day).await?;
        self.access.remember_day(project, day, lanes, now);
        Ok(lanes)
    }

    /// Spreads the events of a day over more partitions, of which `lanes` took no more.
    pub async fn add_lanes(
        &self,
        project: ProjectId,
        day: Day,
        lanes: u8,
    ) -> Result<u8, StoreError> {
        let lanes = self.store.add_lanes(project, day, lanes).await?;
        self.access.remember_day(project, day, lanes, self.clock.now());
        Ok(lanes)
    }

    /// Makes the error of a counted event known; a warm function remembers its id.
    pub async fn see_error(
        &self,
        project: ProjectId,
        description: &ErrorDescription,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        let fingerprint = description.fingerprint;
        let known = self.access.recall_error(project, fingerprint, now);
        let new = ErrorId::new(self.ids.new_uuid(now));
        let id = self.store.see_error(project, known, new, description, at).await?;
        self.access.remember_error(project, fingerprint, id, now);
        Ok(())
    }

    /// What was spent on a request or a run that began at `started`.
    fn spent(&self, started: Instant, usage: Usage) -> Spent {
        let is_cold_start = self.is_cold.swap(false, Ordering::Relaxed);
        Spent { duration: started.elapsed(), usage, is_cold_start }
    }

    /// What the cursors of lists are signed with.
    pub(crate) fn cursor_key(&self) -> Result<&CursorKey, Problem> {
        let missing = || Problem::internal(format!("{CURSOR_KEY_VARIABLE} is not set"));
        self.cursor_key.as_ref().ok_or_else(missing)
    }
}

/// Where the time comes from.
#[derive(Debug)]
pub enum Clock {
    /// The system's clock.
    System,
    /// Milliseconds since the Unix epoch, set by a test.
    Fixed(AtomicU64),
}

impl Clock {
    /// The current time.
    pub fn now(&self) -> Timestamp {
        let millis = match self {
            Self::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)),
            Self::Fixed(millis) => millis.load(Ordering::Relaxed),
        };
        Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }
}

/// Where new identifiers come from.
#[derive(Debug)]
pub enum Ids {
    /// The time and the system's randomness.
    Random,
    /// The time and a counter, for a test.
    Sequential(AtomicU64),
}

impl Ids {
    /// A new UUID of version 7, made at `now`.
    pub fn new_uuid(&self, now: Timestamp) -> Uuid {
        let mut tail = [0; 10];
        match self {
            Self::Random => {
                // Without the system's randomness the hasher's, seeded once per process, keeps
                // identifiers apart; that they cannot be guessed is not relied on.
                if getrandom::fill(&mut tail).is_err() {
                    use std::hash::{BuildHasher, RandomState};
                    let random = RandomState::new().hash_one(Instant::now());
                    tail[2..].copy_from_slice(&random.to_le_bytes());
                }
            }
            Self::Sequential(counter) => {
                let count = counter.fetch_add(1, Ordering::Relaxed);
                tail[2..].copy_from_slice(&count.to_be_bytes());
            }
        }
        let millis = u64::try_from(now.as_millis()).unwrap_or_default();
        uuid::Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
    }
}

/// What a handler gives back.
pub type Handling<'a> = Pin<Box<dyn Future<Output = Result<Answer, Problem>> + Send + 'a>>;

/// An operation: from a request to an answer, or to a problem.
pub type Handler = for<'a> fn(&'a App, &'a Incoming) -> Handling<'a>;

/// Starts a function: reads its configuration, opens its connection and answers requests, one at a
/// time, until Lambda stops it.
pub async fn serve(operation: &'static str, handler: Handler) -> Result<(), StartError> {
    telemetry::start();
    let store = Store::new(client::for_function()?, table_prefix());
    // Lambda gives a full CPU before the first request: a good time for a TLS handshake.
    let _ = tokio::time::timeout(WARM_UP_BUDGET, warm_up(&store, operation)).await;
    let app = &App::new(store, Clock::System, Ids::Random).with_cursor_key(cursor_key());
    let mut adapter = Adapter::from(service_fn(async |request: Request| {
        Ok::<_, Infallible>(respond(app, operation, handler, request).await)
    }));
    lambda_runtime::run(service_fn(move |mut event: LambdaEvent<LambdaRequest>| {
        make_readable(&mut event.payload);
        adapter.call(event)
    }))
    .await
}

/// Opens the connection of an operation's function, by a read that it may make anyway.
pub async fn warm_up(store: &Store, operation: &str) {
    // A delivery brings no API key.
    if Protocol::of(operation) == Protocol::Sentry {
        store.warm_up_delivery().await;
    } else {
        store.warm_up().await;
    }
}

/// What a scheduled job does, in the time that it has.
pub type Job = for<'a> fn(&'a App, Deadline) -> Running<'a>;

/// A job at work.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<(), StoreError>> + 'a>>;

/// Until when a job may work.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    /// A deadline after some time from now.
    pub fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// Whether it has passed.
    pub fn has_passed(self) -> bool {
        Instant::now() >= self.0
    }
}

/// How long before Lambda ends it a job stops by itself.
const JOB_MARGIN: Duration = Duration::from_secs(10);
/// How long a job works where nobody says when it ends, as on a laptop.
const JOB_BUDGET: Duration = Duration::from_secs(50);

/// Starts a function that a schedule invokes. What a job could not do is an error of the invocation,
/// so that AWS counts it; the next invocation goes on.
pub async fn serve_schedule(operation: &'static str, job: Job) -> Result<(), StartError> {
    telemetry::start();
    let store = Store::new(client::for_function()?, table_prefix());
    let app = &App::new(store, Clock::System, Ids::Random);
    lambda_runtime::run(service_fn(async |event: LambdaEvent<IgnoredAny>| {
        let started = Instant::now();
        let deadline = deadline(&event.context, app.clock.now());
        let (outcome, usage) = counted(job(app, deadline)).await;
        let spent = app.spent(started, usage);
        let (error, now) = (outcome.as_ref().err(), app.clock.now());
        telemetry::log_job(operation, &event.context, error, &spent, now);
        outcome.map_err(|_| "the job failed; the log says why")
    }))
    .await
}

/// When a job stops. The local stack gives invocations a deadline in the past.
fn deadline(context: &lambda_runtime::Context, now: Timestamp) -> Deadline {
    let now = u64::try_from(now.as_millis()).unwrap_or_default();
    match context.deadline.checked_sub(now).map(Duration::from_millis) {
        Some(left) if left > JOB_MARGIN => Deadline::after(left.saturating_sub(JOB_MARGIN)),
        Some(left) if !left.is_zero() => Deadline::after(left / 2),
        _ => Deadline::after(JOB_BUDGET),
    }
}

/// How long a request of an operation may take.
fn budget_of(operation: &str) -> Duration {
    match operation {
        "query-error-timeseries" | "list-errors" | "get-error" | "update-error" => {
            LARGE_QUERY_BUDGET
        }
        _ => REQUEST_BUDGET,
    }
}

fn table_prefix() -> String {
    env::var(TABLE_PREFIX_VARIABLE).unwrap_or_else(|_| DEFAULT_TABLE_PREFIX.to_owned())
}

fn cursor_key() -> Option<CursorKey> {
    env::var(CURSOR_KEY_VARIABLE).ok().filter(|key| !key.is_empty()).map(CursorKey::new)
}

/// What a URL cannot have in its query, beside what is not ASCII.
const NOT_IN_QUERIES: AsciiSet =
    CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'`').add(b'{').add(b'}');

/// Removes what the caller says of the host, for which no operation asks, and encodes what callers
/// leave unencoded in queries. The library makes a URL of them, and panics where that cannot be done.
fn make_readable(request: &mut LambdaRequest) {
    let (headers, more_headers) = match request {
        LambdaRequest::ApiGatewayV1(event) => {
            event.request_context.domain_name = None;
            (&mut event.headers, Some(&mut event.multi_value_headers))
        }
        LambdaRequest::ApiGatewayV2(event) => {
            event.request_context.domain_name = None;
            if let Some(query) = &mut event.raw_query_string {
                *query = utf8_percent_encode(query, &NOT_IN_QUERIES).to_string();
            }
            (&mut event.headers, None)
        }
        _ => return,
    };
    for headers in [Some(headers), more_headers].into_iter().flatten() {
        headers.remove(HOST);
        headers.remove("x-forwarded-proto");
    }
}

/// Answers one request, whatever happens: a problem, a panic and a request that takes too long all
/// become answers, and every answer is logged once.
pub async fn respond(
    app: &App,
    operation: &'static str,
    handler: Handler,
    request: Request,
) -> Response<Body> {
    let started = Instant::now();
    let incoming = Incoming::new(request);
    let protocol = Protocol::of(operation);
    let (outcome, usage) = if incoming.method() == Method::OPTIONS {
        (Ok(preflight(protocol)), Usage::default())
    } else {
        // A handler keeps nothing between requests but the caches, whose locks recover.
        let handling = AssertUnwindSafe(handler(app, &incoming)).catch_unwind();
        let budget = budget_of(operation);
        let in_time = tokio::time::timeout(budget, handling);
        let (ended, usage) = counted(in_time).await;
        let outcome = match ended {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Problem::internal("panic; the line before tells where")),
            Err(_) => Err(Problem::timed_out(budget.as_secs_f32())),
        };
        (outcome, usage)
    };
    let (answer, problem) = match outcome {
        Ok(answer) => (answer, None),
        Err(problem) => (problem.to_answer(&incoming, protocol), Some(problem)),
    };
    let spent = app.spent(started, usage);
    telemetry::log_request(
        operation,
        &incoming,
        &answer,
        problem.as_ref(),
        &spent,
        app.clock.now(),
    );
    answer.into_response(incoming.request_id())
}

#[cfg(test)]
mod tests {
    use lambda_http::RequestExt;
    use serde_json::json;

    use super::*;

    #[test]
    fn whatever_a_caller_sends_as_host_and_query_can_be_read() {
        for query in ["a=\"x\"&b=<y> z", "a=é`{}|\\^", "a=%22%zz#b", "a=\u{7f}\t", ""] {
            let event = json!({
                "version": "2.0", "routeKey": "$default", "rawPath": "/", "rawQueryString": query,
                "headers": {"host": "a b"}, "isBase64Encoded": false,
                "requestContext": {"http": {"method": "GET", "path": "/"}, "domainName": "a b"},
            });
            let mut event: LambdaRequest = serde_json::from_value(event).unwrap();
            make_readable(&mut event);
            let request = Request::from(event);
            let read = request.query_string_parameters();
            let first = query.split('&').next().and_then(|it| it.strip_prefix("a="));
            let expected = first.map(|value| value.replace("%22", "\""));
            assert_eq!(read.first("a"), expected.as_deref(), "{query:?}");
        }
    }
}
