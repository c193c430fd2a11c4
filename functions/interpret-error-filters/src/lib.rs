//! Interprets a query in natural language as error filters.

pub mod model_fallback;
pub mod question;

use std::iter;

use model_fallback::{Model, configured, review};
use question::{Question, parse_explain};

use interpreter::interpret;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method};
use shared::json::Violations;
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/errors/filters/interpret",
    Access::ApiKey(Scope::ErrorsRead, |app, caller, incoming| {
        Box::pin(handle(app, caller, incoming, configured()))
    }),
);

/// Handles one request. `model` is the fallback for queries that are not fully understood.
pub async fn handle(
    app: &App,
    caller: &Caller<'_>,
    incoming: &ApiRequest,
    model: Option<&Model>,
) -> ApiResult {
    // Request. It contains everything that a query can name, so the project's data is not read.
    let mut violations = Violations::default();
    let explains = incoming.query_parameter("explain", &mut violations, parse_explain);
    let question = Question::noting(&incoming.json()?, &mut violations);
    let (question, explains) = violations.into_result(question.zip(explains))?;
    let project = &question.project;
    caller.projects(iter::once((project.written.as_str(), project.name.as_ref()))).await?;

    // Rules.
    let request = question.request();
    let interpretation = interpret(&request);
    let filters = match model {
        Some(model) => review(model, app, incoming, &request, &interpretation).await,
        None => interpretation.filters.clone(),
    };

    // Response.
    let mut response = question.response(filters);
    if explains == Some(true) {
        response.interpretation = Some(question.explain(&interpretation, &response));
    }
    ApiResponse::ok(&response)
}
