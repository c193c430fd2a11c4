//! Permanently deletes an archived feature flag, which frees its key.

use flags::http;
use flags::store::{FlagDeletion, FlagStore};
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
    "/v0/project/{idOrSlug}/feature-flags/{key}",
    Access::ApiKey(Scope::FlagsWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let if_match = incoming.if_match();
    let project_id = caller.project()?;
    let key = http::flag_key(incoming)?;

    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the current flag.
        let flag = FlagStore::new(&app.store).find_flag(project_id, &key).await?;
        let flag = flag.ok_or_else(http::flag_not_found)?;

        // Rules.
        if_match.check(flag.tag())?;
        if flag.archived_at.is_none() {
            return Err(http::flag_not_archived());
        }

        // Storage and response.
        let entry = caller.audit(&app.ids, AuditAction::FlagDeleted, flag.audit_target());
        let (store, now) = (FlagStore::new(&app.store), app.clock.now());
        if store.delete_flag(&flag, &entry, now).await? == FlagDeletion::Done {
            return Ok(ApiResponse::empty(StatusCode::NO_CONTENT));
        }
    }
    Err(Problem::conflict("the flag kept changing"))
}
