//! What a function is: an operation of the API, or a job of a schedule. Each function declares itself
//! as one of them, and [`super::serve`] serves it.

use std::pin::Pin;
use std::time::Duration;

use crate::auth::Caller;
use crate::dynamodb::StoreError;
use crate::http::{ApiRequest, ApiResponse, Method, Problem, Protocol};
use crate::projects::api_key::Scope;

use super::state::{App, Deadline};

/// How long a request may take before it is answered with 503, whatever it waits for. With the
/// first connection of a cold start, that leaves every caller an answer within 3 seconds.
pub const TIME_BUDGET: Duration = Duration::from_millis(2_400);
/// As long for an operation that counts events, of which there may be many: API Gateway waits for 30
/// seconds.
pub const COUNTING_TIME_BUDGET: Duration = Duration::from_secs(25);

/// An operation of the API.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Its name: the `operationId` of `openapi.yaml`, the function's folder, its name in the log and
    /// among idempotency keys.
    pub name: &'static str,
    /// Its method.
    pub method: Method,
    /// Its path, as `openapi.yaml` writes it. A function may answer others too, as told there.
    pub path: &'static str,
    /// Who may call it, and what then answers.
    pub access: Access,
    /// What its clients speak.
    pub protocol: Protocol,
    /// How long a request may take.
    pub time_budget: Duration,
}

/// Who may call an operation, and what answers whom it lets in.
#[derive(Debug, Clone, Copy)]
pub enum Access {
    /// Whoever has an API key with the scope.
    ApiKey(Scope, KeyHandler),
    /// Whoever has an API key, whatever its scopes are.
    AnyApiKey(KeyHandler),
    /// Whoever knows the key of a project's DSN, which the handler checks.
    Dsn(Handler),
    /// Anybody: what it answers is no secret, or the handler checks what the request brings.
    Public(Handler),
}

/// What an operation does for a caller: a request in, an answer or a problem out.
pub type KeyHandler = for<'a> fn(&'a App, &'a Caller<'a>, &'a ApiRequest) -> ResponseFuture<'a>;

/// What an operation does that has no caller with an API key.
pub type Handler = for<'a> fn(&'a App, &'a ApiRequest) -> ResponseFuture<'a>;

/// A request at work.
pub type ResponseFuture<'a> =
    Pin<Box<dyn Future<Output = Result<ApiResponse, Problem>> + Send + 'a>>;

impl Operation {
    /// An operation that speaks this API's own protocol within the usual time.
    pub const fn new(
        name: &'static str,
        method: Method,
        path: &'static str,
        access: Access,
    ) -> Self {
        let (protocol, time_budget) = (Protocol::WAYMARK, TIME_BUDGET);
        Self { name, method, path, access, protocol, time_budget }
    }

    /// The operation with clients that speak another protocol.
    #[must_use]
    pub const fn speaking(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// The operation with another time for each request.
    #[must_use]
    pub const fn within(mut self, time_budget: Duration) -> Self {
        self.time_budget = time_budget;
        self
    }

    /// The scope that a caller's API key must have, if it must have one.
    pub fn scope(&self) -> Option<Scope> {
        match self.access {
            Access::ApiKey(scope, _) => Some(scope),
            Access::AnyApiKey(_) | Access::Dsn(_) | Access::Public(_) => None,
        }
    }
}

/// A job of a schedule.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// Its name: the function's folder, and its name in the log.
    pub name: &'static str,
    /// What it does in the time that it has. It may be ended at any moment; the next run goes on.
    pub run: for<'a> fn(&'a App, Deadline) -> JobFuture<'a>,
}

/// A job at work.
pub type JobFuture<'a> = Pin<Box<dyn Future<Output = Result<(), StoreError>> + 'a>>;
