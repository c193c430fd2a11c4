//! Changes title, description, status or `viewed` of a replay insight. Undoes a merge if it sets
//! the status of a merged insight.

use std::iter;

use insights::draft::InsightPatch;
use insights::store::{InsightStore, InsightWrite, RequestRecord};
use insights::{Insight, Rejection, http};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::dynamodb::ConflictRetry;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem};
use shared::json::Violations;
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::PATCH,
    "/v0/projects/{idOrSlug}/replay-insights/{insightId}",
    Access::ApiKey(Scope::InsightsWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let mut violations = Violations::default();
    let id = http::insight_id(incoming, &mut violations);
    let id = violations.into_result(id)?;
    let if_match = incoming.if_match();
    let project_id = caller.project()?;
    let patch = InsightPatch::read(&incoming.merge_patch()?)?;

    let now = app.clock.now();
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the current insight.
        let insight = InsightStore::new(&app.store).find_insight(project_id, id).await?;
        let mut insight = insight.ok_or_else(http::insight_not_found)?;

        // Rules.
        if_match.check(insight.version)?;
        let mut receiver = None;
        if let (Some(into), Some(status)) = (insight.status.merged_into(), patch.status) {
            let found = InsightStore::new(&app.store).find_insight(project_id, into).await?;
            let mut found = found.ok_or(Rejection::Merged)?;
            let undone = insight.undo_merge(&mut found, status, || app.ids.new_uuid(now));
            if let Err(rejection) = undone {
                // A concurrent undo can precede the read of the receiver.
                let again = InsightStore::new(&app.store).find_insight(project_id, id).await?;
                if again.is_some_and(|again| again.version != insight.version) {
                    continue;
                }
                return Err(rejection.into());
            }
            receiver = Some(found);
        }
        insight.apply(patch.clone())?;

        // Storage and response.
        let response = ApiResponse::ok(&insight.at(now))?.with_version(insight.version)?;
        let changed: Vec<&Insight> = iter::once(&insight).chain(&receiver).collect();
        let written = InsightStore::new(&app.store)
            .save_insights(&changed, RequestRecord::None, None, now)
            .await?;
        if written == InsightWrite::Done {
            return Ok(response);
        }
    }
    Err(Problem::conflict("the insight kept changing"))
}
