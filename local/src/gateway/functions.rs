//! Invoking functions, at most so many at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use serde_json::Value as Json;
use tokio::sync::Semaphore;

use crate::instance::{EXITED, TIMED_OUT};
use crate::watch::invocation_url;

/// How many invocations of one function are handed on at once. `cargo lambda watch` never answers
/// again once about 100 wait at one function.
const IN_FLIGHT: usize = 4;
/// How many more wait here. Beyond that, requests are answered as if API Gateway throttled them.
const WAITING: usize = 1_000;

/// Why there is no answer of a function.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvocationError {
    /// More wait for the function than can be kept.
    #[error("{} requests wait for this function already", WAITING)]
    TooMany,
    /// The function exceeded its time, its process ended, or `cargo lambda watch` cannot be reached.
    #[error("{0}")]
    NoAnswer(String),
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

/// What invokes functions.
pub(super) struct Functions {
    http: reqwest::Client,
    url: String,
    patience: Duration,
    timeouts: HashMap<String, Duration>,
    queues: Mutex<HashMap<String, Queue>>,
}

/// Who waits for a function.
#[derive(Clone)]
struct Queue {
    places: Arc<Semaphore>,
    turns: Arc<Semaphore>,
    /// `true` once the function has answered. The time of its first answer can include a build.
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
    /// Invokes functions at `url`. Each has `patience` for its first answer, and then its own timeout.
    pub(super) fn new(
        url: String,
        patience: Duration,
        timeouts: HashMap<String, Duration>,
    ) -> Self {
        Self { http: reqwest::Client::new(), url, patience, timeouts, queues: Mutex::default() }
    }

    /// Hands a function an event, once it is its turn, and answers what the function does.
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
        let too_late = format!("{function} did not answer within");
        let no_answer = move |limit: Duration| {
            Err(InvocationError::NoAnswer(format!("{too_late} {} seconds", limit.as_secs())))
        };
        let gave_up = no_answer.clone();
        // As with Lambda, an invocation goes on when the caller is gone: what is given up halfway
        // keeps a process of `cargo lambda watch` busy.
        let invocation = tokio::spawn(async move {
            let _place = place;
            let _turn = queue.turns.acquire().await;
            let limit = if queue.is_built.load(Ordering::Relaxed) { timeout } else { patience };
            let outcome = tokio::time::timeout(limit, send(request)).await;
            let outcome = outcome.unwrap_or_else(|_| no_answer(limit));
            let has_answered = !matches!(outcome, Err(InvocationError::NoAnswer(_)));
            queue.is_built.fetch_or(has_answered, Ordering::Relaxed);
            outcome
        });
        match tokio::time::timeout(patience, invocation).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => Err(InvocationError::Failed(error.to_string())),
            Err(_) => gave_up(patience),
        }
    }

    fn queue(&self, function: &str) -> Queue {
        // A panic while the lock was held cannot have left the map half-changed.
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.entry(function.to_owned()).or_default().clone()
    }
}

async fn send(request: reqwest::RequestBuilder) -> Result<Bytes, InvocationError> {
    let no_answer = |error: reqwest::Error| {
        InvocationError::NoAnswer(format!("the function cannot be invoked: {error}"))
    };
    let response = request.send().await.map_err(no_answer)?;
    let is_answer = response.status().is_success();
    let body = response.bytes().await.map_err(no_answer)?;
    if is_answer {
        return Ok(body);
    }
    // Lambda tells what a function died of in this form.
    let told: Json = serde_json::from_slice(&body).unwrap_or_default();
    let message = told.get("errorMessage").or_else(|| told.get("detail")).and_then(Json::as_str);
    let message = message.map_or_else(|| String::from_utf8_lossy(&body).into(), str::to_owned);
    match told.get("errorType").and_then(Json::as_str) {
        Some(EXITED | TIMED_OUT) => Err(InvocationError::NoAnswer(message)),
        _ => Err(InvocationError::Failed(format!("the function failed: {message}"))),
    }
}
