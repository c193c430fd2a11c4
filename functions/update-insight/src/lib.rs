//! Changes title, description, status or `viewed` of a replay insight: PATCH
//! `/v0/projects/{idOrSlug}/replay-insights/{insightId}`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem};
use shared::json::Violations;
use shared::models::api_key::Scope;
use shared::models::insight::draft::InsightPatch;
use shared::store::{Attempts, InsightWrite, Together};

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::InsightsWrite)?;
    let mut violations = Violations::default();
    let id = incoming.insight_id(&mut violations);
    let id = violations.into_result(id)?;
    let if_match = incoming.if_match();
    let project_id = caller.project()?;
    let patch = InsightPatch::read(&incoming.merge_patch()?)?;

    let now = app.clock.now();
    let mut attempts = Attempts::default();
    while attempts.another().await {
        // Storage: the insight as it is.
        let insight = app.store.find_insight(project_id, id).await?;
        let mut insight = insight.ok_or_else(Problem::insight_not_found)?;

        // Rules.
        if_match.check(insight.version)?;
        insight.apply(patch.clone())?;

        // Storage and answer.
        let answer = Answer::ok(&insight.at(now))?.with_version(insight.version)?;
        let written = app.store.save_insights(&[&insight], Together::Nothing, None, now).await?;
        if written == InsightWrite::Done {
            return Ok(answer);
        }
    }
    Err(Problem::conflict("the insight kept changing"))
}
