//! Invites a person to an organization, by email.

use notifications::notification_type::NotificationType;
use notifications::store::NotificationStore;
use people::store::PeopleStore;
use people::{Grant, Invitation, InvitationDraft, InvitationId, http};
use shared::app::{Access, App, Operation};
use shared::audit::{AuditAction, AuditTarget};
use shared::auth::Caller;
use shared::dynamodb::Idempotent;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem};
use shared::projects::api_key::{Scope, UserId};
use shared::projects::project::Organization;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/invitations",
    Access::ApiKey(Scope::MembersWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let request = incoming.idempotent(caller.credential())?;
    caller.require_all_projects()?;
    let draft = InvitationDraft::read(&incoming.json()?)?;
    let projects = match &draft.projects {
        None => None,
        Some(named) => Some(http::projects_in(caller, named).await?),
    };

    // Rules.
    http::require_role(caller, draft.role)?;
    http::require_scopes_of(caller, draft.role)?;
    let grant = Grant::new(draft.role, projects)?;
    let now = app.clock.now();
    let id = InvitationId::new(app.ids.new_uuid(now));
    let (organization, by) = (caller.organization().clone(), caller.user().clone());
    let invitation = Invitation::new(id, organization, draft.user, grant, by, now);
    let invitation = invitation.by(caller.member_id());
    let response = ApiResponse::created(&format!("/v0/invitations/{id}"), &invitation)?;

    // Storage and response.
    let people = PeopleStore::new(&app.store);
    let user = &invitation.user;
    let target = AuditTarget::new("invitation", id, user.as_str());
    let entry = caller.audit(&app.ids, AuditAction::InvitationCreated, target);
    let mut more = vec![app.store.audit(&entry)?];
    if wants_email(app, people, caller.organization(), user).await? {
        more.push(people.queue_invitation_email(&invitation)?);
    }
    let stored_response = response.to_stored();
    let idempotent = Idempotent::of(request.as_ref(), &stored_response);
    let by = http::member_of(caller);
    let change = people.create_invitation(&invitation, by.as_ref(), more, idempotent).await?;
    http::response_to(change, user, now, response)
}

/// Returns `true` unless the user turned off emails about invitations, here or in an organization
/// whose member the user is.
async fn wants_email(
    app: &App,
    people: PeopleStore<'_>,
    organization: &Organization,
    user: &UserId,
) -> Result<bool, Problem> {
    let account = people.find_account(user, app.clock.now()).await?;
    let others = account.members.iter().map(|member| &member.organization);
    for organization in others.chain([organization]) {
        let store = NotificationStore::new(&app.store);
        let preferences = store.find_email_preferences(organization, user).await?;
        if !preferences.is_enabled(NotificationType::OrganizationInvite) {
            return Ok(false);
        }
    }
    Ok(true)
}
