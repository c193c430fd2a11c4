//! Lists a project's replay insights by their last occurrence, latest first.

use insights::StatusFilter;
use insights::store::InsightStore;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, page_response, read_page_request};
use shared::json::Violations;
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects/{idOrSlug}/replay-insights",
    Access::ApiKey(Scope::InsightsRead, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let mut violations = Violations::default();
    let status = incoming.query_parameter("status", &mut violations, StatusFilter::parse);
    let page_request = read_page_request(app.cursor_key()?, incoming, &mut violations);
    let (status, page_request) = violations.into_result(status.zip(page_request))?;
    let project_id = caller.project()?;

    // Storage and response.
    let page =
        InsightStore::new(&app.store).list_insights(project_id, status, &page_request).await?;
    let now = app.clock.now();
    page_response(app.cursor_key()?, incoming, &page.map(|insight| insight.at(now)))
}
