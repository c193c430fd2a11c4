//! Path parameters, permissions and problems of people.

mod caller_info;

use std::collections::BTreeSet;

use shared::auth::{Caller, Credential};
use shared::http::{ApiRequest, ApiResponse, Problem, ProblemCode};
use shared::projects::NoRandomness;
use shared::projects::api_key::{ApiKeyRecord, KeyId, UserId};
use shared::projects::member::{Member, MemberId};
use shared::projects::named_project::NamedProject;
use shared::projects::project::{ProjectId, Slug};
use shared::projects::role::Role;
use shared::timestamp::Timestamp;

use crate::InvitationId;
use crate::store::{CallerMember, MAX_INVITATIONS_PER_DAY, PeopleChange};

pub use caller_info::{CallerInfo, describe, signed_in, signed_in_with};

/// Seconds of a day.
const DAY_SECONDS: i64 = 24 * 60 * 60;

/// Returns the member ID in the path. A malformed ID names no member, so the response is 404.
pub fn member_id(incoming: &ApiRequest) -> Result<MemberId, Problem> {
    let id = incoming.path_parameter("memberId");
    id.as_deref().and_then(MemberId::parse).ok_or_else(member_not_found)
}

/// Returns the invitation ID in the path. A malformed ID names no invitation.
pub fn invitation_id(incoming: &ApiRequest) -> Result<InvitationId, Problem> {
    let id = incoming.path_parameter("invitationId");
    id.as_deref().and_then(InvitationId::parse).ok_or_else(invitation_not_found)
}

/// Returns the key ID in the path. A malformed ID names no key.
pub fn key_id(incoming: &ApiRequest) -> Result<KeyId, Problem> {
    let id = incoming.path_parameter("keyId");
    id.as_deref().and_then(KeyId::parse).ok_or_else(api_key_not_found)
}

/// Returns the membership that makes a change, for the condition that it keeps its role. `None` for
/// keys of the `waymark` command.
pub fn member_of(caller: &Caller<'_>) -> Option<CallerMember> {
    let (id, role) = (caller.member_id()?, caller.role()?);
    let (organization, user) = (caller.organization().clone(), caller.user().clone());
    Some(CallerMember { id, organization, user, role })
}

/// Fails with 403 if a role exceeds the caller's.
pub fn require_role(caller: &Caller<'_>, role: Role) -> Result<(), Problem> {
    require(own_role(caller), role)
}

/// Fails with 403 if the caller gives a role with a scope that its key lacks.
pub fn require_scopes_of(caller: &Caller<'_>, role: Role) -> Result<(), Problem> {
    let scopes = role.scopes();
    match (caller.credential(), scopes.difference(caller.scopes()).next()) {
        (Credential::Key { .. }, Some(missing)) => {
            let detail = format!(
                "The role {role} has the scope {missing}, which the key lacks. Use a key with all \
                 scopes of the role, or sign in."
            );
            Err(Problem::new(ProblemCode::InsufficientRole, detail))
        }
        _ => Ok(()),
    }
}

/// Fails with 403 if the role of a member, or a new role, exceeds the caller's.
pub fn require_role_over(
    caller: &Caller<'_>,
    member: &Member,
    new: Option<Role>,
) -> Result<(), Problem> {
    // The caller's cached role can be a minute old.
    let is_caller = caller.member_id() == Some(member.id);
    let own = if is_caller { member.role } else { own_role(caller) };
    require(own, new.map_or(member.role, |new| new.max(member.role)))
}

/// Returns the caller's role. A key of the `waymark` command acts as an admin, or as an owner if it
/// has all scopes.
fn own_role(caller: &Caller<'_>) -> Role {
    let has_all = || Role::Owner.scopes().is_subset(caller.scopes());
    caller.role().unwrap_or_else(|| if has_all() { Role::Owner } else { Role::Admin })
}

fn require(own: Role, role: Role) -> Result<(), Problem> {
    if role <= own {
        return Ok(());
    }
    let detail = format!(
        "The caller's role is {own}. Only a member with the role {role} can give or change that role."
    );
    Err(Problem::new(ProblemCode::InsufficientRole, detail))
}

/// Returns the ids of projects in a body. Fails with 404 if the caller cannot see one.
pub async fn projects_in(
    caller: &Caller<'_>,
    named: &[NamedProject],
) -> Result<BTreeSet<ProjectId>, Problem> {
    let names = named.iter().map(|it| (it.written.as_str(), it.name.as_ref()));
    Ok(caller.projects(names).await?.into_iter().collect())
}

