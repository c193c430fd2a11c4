//! Removes a member from an organization. Authentication rejects the member's sessions and keys from
//! then on.

use people::http;
use people::store::{PeopleChange, PeopleStore};
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
    "/v0/members/{memberId}",
    Access::ApiKey(Scope::MembersWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    caller.require_all_projects()?;
    let id = http::member_id(incoming)?;

    let people = PeopleStore::new(&app.store);
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the current member.
        let stored = people.find_member(caller.organization(), id).await?;
        let stored = stored.ok_or_else(http::member_not_found)?;

        // Rules.
        http::require_role_over(caller, &stored, None)?;

        // Storage and response.
        let target = AuditTarget::new("member", id, stored.user.as_str());
        let entry = caller.audit(&app.ids, AuditAction::MemberRemoved, target);
        let more = vec![app.store.audit(&entry)?];
        let by = http::member_of(caller);
        let now = app.clock.now();
        let change = people.remove_member(&stored, by.as_ref(), more, now).await?;
        if change != PeopleChange::Outdated {
            let response = ApiResponse::empty(StatusCode::NO_CONTENT);
            return http::response_to(change, &stored.user, now, response);
        }
    }
    Err(Problem::conflict("the member kept changing"))
}
