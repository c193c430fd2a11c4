//! Accepts an invitation of the signed-in user, and switches the session to its organization.

use people::http::{invitation_id, invitation_not_found, no_randomness, require_done, signed_in};
use people::store::PeopleStore;
use shared::app::{Access, App, Operation};
use shared::audit::{AuditAction, AuditEntry, AuditTarget};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method};
use shared::projects::member::MemberId;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/invitations/{invitationId}/accept",
    Access::AnyApiKey(|app, caller, incoming| Box::pin(handle(app, caller, incoming))),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let now = app.clock.now();
    let session = caller.unended_session().await?;
    let id = invitation_id(incoming)?;

    // Rules. An invitation of another user looks like a missing one.
    let people = PeopleStore::new(&app.store);
    let found = people.find_invitation(id, now).await?;
    let invitation = found.filter(|invitation| invitation.user == session.user);
    let invitation = invitation.ok_or_else(invitation_not_found)?;
    let member = invitation.clone().into_member(MemberId::new(app.ids.new_uuid(now)), now);
    let started = session.switch(member.organization.clone(), now).map_err(no_randomness)?;

    // Storage and response.
    let target = AuditTarget::new("member", member.id, member.user.as_str());
    let entry = AuditEntry {
        organization: member.organization.clone(),
        ..caller.audit(&app.ids, AuditAction::InvitationAccepted, target)
    };
    let more = vec![
        people.replace_session(session)?,
        people.put_session(&started.0)?,
        app.store.audit(&entry)?,
    ];
    let change = people.accept_invitation(&invitation, &member, more).await?;
    require_done(&change, &member.user, now)?;
    let caller = app.caller_of(incoming, started.0, member)?;
    signed_in(&app.store, &caller, &started.1, app.clock.now()).await
}
