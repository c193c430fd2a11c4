//! Merges a replay insight into another one. This is the exact inverse of split-insight.

use insights::draft::read_merge;
use insights::store::{InsightStore, InsightWrite, RequestRecord};
use insights::{Insight, http};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::dynamodb::{ConflictRetry, Idempotent};
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem};
use shared::json::{JsonPath, ViolationCode, Violations};
use shared::projects::api_key::Scope;
use shared::timestamp::Timestamp;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/projects/{idOrSlug}/replay-insights/{insightId}/merge",
    Access::ApiKey(Scope::InsightsWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let mut violations = Violations::default();
    let id = http::insight_id(incoming, &mut violations);
    let request = incoming.read_idempotent(caller.credential(), &mut violations);
    let (id, request) = violations.into_result(id.zip(request))?;
    let project_id = caller.project()?;
    let into = read_merge(&incoming.json()?)?;

    let now = app.clock.now();
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: both current insights.
        let (source, receiver) = tokio::try_join!(
            InsightStore::new(&app.store).find_insight(project_id, id),
            InsightStore::new(&app.store).find_insight(project_id, into)
        )?;
        let Some(mut source) = source else {
            return app.replay_or(http::insight_not_found(), request.as_ref()).await;
        };

        // Rules. A completed merge is not repeated.
        if id == into {
            let message = "an insight cannot be merged into itself";
            let rejection = invalid_into(ViolationCode::InvalidValue, message);
            return app.replay_or(rejection, request.as_ref()).await;
        }
        let Some(mut receiver) = receiver else {
            let message = "the project has no insight with this ID";
            let rejection = invalid_into(ViolationCode::UnknownInsight, message);
            return app.replay_or(rejection, request.as_ref()).await;
        };
        if source.status.merged_into() != Some(into)
            && let Err(rejection) = receiver.merge(&mut source)
        {
            return app.replay_or(rejection, request.as_ref()).await;
        }

        // Storage and response: both insights in one transaction, or neither.
        let response = respond(&receiver, now)?;
        let stored_response = response.to_stored();
        let idempotent = Idempotent::of(request.as_ref(), &stored_response);
        let insights = [&receiver, &source];
        match InsightStore::new(&app.store)
            .save_insights(&insights, RequestRecord::None, idempotent, now)
            .await?
        {
            InsightWrite::Done => return Ok(response),
            InsightWrite::Replay(replay) => return ApiResponse::replay(replay),
            InsightWrite::Outdated | InsightWrite::BatchAbandoned => {}
        }
    }
    Err(Problem::conflict("the insights kept changing"))
}

fn respond(insight: &Insight, now: Timestamp) -> ApiResult {
    ApiResponse::ok(&insight.at(now))?.with_version(insight.version)
}

fn invalid_into(code: ViolationCode, message: &str) -> Problem {
    let mut violations = Violations::default();
    violations.note(&JsonPath::Root.member("into"), code, message);
    violations.into()
}
