//! Operations of the API and scheduled jobs. Each function declares one of them, and
//! [`super::serve`] or [`super::serve_job`] serves it.

use std::pin::Pin;
use std::time::Duration;

use crate::auth::Caller;
use crate::dynamodb::StoreError;
use crate::http::{ApiRequest, ApiResult, Method, Protocol};
use crate::projects::api_key::Scope;

use super::state::{App, Deadline};

/// Time limit of a request, after which the response is 503. With the first connection of a cold
/// start, every response arrives within 3 seconds.
pub const TIME_BUDGET: Duration = Duration::from_millis(2_400);
/// Time limit of a request that counts events, which can be many. API Gateway waits 30 seconds.
pub const COUNTING_TIME_BUDGET: Duration = Duration::from_secs(25);

/// An operation of the API.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The `operationId` in `openapi.yaml`. It is also the function's folder and its name in logs
    /// and idempotency scopes.
    pub name: &'static str,
    /// The HTTP method.
    pub method: Method,
    /// The path, as in `openapi.yaml`, which can list more paths for the function.
    pub path: &'static str,
    /// The required credential and the handler.
    pub access: Access,
    /// The protocol of its clients.
    pub protocol: Protocol,
    /// Time limit of a request.
    pub time_budget: Duration,
    /// A scope that is as good as the required one, if any.
    pub other_scope: Option<Scope>,
}

/// The credential that an operation requires, with the handler of its requests.
#[derive(Debug, Clone, Copy)]
pub enum Access {
    /// An API key with this scope.
    ApiKey(Scope, KeyHandler),
    /// Any API key, regardless of its scopes.
    AnyApiKey(KeyHandler),
    /// The key of a project's DSN, which the handler checks.
    Dsn(Handler),
    /// No credential: the response is public, or the handler checks the request.
    Public(Handler),
}

/// A handler of requests with an API key.
pub type KeyHandler = for<'a> fn(&'a App, &'a Caller<'a>, &'a ApiRequest) -> ResponseFuture<'a>;

/// A handler of requests without an API key.
pub type Handler = for<'a> fn(&'a App, &'a ApiRequest) -> ResponseFuture<'a>;

/// The future that a handler returns.
pub type ResponseFuture<'a> = Pin<Box<dyn Future<Output = ApiResult> + Send + 'a>>;

/// Returns the [`KeyHandler`](crate::app::KeyHandler) of an async function, or its
/// [`Handler`](crate::app::Handler) for requests without an API key.
#[macro_export]
macro_rules! handler {
    ($handle:ident) => {
        |app, caller, incoming| Box::pin($handle(app, caller, incoming))
    };
    ($handle:ident without caller) => {
        |app, incoming| Box::pin($handle(app, incoming))
    };
}

impl Operation {
    /// Creates an operation with Waymark's own protocol and [`TIME_BUDGET`].
    pub const fn new(
        name: &'static str,
        method: Method,
        path: &'static str,
        access: Access,
    ) -> Self {
        let (protocol, time_budget) = (Protocol::WAYMARK, TIME_BUDGET);
        Self { name, method, path, access, protocol, time_budget, other_scope: None }
    }

    /// Sets another protocol.
    #[must_use]
    pub const fn speaking(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Sets another time limit of a request.
    #[must_use]
    pub const fn within(mut self, time_budget: Duration) -> Self {
        self.time_budget = time_budget;
        self
    }

    /// Admits keys with another scope too.
    #[must_use]
    pub const fn or_scope(mut self, scope: Scope) -> Self {
        self.other_scope = Some(scope);
        self
    }

    /// Returns the scope that the caller's API key needs, if any.
    pub fn scope(&self) -> Option<Scope> {
        match self.access {
            Access::ApiKey(scope, _) => Some(scope),
            Access::AnyApiKey(_) | Access::Dsn(_) | Access::Public(_) => None,
        }
    }
}

/// A scheduled job.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// The function's folder and its name in logs.
    pub name: &'static str,
    /// Runs until the deadline. Lambda can end it at any moment; the next invocation continues.
    pub run: for<'a> fn(&'a App, Deadline) -> JobFuture<'a>,
}

/// The future that a job returns.
pub type JobFuture<'a> = Pin<Box<dyn Future<Output = Result<(), StoreError>> + 'a>>;
