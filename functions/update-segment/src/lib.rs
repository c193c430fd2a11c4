//! Changes a segment, which changes the results of the flags that use it.

use flags::http;
use flags::segment::SegmentPatch;
use flags::store::{FlagStore, SegmentReplacement};
use shared::app::{Access, App, Operation};
use shared::audit::AuditAction;
use shared::auth::Caller;
use shared::dynamodb::ConflictRetry;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::PATCH,
    "/v0/project/{idOrSlug}/segments/{key}",
    Access::ApiKey(Scope::FlagsWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let if_match = incoming.if_match();
    let project_id = caller.project()?;
    let patch = SegmentPatch::read(&incoming.merge_patch()?)?;
    let key = http::segment_key(incoming)?;

    let now = app.clock.now();
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the current segment.
        let stored = FlagStore::new(&app.store).find_segment(project_id, &key).await?;
        let stored = stored.ok_or_else(http::segment_not_found)?;

        // Rules.
        if_match.check(stored.tag())?;
        let segment = patch.apply(&stored, now)?;
        let response = ApiResponse::ok(&segment)?.with_version(segment.tag())?;
        if segment == stored {
            return Ok(response);
        }

        // Storage and response.
        let target = segment.audit_target();
        let entry = caller.audit(&app.ids, AuditAction::SegmentUpdated, target);
        match FlagStore::new(&app.store).replace_segment(&stored, &segment, &entry).await? {
            SegmentReplacement::Done => return Ok(response),
            SegmentReplacement::Outdated => {}
            SegmentReplacement::LimitReached(limit) => {
                return Err(http::project_limit_reached(limit));
            }
        }
    }
    Err(Problem::conflict("the segment kept changing"))
}
