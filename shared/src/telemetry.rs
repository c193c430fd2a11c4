//! Structured logs: one JSON line per request on standard output, where Lambda collects it.
//!
//! The line names the key id, never the key, and nothing of the body or the headers.

use std::any::Any;
use std::time::Duration;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::http::{Answer, Incoming, Problem};
use crate::models::timestamp::Timestamp;
use crate::store::StoreError;

/// Starts logging at the level that Lambda's logging configuration names, `INFO` by default.
/// Libraries log warnings only: their finer levels would show requests.
pub(crate) fn start() {
    let level = std::env::var("AWS_LAMBDA_LOG_LEVEL").ok().and_then(|level| level.parse().ok());
    let level = level.unwrap_or(LevelFilter::INFO);
    let filter = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target(env!("CARGO_CRATE_NAME"), level);
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_target(false);
    // A second start, as in tests that share a process, keeps the first one's logging.
    let _ = tracing_subscriber::registry().with(lines).with(filter).try_init();
}

/// Logs one request and its answer. Problems of the service are errors, those of the caller are not.
pub(crate) fn log_request(
    operation: &str,
    incoming: &Incoming,
    answer: &Answer,
    problem: Option<&Problem>,
    duration: Duration,
) {
    let status = answer.status().as_u16();
    macro_rules! log {
        ($level:ident) => {
            tracing::$level!(
                requestId = incoming.request_id(),
                operation,
                method = incoming.method().as_str(),
                status,
                code = problem.map(|problem| problem.code().as_str()),
                cause = problem.and_then(Problem::cause),
                keyId = incoming.key_id.get().map(|id| id.as_str()),
                projectId = incoming.project_id.get().map(tracing::field::display),
                durationMs = duration.as_secs_f64() * 1_000.0,
                "request"
            )
        };
    }
    if status >= 500 { log!(error) } else { log!(info) }
}

/// Logs one run of a scheduled job.
pub(crate) fn log_job(
    operation: &str,
    request_id: &str,
    error: Option<&StoreError>,
    duration: Duration,
) {
    let cause = error.map(ToString::to_string);
    macro_rules! log {
        ($level:ident) => {
            tracing::$level!(
                requestId = request_id,
                operation,
                cause,
                durationMs = duration.as_secs_f64() * 1_000.0,
                "job"
            )
        };
    }
    if cause.is_some() { log!(error) } else { log!(info) }
}

/// Logs a metric in the embedded metric format of AWS's monitoring, which makes a metric of the
/// namespace `Waymark` of a line of this form.
#[allow(clippy::print_stdout)] // The format is a line of its own, without the log's other members.
pub fn log_metric(operation: &str, name: &str, unit: &str, value: f64, now: Timestamp) {
    let line = serde_json::json!({
        "_aws": {
            "Timestamp": now.as_millis(),
            "CloudWatchMetrics": [{
                "Namespace": "Waymark",
                "Dimensions": [["stack", "operation"]],
                "Metrics": [{"Name": name, "Unit": unit}],
            }],
        },
        "stack": std::env::var("WAYMARK_STACK").unwrap_or_default(),
        "operation": operation,
        name: value,
    });
    println!("{line}");
}

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let message = panic.downcast_ref::<&str>().copied();
    let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", message.unwrap_or("no message"))
}
