//! Splits pain points off a replay insight into a new one.

use std::collections::HashSet;

use insights::draft::SplitRequest;
use insights::store::{InsightStore, InsightWrite, RequestRecord};
use insights::{Insight, InsightId, PainPointId, http};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::dynamodb::{ConflictRetry, Idempotent};
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem};
use shared::json::Violations;
use shared::projects::api_key::Scope;
use shared::timestamp::Timestamp;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/projects/{idOrSlug}/replay-insights/{insightId}/split",
    Access::ApiKey(Scope::InsightsWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let mut violations = Violations::default();
    let id = http::insight_id(incoming, &mut violations);
    let request = incoming.read_idempotent(caller.credential(), &mut violations);
    let (id, request) = violations.into_result(id.zip(request))?;
    let project_id = caller.project()?;
    let split = SplitRequest::read(&incoming.json()?)?;
    let fingerprint = split.fingerprint(id);

    let now = app.clock.now();
    let new_id = || app.ids.new_uuid(now);
    let new_insight_id = InsightId::new(new_id());
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the current insight.
        let Some(mut source) = InsightStore::new(&app.store).find_insight(project_id, id).await?
        else {
            return app.replay_or(http::insight_not_found(), request.as_ref()).await;
        };

        // Rules. The pain points of a rejected split are also gone if the split succeeded before.
        let mut new_insight = match source.split_off(&split.pain_point_ids, new_insight_id, new_id)
        {
            Ok(new_insight) => new_insight,
            Err(rejection) => {
                let request = request.as_ref();
                if let Some(replay) = app.store.find_replay(request, now).await? {
                    return ApiResponse::replay(replay);
                }
                let Some(new_insight) =
                    InsightStore::new(&app.store).find_split(fingerprint).await?
                else {
                    return Err(rejection.into());
                };
                let new_insight =
                    InsightStore::new(&app.store).find_insight(project_id, new_insight).await?;
                return created(&new_insight.ok_or(rejection)?, now);
            }
        };
        let unknown = [&source, &new_insight].map(Insight::unknown_latest);
        // Only derived pain points have signatures, which decide where later ones go.
        let moved = if source.signatures.is_empty() { &[][..] } else { &split.pain_point_ids };
        let unknown: HashSet<PainPointId> =
            unknown.into_iter().flatten().chain(moved.iter().copied()).collect();
        let details = InsightStore::new(&app.store).find_pain_points(project_id, unknown).await?;
        source.split_signatures(&mut new_insight, &details);
        source.refresh_latest(&details);
        let latest = new_insight.unknown_latest().and_then(|latest| details.get(&latest));
        let title = || latest.map(|latest| latest.title.clone()).unwrap_or_default();
        new_insight.title = split.title.clone().unwrap_or_else(title);
        new_insight.description.clone_from(&split.description);
        new_insight.refresh_latest(&details);

        // Storage and response: both insights in one transaction, or neither.
        let response = created(&new_insight, now)?;
        let stored_response = response.to_stored();
        let idempotent = Idempotent::of(request.as_ref(), &stored_response);
        let request_record = RequestRecord::Split { fingerprint, made: new_insight_id };
        match InsightStore::new(&app.store)
            .save_insights(&[&source, &new_insight], request_record, idempotent, now)
            .await?
        {
            InsightWrite::Done => return Ok(response),
            InsightWrite::Replay(replay) => return ApiResponse::replay(replay),
            InsightWrite::Outdated | InsightWrite::BatchAbandoned => {}
        }
    }
    Err(Problem::conflict("the insight kept changing"))
}

fn created(insight: &Insight, now: Timestamp) -> ApiResult {
    let location = format!("/v0/projects/{}/replay-insights/{}", insight.project_id, insight.id);
    ApiResponse::created(&location, &insight.at(now))?.with_version(insight.version)
}
