//! The identity of a caller: what a valid credential stands for.

use std::collections::BTreeSet;
use std::fmt;

use crate::projects::api_key::{ApiKeyRecord, KeyId, Scope, UserId};
use crate::projects::member::{Member, MemberId};
use crate::projects::project::{Organization, ProjectId};
use crate::projects::role::Role;
use crate::projects::session::Session;
use crate::projects::store::Membership;
use crate::timestamp::Timestamp;

/// A user with the permissions of the request's credential.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) organization: Organization,
    pub(super) user: UserId,
    pub(super) scopes: BTreeSet<Scope>,
    /// The visible projects, or `None` for all of the organization.
    pub(super) projects: Option<BTreeSet<ProjectId>>,
    pub(super) credential: Credential,
    /// The membership behind the credential. `None` for keys of the `waymark` command.
    pub(super) member: Option<(MemberId, Role)>,
}

/// A valid credential. Its display form identifies it in logs and scopes idempotency keys; it
/// contains no secret.
#[derive(Debug, Clone)]
pub enum Credential {
    /// An API key.
    Key {
        /// The key's public part.
        id: KeyId,
        /// The expiry time, if the key expires.
        expires_at: Option<Timestamp>,
    },
    /// The session of a signed-in user.
    Session(Session),
}

impl fmt::Display for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { id, .. } => id.fmt(formatter),
            // 96 bits of a hash identify a session, and do not help to find its secret.
            Self::Session(session) => write!(formatter, "session-{:.16}", session.digest.as_str()),
        }
    }
}

impl Identity {
    /// Returns the identity of a valid key. A key that a member created has at most the member's
    /// permissions. Returns `None` if its membership has ended.
    pub(super) fn of_key(key: ApiKeyRecord, membership: Option<Membership>) -> Option<Self> {
        let ApiKeyRecord { key_id, organization, user, scopes, projects, expires_at, .. } = key;
        let credential = Credential::Key { id: key_id, expires_at };
        let keeps = Self { organization, user, scopes, projects, credential, member: None };
        let Some(id) = key.member else { return Some(keeps) };
        let member = membership?.member.filter(|member| member.id == id)?;
        let allowed = member.role.scopes();
        Some(Self {
            scopes: keeps.scopes.intersection(&allowed).copied().collect(),
            projects: common(keeps.projects, member.projects),
            member: Some((member.id, member.role)),
            ..keeps
        })
    }

    /// Returns the identity of an unexpired session. Returns `None` if the user is not a member of
    /// the session's organization, got another role there, or ended the session from elsewhere.
    pub(super) fn of_session(session: Session, membership: Membership) -> Option<Self> {
        let Membership { member, role_changed_at, signed_out_at } = membership;
        let Member { id, role, projects, joined_at, .. } = member?;
        let is_ended = signed_out_at.is_some_and(|ended| session.signed_in_at <= ended)
            || role_changed_at.is_some_and(|changed| session.issued_at <= changed);
        // A user who was removed and joined again has to sign in again.
        if is_ended || session.issued_at < joined_at {
            return None;
        }
        Some(Self {
            organization: session.organization.clone(),
            user: session.user.clone(),
            scopes: role.scopes(),
            projects,
            credential: Credential::Session(session),
            member: Some((id, role)),
        })
    }

    /// Returns `true` if the caller can see this project of the organization.
    pub(super) fn may_see(&self, project: ProjectId, organization: &Organization) -> bool {
        let listed = self.projects.as_ref().is_none_or(|projects| projects.contains(&project));
        listed && self.organization == *organization
    }
}

