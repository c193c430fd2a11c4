//! Invokes functions, with a limited number of concurrent invocations.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use serde_json::Value as Json;
use tokio::sync::Semaphore;

use crate::instance::{EXITED, TIMED_OUT};
use crate::watch::invocation_url;

/// Concurrent invocations per function. With about 100 waiting at one function,
/// `cargo lambda watch` stops responding permanently.
const IN_FLIGHT: usize = 4;
/// Waiting invocations per function. Further requests are rejected like API Gateway's throttling.
const WAITING: usize = 1_000;

/// The reason why a function did not respond.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvocationError {
    /// The function's queue is full.
    #[error("{} requests are already waiting for this function", WAITING)]
    TooMany,
    /// The function timed out, its process ended, or `cargo lambda watch` is unreachable.
    #[error("{0}")]
    NoResponse(String),
    /// The function failed.
    #[error("{0}")]
    Failed(String),
}

/// Invokes functions through `cargo lambda watch`.
pub(super) struct Functions {
    http: reqwest::Client,
    url: String,
    patience: Duration,
    timeouts: HashMap<String, Duration>,
    queues: Mutex<HashMap<String, Queue>>,
}

/// The queue of a function.
#[derive(Clone)]
struct Queue {
    places: Arc<Semaphore>,
    turns: Arc<Semaphore>,
    /// `true` after the first response, which can include a build.
    is_built: Arc<AtomicBool>,
}

impl Default for Queue {
    fn default() -> Self {
        let places = Arc::new(Semaphore::new(IN_FLIGHT + WAITING));
        let turns = Arc::new(Semaphore::new(IN_FLIGHT));
        Self { places, turns, is_built: Arc::default() }
    }
}

impl Functions {
    /// Invokes functions at `url`. The first response of a function must arrive within `patience`,
    /// later ones within its timeout.
    pub(super) fn new(
        url: String,
        patience: Duration,
        timeouts: HashMap<String, Duration>,
    ) -> Self {
        Self { http: reqwest::Client::new(), url, patience, timeouts, queues: Mutex::default() }
    }

    /// Queues an event for a function, and returns the function's response.
    pub(super) async fn invoke(
        &self,
        function: &str,
        event: Vec<u8>,
    ) -> Result<Bytes, InvocationError> {
        let queue = self.queue(function);
        let place = queue.places.try_acquire_owned().map_err(|_| InvocationError::TooMany)?;
        let request = self
            .http
            .post(invocation_url(&self.url, function))
            .header("content-type", "application/json")
            .body(event);
        let patience = self.patience;
        let timeout = self.timeouts.get(function).copied().unwrap_or(patience);
        let too_late = format!("{function} did not respond within");
        let no_response = move |limit: Duration| {
            Err(InvocationError::NoResponse(format!("{too_late} {} seconds", limit.as_secs())))
        };
        let gave_up = no_response.clone();
        // As in Lambda, an invocation continues if the caller disconnects. Canceled invocations
        // would keep a process of `cargo lambda watch` busy.
        let invocation = tokio::spawn(async move {
            let _place = place;
            let _turn = queue.turns.acquire().await;
            let limit = if queue.is_built.load(Ordering::Relaxed) { timeout } else { patience };
            let outcome = tokio::time::timeout(limit, send(request)).await;
            let outcome = outcome.unwrap_or_else(|_| no_response(limit));
            let has_responded = !matches!(outcome, Err(InvocationError::NoResponse(_)));
            queue.is_built.fetch_or(has_responded, Ordering::Relaxed);
            outcome
        });
        match tokio::time::timeout(patience, invocation).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => Err(InvocationError::Failed(error.to_string())),
            Err(_) => gave_up(patience),
        }
    }

    fn queue(&self, function: &str) -> Queue {
        // A panic cannot have left the map in an invalid state.
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.entry(function.to_owned()).or_default().clone()
    }
}

async fn send(request: reqwest::RequestBuilder) -> Result<Bytes, InvocationError> {
    let no_response = |error: reqwest::Error| {
        InvocationError::NoResponse(format!("the function cannot be invoked: {error}"))
    };
    let response = request.send().await.map_err(no_response)?;
    let is_success = response.status().is_success();
    let body = response.bytes().await.map_err(no_response)?;
    if is_success {
        return Ok(body);
    }
    // Lambda reports failures in this format.
    let error: Json = serde_json::from_slice(&body).unwrap_or_default();
    let message = error.get("errorMessage").or_else(|| error.get("detail")).and_then(Json::as_str);
    let message = message.map_or_else(|| String::from_utf8_lossy(&body).into(), str::to_owned);
    match error.get("errorType").and_then(Json::as_str) {
        Some(EXITED | TIMED_OUT) => Err(InvocationError::NoResponse(message)),
        _ => Err(InvocationError::Failed(format!("the function failed: {message}"))),
    }
}
