//! Lists the pain points of a replay insight, the latest first: GET
//! `/v0/projects/{idOrSlug}/replay-insights/{insightId}/pain-points`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem, page_answer, read_page_request};
use shared::json::Violations;
use shared::models::api_key::Scope;
use shared::models::page::Page;

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
    let id = incoming.insight_id(&mut violations);
    let page_request = read_page_request(app, incoming, &list, &mut violations)?;
    let (id, page_request) = violations.into_result(id.zip(page_request))?;
    let project_id = caller.project()?;

    // Storage: the insight tells which pain points there are, in which order.
    let insight = app.store.find_insight(project_id, id).await?;
    let insight = insight.ok_or_else(Problem::insight_not_found)?;
    let members = insight.page_of_members(&page_request);
    let details = app.store.find_pain_points(project_id, members.items.iter().copied()).await?;

    // Answer.
    let in_order = members.items.iter().filter_map(|id| details.get(id));
    page_answer(app, &list, &Page { items: in_order.collect(), end: members.end })
}
