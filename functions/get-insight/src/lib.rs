//! Reads a replay insight: GET `/v0/projects/{idOrSlug}/replay-insights/{insightId}`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem};
use shared::json::Violations;
use shared::models::api_key::Scope;

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::InsightsRead)?;
    let mut violations = Violations::default();
    let id = incoming.insight_id(&mut violations);
    let id = violations.into_result(id)?;
    let project_id = caller.project()?;

    let insight = app.store.find_insight(project_id, id).await?;
    let insight = insight.ok_or_else(Problem::insight_not_found)?;
    Answer::ok(&insight.at(app.clock.now()))?.with_version(insight.version)
}
