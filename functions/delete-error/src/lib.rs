//! Deletes an error and all of its events.
//!
//! After the response, no read shows or counts the error. pack-error-log removes its data in the
//! background.

use errors::http;
use errors::store::{Deletion, ErrorStore};
use shared::app::{Access, App, Operation};
use shared::audit::{AuditAction, AuditTarget};
use shared::auth::Caller;
use shared::dynamodb::ConflictRetry;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem, StatusCode};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::DELETE,
    "/v0/projects/{idOrSlug}/errors/{errorId}",
    Access::ApiKey(Scope::ErrorsWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let project_id = caller.project()?;
    let id = http::error_id(incoming)?;

    let now = app.clock.now();
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the current error.
        let error = ErrorStore::new(&app.store).find_error(project_id, id, now).await?;
        let error = error.ok_or_else(http::error_not_found)?;

        // Storage: the removal is queued first, so that none of the error's events stay.
        ErrorStore::new(&app.store).want_removal(project_id, now).await?;
        let target = AuditTarget::new("error", id, id.to_string());
        let entry = caller.audit(&app.ids, AuditAction::ErrorDeleted, target);
        match ErrorStore::new(&app.store).delete_error(project_id, &error, &entry, now).await? {
            Deletion::Done => return Ok(ApiResponse::empty(StatusCode::NO_CONTENT)),
            Deletion::Changed => {}
            Deletion::TooMany => return Err(http::too_many_deletions()),
        }
    }
    Err(Problem::conflict("the error kept changing"))
}
