//! Revokes an open invitation. Its link ends immediately.

use people::http;
use people::store::PeopleStore;
use shared::app::{Access, App, Operation};
use shared::audit::{AuditAction, AuditTarget};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, StatusCode};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::DELETE,
    "/v0/invitations/{invitationId}",
    Access::ApiKey(Scope::MembersWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    caller.require_all_projects()?;
    let id = http::invitation_id(incoming)?;

    // Storage: the invitation.
    let (people, now) = (PeopleStore::new(&app.store), app.clock.now());
    let invitation = people.find_invitation(id, now).await?;
    let invitation = invitation.filter(|it| it.organization == *caller.organization());
    let invitation = invitation.ok_or_else(http::invitation_not_found)?;

    // Rules.
    http::require_role(caller, invitation.role)?;

    // Storage and response.
    let target = AuditTarget::new("invitation", id, invitation.user.as_str());
    let entry = caller.audit(&app.ids, AuditAction::InvitationRevoked, target);
    let more = vec![app.store.audit(&entry)?];
    let by = http::member_of(caller);
    let change = people.revoke_invitation(&invitation, by.as_ref(), more).await?;
    let response = ApiResponse::empty(StatusCode::NO_CONTENT);
    http::response_to(change, &invitation.user, now, response)
}
