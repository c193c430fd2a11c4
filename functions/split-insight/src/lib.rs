//! Splits pain points off a replay insight, into a new one.

use insights::draft::SplitRequest;
use insights::store::{InsightStore, InsightWrite, RequestRecord};
use insights::{Insight, InsightId, http};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::dynamodb::{ConflictRetry, Idempotent};
use shared::http::{ApiRequest, ApiResponse, Method, Problem};
use shared::json::Violations;
use shared::projects::api_key::Scope;
use shared::timestamp::Timestamp;

/// What this function is.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/projects/{idOrSlug}/replay-insights/{insightId}/split",
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
    let split = SplitRequest::read(&incoming.json()?)?;
    let fingerprint = split.fingerprint(id);

    let now = app.clock.now();
    let new_id = || app.ids.new_uuid(now);
    let made_id = InsightId::new(new_id());
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the insight as it is.
        let Some(mut source) = InsightStore::new(&app.store).find_insight(project_id, id).await?
        else {
            return app.replay_or(http::insight_not_found(), request.as_ref()).await;
        };

        // Rules. What is refused may have been done before: the pain points are gone then.
        let mut made = match source.split_off(&split.pain_point_ids, made_id, new_id) {
            Ok(made) => made,
            Err(refusal) => {
                let request = request.as_ref();
                if let Some(replay) = app.store.find_replay(request, now).await? {
                    return ApiResponse::replay(replay);
                }
                let Some(made) = InsightStore::new(&app.store).find_split(fingerprint).await?
                else {
                    return Err(refusal.into());
                };
                let made = InsightStore::new(&app.store).find_insight(project_id, made).await?;
                return created(&made.ok_or(refusal)?, now);
            }
        };
        let unknown = [&source, &made].map(Insight::unknown_latest);
        let details = InsightStore::new(&app.store)
            .find_pain_points(project_id, unknown.into_iter().flatten())
            .await?;
        source.refresh_latest(&details);
        let latest = made.unknown_latest().and_then(|latest| details.get(&latest));
        let title = || latest.map(|latest| latest.title.clone()).unwrap_or_default();
        made.title = split.title.clone().unwrap_or_else(title);
        made.description.clone_from(&split.description);
        made.refresh_latest(&details);

        // Storage and answer: both insights in one transaction, or neither.
        let answer = created(&made, now)?;
        let stored_answer = answer.to_stored();
        let idempotent = Idempotent::of(request.as_ref(), &stored_answer);
        let request_record = RequestRecord::Split { fingerprint, made: made_id };
        match InsightStore::new(&app.store)
            .save_insights(&[&source, &made], request_record, idempotent, now)
            .await?
        {
            InsightWrite::Done => return Ok(answer),
            InsightWrite::Replay(replay) => return ApiResponse::replay(replay),
            InsightWrite::Outdated | InsightWrite::BatchAbandoned => {}
        }
    }
    Err(Problem::conflict("the insight kept changing"))
}

fn created(insight: &Insight, now: Timestamp) -> Result<ApiResponse, Problem> {
    let location = format!("/v0/projects/{}/replay-insights/{}", insight.project_id, insight.id);
    ApiResponse::created(&location, &insight.at(now))?.with_version(insight.version)
}