/// Returns `true` if the caller can see and revoke a key: it belongs to the organization and, if
/// the caller is limited to projects, to some of these.
pub fn can_administer(caller: &Caller<'_>, key: &ApiKeyRecord) -> bool {
    let is_within = |limit| key.projects.as_ref().is_some_and(|projects| projects.is_subset(limit));
    key.organization == *caller.organization() && caller.projects_limit().is_none_or(is_within)
}

/// Returns the response to a change of members or invitations at `now`: `response` if it is stored.
/// `user` is the member or the invited user.
pub fn response_to(
    change: PeopleChange,
    user: &UserId,
    now: Timestamp,
    response: ApiResponse,
) -> Result<ApiResponse, Problem> {
    match change {
        PeopleChange::Replay(replay) => ApiResponse::replay(replay),
        change => require_done(&change, user, now).map(|()| response),
    }
}

/// Fails if a change of members or invitations at `now` is not stored.
pub fn require_done(change: &PeopleChange, user: &UserId, now: Timestamp) -> Result<(), Problem> {
    let (code, detail) = match change {
        PeopleChange::Done | PeopleChange::Replay(_) => return Ok(()),
        PeopleChange::InvitationGone => return Err(invitation_not_found()),
        PeopleChange::Outdated => return Err(Problem::conflict("the member kept changing")),
        PeopleChange::LimitReached => {
            let detail = format!(
                "The organization can create at most {MAX_INVITATIONS_PER_DAY} invitations per day \
                 (UTC). Retry tomorrow."
            );
            let seconds = DAY_SECONDS - now.as_seconds().rem_euclid(DAY_SECONDS);
            let seconds = u16::try_from(seconds).unwrap_or(u16::MAX);
            return Err(Problem::new(ProblemCode::Throttled, detail).retry_after(seconds));
        }
        PeopleChange::CallerChanged => (
            ProblemCode::InsufficientRole,
            "The caller's role has just changed. Get the caller, and retry if the role permits."
                .to_owned(),
        ),
        PeopleChange::LastOwner => (
            ProblemCode::LastOwner,
            format!("{user} is the last owner. Make another member an owner first."),
        ),
        PeopleChange::MemberExists => (
            ProblemCode::MemberExists,
            format!("{user} is already a member. Change the role instead."),
        ),
        PeopleChange::InvitationExists => (
            ProblemCode::InvitationExists,
            format!("{user} already has an open invitation. Revoke it first."),
        ),
    };
    Err(Problem::new(code, detail))
}

/// 404: the organization has no such member.
pub fn member_not_found() -> Problem {
    let detail = "The organization has no member with this ID. Check the ID.";
    Problem::new(ProblemCode::MemberNotFound, detail)
}

/// 404: the invitation does not exist, or was accepted or revoked, or has expired.
pub fn invitation_not_found() -> Problem {
    let detail = "The invitation does not exist, or it was accepted, revoked or expired. Create a \
                  new one.";
    Problem::new(ProblemCode::InvitationNotFound, detail)
}

/// 404: the organization has no such key, or the key is revoked.
pub fn api_key_not_found() -> Problem {
    let detail = "The organization has no active API key with this ID. Check the ID.";
    Problem::new(ProblemCode::ApiKeyNotFound, detail)
}

/// 409: a project has this slug.
pub fn project_exists(slug: &Slug) -> Problem {
    let detail = format!("A project with the slug `{slug}` exists. Choose another slug.");
    Problem::new(ProblemCode::ProjectExists, detail)
}

/// 404: the organization does not exist, or the user is not a member.
pub fn organization_not_found() -> Problem {
    let detail = "The organization does not exist, or you are not a member.";
    Problem::new(ProblemCode::OrganizationNotFound, detail)
}

/// 400: the token of a link is unknown, used or expired.
pub fn invalid_token() -> Problem {
    let detail = "The link is not valid: it was used, or it expired. Request a new one.";
    Problem::new(ProblemCode::InvalidToken, detail)
}

/// 400: the code of a link is wrong.
pub fn invalid_code() -> Problem {
    let detail = "The code is wrong. Enter the six digits from the newest email.";
    Problem::new(ProblemCode::InvalidCode, detail)
}

/// 403: another browser than the one that requested a link sent no code.
pub fn code_required() -> Problem {
    let detail = "Another browser requested this link. Enter the six digits from the email.";
    Problem::new(ProblemCode::CodeRequired, detail)
}

/// 500: the operating system has no randomness for a secret.
#[allow(clippy::needless_pass_by_value)] // The form of `map_err`.
pub fn no_randomness(error: NoRandomness) -> Problem {
    Problem::internal(error.to_string())
}