/// Returns the projects in both lists, each of which can name all.
fn common(
    one: Option<BTreeSet<ProjectId>>,
    other: Option<BTreeSet<ProjectId>>,
) -> Option<BTreeSet<ProjectId>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.intersection(&other).copied().collect()),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projects::api_key::ApiKey;
    use uuid::Uuid;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn project(number: u128) -> ProjectId {
        ProjectId::new(Uuid::from_u128(number))
    }

    fn member(role: Role, projects: Option<BTreeSet<ProjectId>>) -> Member {
        Member {
            id: MemberId::new(Uuid::from_u128(7)),
            organization: Organization::parse("acme").unwrap(),
            user: UserId::parse("mira@example.com").unwrap(),
            role,
            projects,
            joined_at: at(100),
            version: 1,
        }
    }

    fn key(member: Option<u128>, projects: Option<BTreeSet<ProjectId>>) -> ApiKeyRecord {
        let key = ApiKey::generate().unwrap();
        ApiKeyRecord {
            key_id: key.key_id().clone(),
            secret_hash: key.secret_hash(),
            organization: Organization::parse("acme").unwrap(),
            user: UserId::parse("mira@example.com").unwrap(),
            name: String::new(),
            member: member.map(|id| MemberId::new(Uuid::from_u128(id))),
            scopes: [Scope::FlagsRead, Scope::FlagsWrite, Scope::KeysWrite].into(),
            projects,
            created_at: at(0),
            expires_at: None,
            revoked_at: None,
        }
    }

    fn membership(member: Option<Member>) -> Membership {
        Membership { member, ..Membership::default() }
    }

    #[test]
    fn keys_of_members_are_cut_to_the_role() {
        let scopes = |role| {
            let found = Identity::of_key(key(Some(7), None), Some(membership(Some(role))));
            found.unwrap().scopes.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(scopes(member(Role::Viewer, None)), [Scope::FlagsRead]);
        assert_eq!(scopes(member(Role::Member, None)), [Scope::FlagsRead, Scope::FlagsWrite]);
        assert_eq!(scopes(member(Role::Admin, None)).len(), 3);
    }

    #[test]
    fn keys_of_members_are_cut_to_their_projects() {
        let [one, two, three] = [1, 2, 3].map(project);
        for (of_key, of_member, visible) in [
            (None, None, None),
            (Some([one].into()), None, Some([one].into())),
            (None, Some([two].into()), Some([two].into())),
            (Some([one, two].into()), Some([two, three].into()), Some([two].into())),
            (Some([one].into()), Some([three].into()), Some(BTreeSet::new())),
        ] {
            let member = membership(Some(member(Role::Member, of_member)));
            let found = Identity::of_key(key(Some(7), of_key), Some(member)).unwrap();
            assert_eq!(found.projects, visible);
        }
    }

    #[test]
    fn keys_end_with_their_membership() {
        let of = |found| Identity::of_key(key(Some(8), None), found).is_some();
        assert!(!of(None));
        assert!(!of(Some(membership(None))));
        assert!(!of(Some(membership(Some(member(Role::Owner, None))))), "another membership");
        assert!(Identity::of_key(key(None, None), None).is_some(), "a key of the command");
    }

    #[test]
    fn sessions_end_with_membership_role_and_sign_out() {
        let organization = Organization::parse("acme").unwrap();
        let user = UserId::parse("mira@example.com").unwrap();
        let started =
            |second| Session::start(user.clone(), organization.clone(), at(second)).unwrap().0;
        let of = |second, signed_out_at: Option<i64>, member| {
            let signed_out_at = signed_out_at.map(at);
            let membership = Membership { member, signed_out_at, ..Membership::default() };
            Identity::of_session(started(second), membership).is_some()
        };
        let with_role_of = |second, changed| {
            let role_changed_at = Some(at(changed));
            let member = Some(member(Role::Owner, None));
            let membership = Membership { member, role_changed_at, signed_out_at: None };
            Identity::of_session(started(second), membership).is_some()
        };
        assert!(!with_role_of(200, 200), "the session is older than the role");
        assert!(with_role_of(201, 200));
        let owner = || Some(member(Role::Owner, None));
        assert!(of(100, None, owner()));
        assert!(!of(100, None, None));
        assert!(!of(99, None, owner()), "the session is older than the membership");
        assert!(!of(200, Some(200), owner()));
        assert!(of(201, Some(200), owner()));
    }
}
