//! The membership and session of a user whom the provider verified.

use people::Invitation;
use people::http::no_randomness;
use people::store::{PeopleChange, PeopleStore};
use shared::app::App;
use shared::audit::{AuditAction, AuditEntry};
use shared::http::{ApiRequest, Problem};
use shared::projects::api_key::UserId;
use shared::projects::member::{Member, MemberId};
use shared::projects::project::Organization;
use shared::projects::role::Role;
use shared::projects::secret::Secret;
use shared::projects::session::Session;

use crate::Failure;

/// Starts a session of a user, in the organization that the user joined first. A user without one
/// accepts an open invitation, or joins the organization of its domain as a viewer.
pub(crate) async fn sign_in(
    app: &App,
    incoming: &ApiRequest,
    user: &UserId,
    admitting: Option<&Organization>,
) -> Result<Result<Secret, Failure>, Problem> {
    let (people, now) = (PeopleStore::new(&app.store), app.clock.now());
    let account = people.find_account(user, now).await?;
    let first = account.members.into_iter().min_by_key(|member| member.joined_at);
    let member = match (first, account.invitations.into_iter().next(), admitting) {
        (Some(member), ..) => Some(member),
        (None, Some(invitation), _) => accept(app, incoming, invitation).await?,
        (None, None, Some(organization)) => join(app, incoming, user, organization).await?,
        (None, None, None) => None,
    };
    let Some(member) = member else { return Ok(Err(Failure::NotAMember)) };
    let started = Session::start(member.user.clone(), member.organization.clone(), now);
    let (session, secret) = started.map_err(no_randomness)?;
    let entry = entry(app, incoming, &member, AuditAction::SignedIn);
    let is_started =
        people.start_session(&session, &member, vec![app.store.audit(&entry)?]).await?;
    Ok(if is_started { Ok(secret) } else { Err(Failure::NotAMember) })
}

async fn accept(
    app: &App,
    incoming: &ApiRequest,
    invitation: Invitation,
) -> Result<Option<Member>, Problem> {
    let (people, now) = (PeopleStore::new(&app.store), app.clock.now());
    let member = invitation.clone().into_member(MemberId::new(app.ids.new_uuid(now)), now);
    let entry = entry(app, incoming, &member, AuditAction::InvitationAccepted);
    let more = vec![app.store.audit(&entry)?];
    let accepted = people.accept_invitation(&invitation, &member, more).await?;
    Ok((accepted == PeopleChange::Done).then_some(member))
}

async fn join(
    app: &App,
    incoming: &ApiRequest,
    user: &UserId,
    organization: &Organization,
) -> Result<Option<Member>, Problem> {
    let now = app.clock.now();
    let member = Member {
        id: MemberId::new(app.ids.new_uuid(now)),
        organization: organization.clone(),
        user: user.clone(),
        role: Role::Viewer,
        projects: None,
        joined_at: now,
        version: 1,
    };
    let entry = entry(app, incoming, &member, AuditAction::MemberAdded);
    let more = vec![app.store.audit(&entry)?];
    let added = PeopleStore::new(&app.store).add_member(&member, more).await?;
    Ok((added == PeopleChange::Done).then_some(member))
}

fn entry(app: &App, incoming: &ApiRequest, member: &Member, action: AuditAction) -> AuditEntry {
    let now = app.clock.now();
    AuditEntry::of_member(app.ids.new_uuid(now), member, action, incoming, now)
}
