//! Lists a project's replay insights, the one last seen latest first: GET `/v0/projects/{idOrSlug}/replay-insights`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem, page_answer, read_page_request};
use shared::json::Violations;
use shared::models::api_key::Scope;
use shared::models::insight::StatusFilter;

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::InsightsRead)?;
    // The cursor belongs to the list of the path as it was sent.
    let list = format!("{OPERATION}/{}", incoming.path());
    let mut violations = Violations::default();
    let status = incoming.query_parameter("status", &mut violations, StatusFilter::parse);
    let page_request = read_page_request(app, incoming, &list, &mut violations)?;
    let (status, page_request) = violations.into_result(status.zip(page_request))?;
    let project_id = caller.project()?;

    // Storage and answer.
    let page = app.store.list_insights(project_id, status, &page_request).await?;
    let now = app.clock.now();
    page_answer(app, &list, &page.map(|insight| insight.at(now)))
}
