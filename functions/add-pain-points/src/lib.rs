//! Adds pain points to a replay insight.

use insights::draft::{MAX_PAIN_POINTS_BYTES, read_upload};
use insights::store::{BatchId, ClaimOutcome, InsightStore, InsightWrite, RequestRecord};
use insights::{PainPointId, http};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::dynamodb::{ConflictRetry, Idempotent};
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem};
use shared::json::Violations;
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/projects/{idOrSlug}/replay-insights/{insightId}/pain-points",
    Access::ApiKey(Scope::InsightsWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let mut violations = Violations::default();
    let id = http::insight_id(incoming, &mut violations);
    let request = incoming.read_idempotent(caller.credential(), &mut violations);
    let (id, request) = violations.into_result(id.zip(request))?;
    let project_id = caller.project()?;
    let pain_points = read_upload(&incoming.large_json(MAX_PAIN_POINTS_BYTES)?)?;

    let now = app.clock.now();
    let new_id = || app.ids.new_uuid(now);
    // A new batch has the latest id, so it gives way in a conflict.
    let new_batch = || BatchId::new(app.ids.new_uuid(app.clock.now()));
    let mut batch = new_batch();
    let mut taken = Vec::new();
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the current insight.
        let Some(mut insight) = InsightStore::new(&app.store).find_insight(project_id, id).await?
        else {
            return app.replay_or(http::insight_not_found(), request.as_ref()).await;
        };

        // Rules: pain points that the insight already has count once; those of another insight are
        // rejected. A concurrent duplicate of this request might have just taken pain points.
        let new = insight.missing(&pain_points);
        let elsewhere: Vec<PainPointId> =
            new.iter().map(|pain_point| pain_point.id).filter(|id| taken.contains(id)).collect();
        if !elsewhere.is_empty() {
            let rejection = http::pain_point_exists(&elsewhere);
            return app.replay_or(rejection, request.as_ref()).await;
        }
        if let Err(rejection) = insight.add(&new, new_id) {
            return app.replay_or(rejection, request.as_ref()).await;
        }

        // Storage and response.
        match InsightStore::new(&app.store).claim_pain_points(project_id, batch, &new, now).await? {
            ClaimOutcome::Claimed => {}
            ClaimOutcome::InProgress => continue,
            ClaimOutcome::GivenUp => {
                batch = new_batch();
                continue;
            }
            ClaimOutcome::Taken(ids) => {
                (taken, batch) = (ids, new_batch());
                continue;
            }
        }
        let response = ApiResponse::ok(&insight.at(now))?.with_version(insight.version)?;
        let stored_response = response.to_stored();
        let idempotent = Idempotent::of(request.as_ref(), &stored_response);
        let request_record = RequestRecord::Batch(batch);
        match InsightStore::new(&app.store)
            .save_insights(&[&insight], request_record, idempotent, now)
            .await?
        {
            InsightWrite::Done => return Ok(response),
            InsightWrite::Replay(replay) => {
                if !new.is_empty() {
                    InsightStore::new(&app.store).give_up(batch).await?;
                }
                return ApiResponse::replay(replay);
            }
            InsightWrite::BatchAbandoned => batch = new_batch(),
            InsightWrite::Outdated => {}
        }
    }
    InsightStore::new(&app.store).give_up(batch).await?;
    Err(Problem::conflict("the insight kept changing"))
}
