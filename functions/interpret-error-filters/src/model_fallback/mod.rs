//! The model fallback: if the interpreter does not understand some words of a query, a model on
//! Amazon Bedrock can read the query.
//!
//! The model is called only if [`MODEL_VARIABLE`] names one. Its filters are used only if the
//! interpreter itself could have returned them. Otherwise, or without a reply in time, the
//! interpreter's own filters are returned.

mod bedrock;
mod prompt;
mod reply;

use std::env;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::timeout;

use interpreter::{Filter, Interpretation, Request, valid_filters};
use shared::app::{App, TIME_BUDGET};
use shared::dynamodb::client::ClientError;
use shared::http::ApiRequest;
use shared::telemetry::log_metric;

pub use bedrock::Model;

/// Environment variable with the id of a Bedrock model or inference profile. `template.yaml` sets
/// it. If it is unset or empty, no model is called.
pub const MODEL_VARIABLE: &str = "WAYMARK_BEDROCK_MODEL_ID";

/// Name of the metric that counts 1 for used model filters and 0 for rejected ones.
const FALLBACK_USED: &str = "ModelFallbackUsed";

/// Maximum wait for a model, including all retries.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// Time reserved for the response if the model does not reply.
const RESPONSE_MARGIN: Duration = Duration::from_millis(100);

static CONFIGURED: OnceLock<Model> = OnceLock::new();

/// Configures the model that the environment names, if any.
pub fn configure() -> Result<(), ClientError> {
    if let Some(model) = Model::from_environment()? {
        CONFIGURED.get_or_init(|| model);
    }
    Ok(())
}

/// Returns the model that [`configure`] set.
pub(crate) fn configured() -> Option<&'static Model> {
    CONFIGURED.get()
}

/// The reason why a model's filters are not used. It is logged, so it contains nothing of the
/// query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FallbackError {
    /// The model did not reply in time.
    #[error("the model did not reply in time")]
    Late,
    /// The categories and their values are more than a model can read in time.
    #[error("the categories are too large to send")]
    TooLarge,
    /// Bedrock rejected the call, or was unreachable.
    #[error("Bedrock could not be asked: {0}")]
    Refused(String),
    /// The model did not call its tool exactly once and completely.
    #[error("the model did not call its tool")]
    NoCall,
    /// The call does not have the form of the tool.
    #[error("the model's call does not have the requested form")]
    Malformed,
    /// A filter of the call is invalid for the request, or is repeated.
    #[error("the model returned an invalid filter")]
    Invalid,
}

/// Returns the model's filters if a call is worthwhile and all of them are valid, else the
/// interpreter's filters.
pub async fn review(
    model: &Model,
    app: &App,
    incoming: &ApiRequest,
    request: &Request,
    interpretation: &Interpretation,
) -> Vec<Filter> {
    if interpretation.unexplained.is_empty() || request.categories.is_empty() {
        return interpretation.filters.clone();
    }
    let reply = timeout(model_timeout(incoming.elapsed()), model.call(request)).await;
    let filters = reply.unwrap_or(Err(FallbackError::Late)).and_then(|it| validated(request, it));
    let used = if filters.is_ok() { 1.0 } else { 0.0 };
    log_metric(incoming.operation(), FALLBACK_USED, "Count", used, app.clock.now());
    filters.unwrap_or_else(|error| {
        tracing::warn!(
            requestId = incoming.request_id(),
            operation = incoming.operation(),
            cause = %error,
            "model fallback failed"
        );
        interpretation.filters.clone()
    })
}

/// Returns the maximum wait for a model after `passed` of the request's time.
fn model_timeout(passed: Duration) -> Duration {
    LONGEST_WAIT.min(TIME_BUDGET.saturating_sub(RESPONSE_MARGIN).saturating_sub(passed))
}

/// Returns the filters of a model if all are valid, with remaining current filters first and in
/// their order (`docs/semantics/error-filters.md`, "Rule 1: edits").
fn validated(request: &Request, reply: Vec<Filter>) -> Result<Vec<Filter>, FallbackError> {
    let given = reply.len();
    let mut filters = valid_filters(request, reply);
    if filters.len() < given {
        return Err(FallbackError::Invalid);
    }
    let old_place = |filter: &Filter| {
        request.current_filters.iter().position(|current| current == filter).unwrap_or(usize::MAX)
    };
    filters.sort_by_key(old_place);
    Ok(filters)
}

/// Returns the model id from the environment.
fn model_id() -> Option<String> {
    env::var(MODEL_VARIABLE).ok().filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests;
