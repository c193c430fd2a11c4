//! Splits pain points off a replay insight, into a new one (`interface.md` §4.2): POST
//! `/v0/projects/{idOrSlug}/replay-insights/{insightId}/split`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem};
use shared::insights::Insight;
use shared::json::Violations;
use shared::models::api_key::Scope;
use shared::models::insight::InsightId;
use shared::models::insight::draft::SplitRequest;
use shared::models::timestamp::Timestamp;
use shared::store::{Attempts, Idempotent, InsightWrite, Together};

/// The operation's name in `openapi.yaml`, in the logs and among idempotency keys.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request, in the order of checks that contract.md §1 lays down.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::InsightsWrite)?;
    let mut violations = Violations::default();
    let id = incoming.insight_id(&mut violations);
    let request = incoming.read_idempotent(caller.key_id(), OPERATION, &mut violations);
    let (id, request) = violations.into_result(id.zip(request))?;
    let project_id = caller.project()?;
    let split = SplitRequest::read(&incoming.json()?)?;
    let fingerprint = split.fingerprint(id);

    let now = app.clock.now();
    let new_id = || app.ids.new_uuid(now);
    let made_id = InsightId::new(new_id());
    let mut attempts = Attempts::default();
    while attempts.another().await {
        // Storage: the insight as it is.
        let Some(mut source) = app.store.find_insight(project_id, id).await? else {
            return app.repeated_or(Problem::insight_not_found(), request.as_ref()).await;
        };

        // Rules. What is refused may have been done before: the pain points are gone then.
        let mut made = match source.split_off(&split.pain_point_ids, made_id, new_id) {
            Ok(made) => made,
            Err(refusal) => {
                let request = request.as_ref();
                if let Some(repetition) = app.store.find_repetition(request, now).await? {
                    return Answer::repeated(repetition);
                }
                let Some(made) = app.store.find_split(fingerprint).await? else {
                    return Err(refusal.into());
                };
                let made = app.store.find_insight(project_id, made).await?;
                return created(&made.ok_or(refusal)?, now);
            }
        };
        let unknown = [&source, &made].map(Insight::unknown_latest);
        let details = app.store.find_pain_points(project_id, unknown.into_iter().flatten()).await?;
        source.learn_latest(&details);
        let latest = made.unknown_latest().and_then(|latest| details.get(&latest));
        let title = || latest.map(|latest| latest.title.clone()).unwrap_or_default();
        made.title = split.title.clone().unwrap_or_else(title);
        made.description.clone_from(&split.description);
        made.learn_latest(&details);

        // Storage and answer: both insights in one transaction, or neither.
        let answer = created(&made, now)?;
        let stored_answer = answer.to_stored();
        let idempotent = Idempotent::of(request.as_ref(), &stored_answer);
        let together = Together::Split { fingerprint, made: made_id };
        match app.store.save_insights(&[&source, &made], together, idempotent, now).await? {
            InsightWrite::Done => return Ok(answer),
            InsightWrite::Repetition(repetition) => return Answer::repeated(repetition),
            InsightWrite::Outdated | InsightWrite::BatchAbandoned => {}
        }
    }
    Err(Problem::conflict("the insight kept changing"))
}

fn created(insight: &Insight, now: Timestamp) -> Result<Answer, Problem> {
    let location = format!("/v0/projects/{}/replay-insights/{}", insight.project_id, insight.id);
    Answer::created(&location, &insight.at(now))?.with_version(insight.version)
}
