//! Reads a replay insight.

use insights::http;
use insights::store::InsightStore;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method};
use shared::json::Violations;
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects/{idOrSlug}/replay-insights/{insightId}",
    Access::ApiKey(Scope::InsightsRead, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    let mut violations = Violations::default();
    let id = http::insight_id(incoming, &mut violations);
    let id = violations.into_result(id)?;
    let project_id = caller.project()?;

    let insight = InsightStore::new(&app.store).find_insight(project_id, id).await?;
    let insight = insight.ok_or_else(http::insight_not_found)?;
    ApiResponse::ok(&insight.at(app.clock.now()))?.with_version(insight.version)
}
