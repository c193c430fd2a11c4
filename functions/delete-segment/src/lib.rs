//! Deletes a segment that no flag uses.

use flags::http;
use flags::store::{FlagStore, SegmentDeletion};
use shared::app::{Access, App, Operation};
use shared::audit::AuditAction;
use shared::auth::Caller;
use shared::dynamodb::ConflictRetry;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem, StatusCode};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::DELETE,
    "/v0/project/{idOrSlug}/segments/{key}",
    Access::ApiKey(Scope::FlagsWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let if_match = incoming.if_match();
    let project_id = caller.project()?;
    let key = http::segment_key(incoming)?;

    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the current segment.
        let segment = FlagStore::new(&app.store).find_segment(project_id, &key).await?;
        let segment = segment.ok_or_else(http::segment_not_found)?;

        // Rules.
        if_match.check(segment.tag())?;

        // Storage and response.
        let target = segment.audit_target();
        let entry = caller.audit(&app.ids, AuditAction::SegmentDeleted, target);
        match FlagStore::new(&app.store).delete_segment(&segment, &entry).await? {
            SegmentDeletion::Done => return Ok(ApiResponse::empty(StatusCode::NO_CONTENT)),
            SegmentDeletion::Outdated => {}
            SegmentDeletion::InUse { count, among } => {
                return Err(http::segment_in_use(count, &among));
            }
        }
    }
    Err(Problem::conflict("the segment kept changing"))
}
