//! The caller's details, as get-caller and the operations of sessions return them.

use std::collections::BTreeSet;

use serde::Serialize;
use shared::auth::{Caller, Credential};
use shared::dynamodb::Store;
use shared::http::{ApiResponse, Problem};
use shared::page::PageRequest;
use shared::projects::api_key::{KeyId, Scope, UserId};
use shared::projects::project::{Organization, ProjectSummary};
use shared::projects::role::Role;
use shared::projects::secret::Secret;
use shared::projects::session::{LIFETIME, Session, cookie};
use shared::timestamp::Timestamp;

use crate::InvitationId;
use crate::store::PeopleStore;

/// Most projects in the response; list-projects returns all of them.
const MAX_PROJECTS: u32 = 100;

/// The caller's details.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallerInfo<'c> {
    user: Option<&'c UserId>,
    organization: &'c Organization,
    scopes: &'c BTreeSet<Scope>,
    projects: Vec<ProjectSummary>,
    key_id: Option<&'c KeyId>,
    expires_at: Option<Timestamp>,
    #[serde(flatten)]
    signed_in: Option<SignedIn<'c>>,
}

/// The details of a signed-in user.
#[derive(Debug, Serialize)]
struct SignedIn<'c> {
    email: &'c UserId,
    role: Option<Role>,
    organizations: Vec<Organization>,
    invitations: Vec<ReceivedInvitation>,
}

/// An invitation as the invited user sees it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReceivedInvitation {
    id: InvitationId,
    organization: Organization,
    role: Role,
    invited_by: UserId,
    expires_at: Timestamp,
}

/// Returns the caller's details.
pub async fn describe<'c>(
    store: &Store,
    caller: &'c Caller<'_>,
    now: Timestamp,
) -> Result<CallerInfo<'c>, Problem> {
    // Every visitor of a page can read its key, and a user is often an email address.
    let is_private = caller.scopes().iter().any(|scope| *scope != Scope::FlagsEvaluate);
    let first = PageRequest { limit: MAX_PROJECTS, after: None };
    let credential = async {
        Ok(match caller.credential() {
            Credential::Key { id, .. } => (Some(id), None),
            Credential::Session(_) => (None, Some(describe_user(store, caller, now).await?)),
        })
    };
    let ((key_id, signed_in), projects) =
        tokio::try_join!(credential, caller.list_projects(&first))?;
    Ok(CallerInfo {
        user: is_private.then(|| caller.user()),
        organization: caller.organization(),
        scopes: caller.scopes(),
        projects: projects.items.into_iter().map(|it| it.summary).collect(),
        key_id,
        expires_at: caller.expires_at(),
        signed_in,
    })
}

async fn describe_user<'c>(
    store: &Store,
    caller: &'c Caller<'_>,
    now: Timestamp,
) -> Result<SignedIn<'c>, Problem> {
    let account = PeopleStore::new(store).find_account(caller.user(), now).await?;
    let invitations = account.invitations.into_iter().map(|invitation| ReceivedInvitation {
        id: invitation.id,
        organization: invitation.organization,
        role: invitation.role,
        invited_by: invitation.invited_by,
        expires_at: invitation.expires_at,
    });
    Ok(SignedIn {
        email: caller.user(),
        role: caller.role(),
        organizations: account.members.into_iter().map(|member| member.organization).collect(),
        invitations: invitations.collect(),
    })
}

/// Returns the response that starts the caller's new session: its details and its cookie.
pub async fn signed_in(
    store: &Store,
    caller: &Caller<'_>,
    secret: &Secret,
    now: Timestamp,
) -> Result<ApiResponse, Problem> {
    let lifetime = |session: &Session| session.issued_at.until(session.ends_at()).min(LIFETIME);
    let lifetime = caller.session().map(lifetime).unwrap_or_default();
    let info = describe(store, caller, now).await?;
    ApiResponse::ok(&info)?.with_cookie(&cookie(secret, lifetime))
}
