//! Invitations (`docs/semantics/people.md`, "Invitations").

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

use shared::json::{Fields, Json, Violations, text};
use shared::projects::api_key::UserId;
use shared::projects::member::{Member, MemberId};
use shared::projects::named_project::{NamedProject, read_projects};
use shared::projects::project::{Organization, ProjectId};
use shared::projects::role::Role;
use shared::timestamp::Timestamp;
use shared::uuid_type;

use super::member::{Grant, parse_role, read_email};

/// Time after which an invitation expires.
pub const LIFETIME: Duration = Duration::from_hours(7 * 24);

uuid_type! {
    /// The identifier of an invitation.
    InvitationId, parse_uuid
}

/// An invitation of a person to an organization, with the fields of `openapi.yaml` in the same
/// order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Invitation {
    /// The identifier.
    pub id: InvitationId,
    /// The organization.
    #[serde(skip)]
    pub organization: Organization,
    /// The invited user: an address in lower case.
    #[serde(rename = "email")]
    pub user: UserId,
    /// The role of the new member.
    pub role: Role,
    /// The projects of the new member, or `None` for all of the organization.
    pub projects: Option<BTreeSet<ProjectId>>,
    /// The user who created the invitation.
    pub invited_by: UserId,
    /// The membership of that user. `None` for keys of the `waymark` command.
    #[serde(skip)]
    pub inviter: Option<MemberId>,
    /// Time of the creation.
    pub created_at: Timestamp,
    /// Time at which the invitation expires.
    pub expires_at: Timestamp,
}

impl Invitation {
    /// Creates an invitation at `now`.
    pub fn new(
        id: InvitationId,
        organization: Organization,
        user: UserId,
        Grant { role, projects }: Grant,
        invited_by: UserId,
        now: Timestamp,
    ) -> Self {
        let (created_at, expires_at) = (now, now.plus(LIFETIME));
        Self {
            id,
            organization,
            user,
            role,
            projects,
            invited_by,
            inviter: None,
            created_at,
            expires_at,
        }
    }

    /// Returns the invitation of a member, which ends when the member cannot invite to its role.
    #[must_use]
    pub fn by(self, inviter: Option<MemberId>) -> Self {
        Self { inviter, ..self }
    }

    /// Returns the lowest role that can create the invitation.
    pub fn lowest_inviter(&self) -> Role {
        self.role.max(Role::Admin)
    }

    /// Returns `true` if the invitation can be accepted at `now`.
    pub fn is_open(&self, now: Timestamp) -> bool {
        now < self.expires_at
    }

    /// Returns the member that accepting at `now` creates.
    pub fn into_member(self, id: MemberId, now: Timestamp) -> Member {
        let Self { organization, user, role, projects, .. } = self;
        Member { id, organization, user, role, projects, joined_at: now, version: 1 }
    }
}

/// The body of create-invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvitationDraft {
    /// The invited user.
    pub user: UserId,
    /// The role.
    pub role: Role,
    /// The projects; `None` for all of the organization.
    pub projects: Option<Vec<NamedProject>>,
}

impl InvitationDraft {
    /// Reads the body of create-invitation.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        Fields::of_body(body, |fields, violations| {
            let user = fields.required("email", violations, text(read_email));
            let role = fields.required("role", violations, text(parse_role));
            let projects = fields.optional("projects", violations, read_projects);
            let projects = projects.map(Some).or_default();
            if let (Some(role), Some(Some(_))) = (role, &projects) {
                // The projects need not exist for this rule.
                let limited = Grant::new(role, Some(BTreeSet::new()));
                limited.map_err(|limited| violations.append(limited)).ok()?;
            }
            Some(Self { user: user?, role: role?, projects: projects? })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<InvitationDraft, Vec<String>> {
        let json = Json::parse(body, 32).unwrap();
        InvitationDraft::read(&json).map_err(|violations| {
            let listed = violations.listed();
            listed
                .iter()
                .map(|it| serde_json::to_value(it).unwrap()["pointer"].to_string())
                .collect()
        })
    }

    #[test]
    fn drafts_list_all_violations() {
        let draft = read(r#"{"email": "Juno@Example.com", "role": "viewer"}"#).unwrap();
        assert_eq!((draft.user.as_str(), draft.role), ("juno@example.com", Role::Viewer));
        assert_eq!(draft.projects, None);
        for (body, pointers) in [
            (r#"{"email": "a@b.de", "role": "admin", "projects": ["shop"]}"#, &["/projects"][..]),
            (r#"{"email": "a@b", "role": "root"}"#, &["/email", "/role"]),
            ("{}", &["/email", "/role"]),
            (r#"{"email": "a@b.de", "role": "member", "projects": []}"#, &["/projects"]),
        ] {
            let expected: Vec<String> = pointers.iter().map(|it| format!("\"{it}\"")).collect();
            assert_eq!(read(body), Err(expected), "{body}");
        }
    }
}
