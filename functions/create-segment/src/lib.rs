//! Creates a segment.

use flags::segment::SegmentDraft;
use flags::store::{FlagStore, SegmentCreation};
use flags::{Segment, SegmentKey, http};
use shared::app::{Access, App, Operation};
use shared::audit::AuditAction;
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem, ProblemCode};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/project/{idOrSlug}/segments",
    Access::ApiKey(Scope::FlagsWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let request = incoming.idempotent(caller.credential())?;
    let project_id = caller.project()?;
    let draft = SegmentDraft::read(&incoming.json()?)?;

    // Rules.
    let now = app.clock.now();
    let segment = draft.into_segment(project_id, now, app.ids.new_uuid(now))?;

    // Storage.
    let key = segment.key.clone();
    let stored = |segment: &Segment| respond(segment).map(|response| response.to_stored());
    let store = FlagStore::new(&app.store);
    let entry = caller.audit(&app.ids, AuditAction::SegmentCreated, segment.audit_target());
    let outcome = store.create_segment(segment, &entry, request.as_ref(), stored).await?;

    // Response.
    match outcome {
        SegmentCreation::Created(segment) => respond(&segment),
        SegmentCreation::Replay(replay) => ApiResponse::replay(replay),
        SegmentCreation::KeyTaken => Err(segment_exists(&key)),
        SegmentCreation::LimitReached(limit) => Err(http::project_limit_reached(limit)),
    }
}

fn respond(segment: &Segment) -> ApiResult {
    let location = format!("/v0/project/{}/segments/{}", segment.project_id, segment.key);
    ApiResponse::created(&location, segment)?.with_version(segment.tag())
}

fn segment_exists(key: &SegmentKey) -> Problem {
    let detail = format!(
        "The project already has a segment with the key {key}. Choose another key, or change that \
         segment."
    );
    Problem::new(ProblemCode::SegmentExists, detail)
}
