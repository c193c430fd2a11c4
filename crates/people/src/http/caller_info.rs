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
use crate::store::{Account, PeopleStore};

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
    let account = async {
        Ok(match caller.credential() {
            Credential::Key { .. } => None,
            Credential::Session(_) => {
                Some(PeopleStore::new(store).find_account(caller.user(), now).await?)
            }
        })
    };
    let (account, projects) = tokio::try_join!(account, list_projects(caller))?;
    Ok(caller_info(caller, account, projects))
}

/// Returns the response that starts the caller's new session: its details and its cookie.
pub async fn signed_in(
    store: &Store,
    caller: &Caller<'_>,
    secret: &Secret,
    now: Timestamp,
) -> Result<ApiResponse, Problem> {
    let info = describe(store, caller, now).await?;
    with_session_cookie(&info, caller, secret)
}

/// Like [`signed_in`], for a caller whose account was just read.
pub async fn signed_in_with(
    account: Account,
    caller: &Caller<'_>,
    secret: &Secret,
) -> Result<ApiResponse, Problem> {
    let info = caller_info(caller, Some(account), list_projects(caller).await?);
    with_session_cookie(&info, caller, secret)
}

async fn list_projects(caller: &Caller<'_>) -> Result<Vec<ProjectSummary>, Problem> {
    let first = PageRequest { limit: MAX_PROJECTS, after: None };
    let projects = caller.list_projects(&first).await?;
    Ok(projects.items.into_iter().map(|it| it.summary).collect())
}

fn caller_info<'c>(
    caller: &'c Caller<'_>,
    account: Option<Account>,
    projects: Vec<ProjectSummary>,
) -> CallerInfo<'c> {
    // Every visitor of a page can read its key, and a user is often an email address.
    let is_private = caller.scopes().iter().any(|scope| *scope != Scope::FlagsEvaluate);
    CallerInfo {
        user: is_private.then(|| caller.user()),
        organization: caller.organization(),
        scopes: caller.scopes(),
        projects,
        key_id: match caller.credential() {
            Credential::Key { id, .. } => Some(id),
            Credential::Session(_) => None,
        },
        expires_at: caller.expires_at(),
        signed_in: account.map(|account| describe_user(caller, account)),
    }
}

fn describe_user<'c>(caller: &'c Caller<'_>, account: Account) -> SignedIn<'c> {
    let invitations = account.invitations.into_iter().map(|invitation| ReceivedInvitation {
        id: invitation.id,
        organization: invitation.organization,
        role: invitation.role,
        invited_by: invitation.invited_by,
        expires_at: invitation.expires_at,
    });
    SignedIn {
        email: caller.user(),
        role: caller.role(),
        organizations: account.members.into_iter().map(|member| member.organization).collect(),
        invitations: invitations.collect(),
    }
}

fn with_session_cookie(
    info: &CallerInfo<'_>,
    caller: &Caller<'_>,
    secret: &Secret,
) -> Result<ApiResponse, Problem> {
    let lifetime = |session: &Session| session.issued_at.until(session.ends_at()).min(LIFETIME);
    let lifetime = caller.session().map(lifetime).unwrap_or_default();
    ApiResponse::ok(info)?.with_cookie(&cookie(secret, lifetime))
}
