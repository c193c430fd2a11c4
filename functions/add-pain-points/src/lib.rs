//! Adds pain points to a replay insight.

use insights::draft::{MAX_PAIN_POINTS_BYTES, read_upload};
use insights::store::{BatchId, ClaimOutcome, InsightStore, InsightWrite, RequestRecord};
use insights::{PainPointId, http};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::dynamodb::{ConflictRetry, Idempotent};
use shared::http::{ApiRequest, ApiResponse, Method, Problem};
use shared::json::Violations;
use shared::projects::api_key::Scope;

/// What this function is.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/projects/{idOrSlug}/replay-insights/{insightId}/pain-points",
    Access::ApiKey(Scope::InsightsWrite, |app, caller, incoming| {
        Box::pin(handle(app, caller, incoming))
    }),
);

/// Answers one request.
async fn handle(
    app: &App,
    caller: &Caller<'_>,
    incoming: &ApiRequest,
) -> Result<ApiResponse, Problem> {
    // Request.
    let mut violations = Violations::default();
    let id = http::insight_id(incoming, &mut violations);
    let request = incoming.read_idempotent(caller.key_id(), &mut violations);
    let (id, request) = violations.into_result(id.zip(request))?;
    let project_id = caller.project()?;
    let pain_points = read_upload(&incoming.large_json(MAX_PAIN_POINTS_BYTES)?)?;

    let now = app.clock.now();
    let new_id = || app.ids.new_uuid(now);
    // Each later batch comes after all others: it is the one that makes way.
    let new_batch = || BatchId::new(app.ids.new_uuid(app.clock.now()));
    let mut batch = new_batch();
    let mut taken = Vec::new();
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the insight as it is.
        let Some(mut insight) = InsightStore::new(&app.store).find_insight(project_id, id).await?
        else {
            return app.replay_or(http::insight_not_found(), request.as_ref()).await;
        };

        // Rules: what it has already is counted once; what another insight has is refused. Pain
        // points that were taken a moment ago may have been so by a twin of this request.
        let new = insight.missing(&pain_points);
        let elsewhere: Vec<PainPointId> =
            new.iter().map(|pain_point| pain_point.id).filter(|id| taken.contains(id)).collect();
        if !elsewhere.is_empty() {
            let refusal = http::pain_point_exists(&elsewhere);
            return app.replay_or(refusal, request.as_ref()).await;
        }
        if let Err(refusal) = insight.add(&new, new_id) {
            return app.replay_or(refusal, request.as_ref()).await;
        }

        // Storage and answer.
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
        let answer = ApiResponse::ok(&insight.at(now))?.with_version(insight.version)?;
        let stored_answer = answer.to_stored();
        let idempotent = Idempotent::of(request.as_ref(), &stored_answer);
        let request_record = RequestRecord::Batch(batch);
        match InsightStore::new(&app.store)
            .save_insights(&[&insight], request_record, idempotent, now)
            .await?
        {
            InsightWrite::Done => return Ok(answer),
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
