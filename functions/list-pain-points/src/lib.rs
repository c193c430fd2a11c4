//! Lists the pain points of a replay insight, the latest first.

use insights::http;
use insights::store::InsightStore;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, page_response, read_page_request};
use shared::json::Violations;
use shared::page::Page;
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects/{idOrSlug}/replay-insights/{insightId}/pain-points",
    Access::ApiKey(Scope::InsightsRead, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let mut violations = Violations::default();
    let id = http::insight_id(incoming, &mut violations);
    let page_request = read_page_request(app.cursor_key()?, incoming, &mut violations);
    let (id, page_request) = violations.into_result(id.zip(page_request))?;
    let project_id = caller.project()?;

    // Storage: the insight lists its pain points in order.
    let insight = InsightStore::new(&app.store).find_insight(project_id, id).await?;
    let insight = insight.ok_or_else(http::insight_not_found)?;
    let members = insight.page_of_members(&page_request);
    let details =
        InsightStore::new(&app.store).list_pain_points(project_id, &members.items).await?;

    // Response.
    let in_order = members.items.iter().filter_map(|id| details.get(id));
    page_response(
        app.cursor_key()?,
        incoming,
        &Page { items: in_order.collect(), end: members.end },
    )
}
