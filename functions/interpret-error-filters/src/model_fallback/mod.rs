//! A second opinion: where words of a query mean nothing to the interpreter, a model on Amazon
//! Bedrock may read the query again.
//!
//! No model is asked unless [`MODEL_VARIABLE`] names one. Of the model's answer, only filters pass that the
//! interpreter itself could have given. Otherwise, and without an answer in time, the interpreter's own
//! filters are returned.

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

/// Names the model that is asked: the id of a model or of an inference profile of Bedrock. Set by
/// `template.yaml`; where it is unset or empty, none is asked.
pub const MODEL_VARIABLE: &str = "WAYMARK_BEDROCK_MODEL_ID";

/// The name of the metric that counts 1 for an opinion that was taken and 0 for one that was not.
const OPINION_TAKEN: &str = "SecondOpinionTaken";

/// The longest that a model is waited for, all retries together.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// What is left of a request's time for the answer after a model that did not answer.
const ANSWER_MARGIN: Duration = Duration::from_millis(100);

static CONFIGURED: OnceLock<Model> = OnceLock::new();

/// Takes the model that the environment names, if it names one.
pub fn configure() -> Result<(), ClientError> {
    if let Some(model) = Model::from_environment()? {
        CONFIGURED.get_or_init(|| model);
    }
    Ok(())
}

/// The model that [`configure`] took.
pub(crate) fn configured() -> Option<&'static Model> {
    CONFIGURED.get()
}

/// Why an opinion was not taken. It is logged, so it says nothing of the query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpinionError {
    /// The model did not answer in time.
    #[error("the model did not answer in time")]
    Late,
    /// The categories and their values are more than a model reads in time.
    #[error("the categories are too large to send")]
    TooLarge,
    /// Bedrock refused, or could not be asked.
    #[error("Bedrock could not be asked: {0}")]
    Refused(String),
    /// The model did something else than to call its tool, once and completely.
    #[error("the model did not call its tool")]
    NoCall,
    /// The call does not have the form that the tool asks for.
    #[error("the model's call is not of the form that was asked for")]
    Malformed,
    /// A filter of the call is not valid against the request, or stands there twice.
    #[error("the model gave a filter that is not valid")]
    Invalid,
}

/// The filters that a query means after all: those of the model where it is worth asking and its
/// answer is sound, or else the interpreter's.
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
    let answer = timeout(model_timeout(incoming.elapsed()), model.ask(request)).await;
    let opinion = answer.unwrap_or(Err(OpinionError::Late)).and_then(|it| sound(request, it));
    let taken = if opinion.is_ok() { 1.0 } else { 0.0 };
    log_metric(incoming.operation(), OPINION_TAKEN, "Count", taken, app.clock.now());
    opinion.unwrap_or_else(|error| {
        tracing::warn!(
            requestId = incoming.request_id(),
            operation = incoming.operation(),
            cause = %error,
            "no second opinion"
        );
        interpretation.filters.clone()
    })
}

/// How long a model is waited for when so much of the request's time has passed.
fn model_timeout(passed: Duration) -> Duration {
    LONGEST_WAIT.min(TIME_BUDGET.saturating_sub(ANSWER_MARGIN).saturating_sub(passed))
}

/// The filters of a model, if all of them are valid: first those that stay, in their order
/// (`docs/semantics/error-filters.md`, "Rule 1: edits").
fn sound(request: &Request, answer: Vec<Filter>) -> Result<Vec<Filter>, OpinionError> {
    let given = answer.len();
    let mut filters = valid_filters(request, answer);
    if filters.len() < given {
        return Err(OpinionError::Invalid);
    }
    let old_place = |filter: &Filter| {
        request.current_filters.iter().position(|current| current == filter).unwrap_or(usize::MAX)
    };
    filters.sort_by_key(old_place);
    Ok(filters)
}

/// The model that the environment names.
fn model_id() -> Option<String> {
    env::var(MODEL_VARIABLE).ok().filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests;
