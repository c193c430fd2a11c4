//! Creates a replay insight with its first pain points: POST `/v0/projects/{idOrSlug}/replay-insights`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem};
use shared::insights::Insight;
use shared::models::api_key::Scope;
use shared::models::insight::draft::{InsightDraft, MAX_PAIN_POINTS_BYTES};
use shared::models::insight::{InsightId, PainPoint};
use shared::store::{Attempts, BatchId, Claim, Idempotent, InsightWrite, Together};

/// The operation's name in `openapi.yaml`, in the logs and among idempotency keys.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::InsightsWrite)?;
    let request = incoming.idempotent(caller.key_id(), OPERATION)?;
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
    let answer = Answer::created(&location, &insight.at(now))?.with_version(insight.version)?;

    // Storage and answer: a pain point that no insight has is claimed first.
    let stored_answer = answer.to_stored();
    let idempotent = Idempotent::of(request.as_ref(), &stored_answer);
    // Each later batch comes after all others: it is the one that makes way.
    let new_batch = || BatchId::new(app.ids.new_uuid(app.clock.now()));
    let mut batch = new_batch();
    let mut attempts = Attempts::default();
    while attempts.another().await {
        match app.store.claim_pain_points(project_id, batch, &pain_points, now).await? {
            Claim::Claimed => {}
            Claim::InProgress => continue,
            Claim::GivenUp => {
                batch = new_batch();
                continue;
            }
            Claim::Taken(ids) => {
                let refusal = Problem::pain_point_exists(&ids);
                return app.repeated_or(refusal, request.as_ref()).await;
            }
        }
        let together = Together::Batch(batch);
        match app.store.save_insights(&[&insight], together, idempotent, now).await? {
            InsightWrite::Done => return Ok(answer),
            InsightWrite::Repetition(repetition) => {
                app.store.give_up(batch).await?;
                return Answer::repeated(repetition);
            }
            InsightWrite::BatchAbandoned => batch = new_batch(),
            InsightWrite::Outdated => {}
        }
    }
    app.store.give_up(batch).await?;
    Err(Problem::conflict("another request kept bringing the same pain points"))
}
