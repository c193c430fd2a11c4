//! Creates a replay insight with its first pain points.

use insights::draft::{InsightDraft, MAX_PAIN_POINTS_BYTES};
use insights::store::{BatchId, ClaimOutcome, InsightStore, InsightWrite, RequestRecord};
use insights::{Insight, InsightId, PainPoint, http};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::dynamodb::{ConflictRetry, Idempotent};
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/projects/{idOrSlug}/replay-insights",
    Access::ApiKey(Scope::InsightsWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let request = incoming.idempotent(caller.credential())?;
    let project_id = caller.project()?;
    let draft = InsightDraft::read(&incoming.large_json(MAX_PAIN_POINTS_BYTES)?)?;

    // Rules.
    let now = app.clock.now();
    let new_id = || app.ids.new_uuid(now);
    let id = InsightId::new(new_id());
    let pain_points: Vec<&PainPoint> = draft.pain_points.iter().collect();
    let mut insight = Insight::new(id, project_id, draft.title, draft.description);
    insight.add(&pain_points, new_id)?;
    let location = format!("/v0/projects/{project_id}/replay-insights/{id}");
    let response =
        ApiResponse::created(&location, &insight.at(now))?.with_version(insight.version)?;

    // Storage and response: pain points are claimed before the insight is stored.
    let stored_response = response.to_stored();
    let idempotent = Idempotent::of(request.as_ref(), &stored_response);
    // A new batch has the latest id, so it gives way in a conflict.
    let new_batch = || BatchId::new(app.ids.new_uuid(app.clock.now()));
    let mut batch = new_batch();
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        match InsightStore::new(&app.store)
            .claim_pain_points(project_id, batch, &pain_points, now)
            .await?
        {
            ClaimOutcome::Claimed => {}
            ClaimOutcome::InProgress => continue,
            ClaimOutcome::GivenUp => {
                batch = new_batch();
                continue;
            }
            ClaimOutcome::Taken(ids) => {
                let rejection = http::pain_point_exists(&ids);
                return app.replay_or(rejection, request.as_ref()).await;
            }
        }
        let request_record = RequestRecord::Batch(batch);
        match InsightStore::new(&app.store)
            .save_insights(&[&insight], request_record, idempotent, now)
            .await?
        {
            InsightWrite::Done => return Ok(response),
            InsightWrite::Replay(replay) => {
                InsightStore::new(&app.store).give_up(batch).await?;
                return ApiResponse::replay(replay);
            }
            InsightWrite::BatchAbandoned => batch = new_batch(),
            InsightWrite::Outdated => {}
        }
    }
    InsightStore::new(&app.store).give_up(batch).await?;
    Err(Problem::conflict("another request kept claiming the same pain points"))
}
