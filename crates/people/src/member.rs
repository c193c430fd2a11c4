//! Members: their access, and its changes (`docs/semantics/people.md`, "Members").

use std::collections::BTreeSet;

use notifications::address::EmailAddress;
use serde::Serialize;

use shared::json::{FieldError, Fields, Json, ViolationCode, Violations, text};
use shared::projects::api_key::UserId;
use shared::projects::member::{Member, MemberId};
use shared::projects::named_project::{NamedProject, read_projects};
use shared::projects::project::ProjectId;
use shared::projects::role::Role;
use shared::timestamp::Timestamp;

/// A role, with the projects that a member can see; `None` for all of the organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The role.
    pub role: Role,
    /// The projects.
    pub projects: Option<BTreeSet<ProjectId>>,
}

impl Grant {
    /// Returns the access, unless an admin or owner is limited to projects.
    pub fn new(role: Role, projects: Option<BTreeSet<ProjectId>>) -> Result<Self, Violations> {
        if role >= Role::Admin && projects.is_some() {
            let message = "admins and owners see all projects; send null, or another role";
            return Err(Violations::of_field("projects", ViolationCode::InvalidValue, message));
        }
        Ok(Self { role, projects })
    }
}

/// The body of update-member, a JSON Merge Patch (RFC 7396). `None` keeps the current value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberPatch {
    /// The new role.
    pub role: Option<Role>,
    /// The new projects; `Some(None)` for all of the organization.
    pub projects: Option<Option<Vec<NamedProject>>>,
}

impl MemberPatch {
    /// Reads the body of update-member.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        Fields::of_body(body, |fields, violations| {
            let role = fields.patched("role", violations, text(parse_role));
            let projects = fields.optional("projects", violations, read_projects);
            let projects = projects.map(Some).or_reset_to(None);
            Some(Self { role: role?, projects: projects? })
        })
    }

    /// Returns the member's new access. `projects` are those of the patch. A new role of an admin
    /// or owner includes all projects.
    pub fn apply(
        &self,
        member: &Member,
        projects: Option<&Option<BTreeSet<ProjectId>>>,
    ) -> Result<Grant, Violations> {
        let role = self.role.unwrap_or(member.role);
        let projects = match projects {
            Some(projects) => projects.clone(),
            None if role >= Role::Admin => None,
            None => member.projects.clone(),
        };
        Grant::new(role, projects)
    }
}

/// A member as callers see it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedMember<'m> {
    id: MemberId,
    email: &'m UserId,
    role: Role,
    projects: Option<Vec<ProjectId>>,
    joined_at: Timestamp,
    last_seen_at: Option<Timestamp>,
}

impl<'m> ListedMember<'m> {
    /// Returns the member, with the time of its last request.
    pub fn new(member: &'m Member, last_seen_at: Option<Timestamp>) -> Self {
        // Stands for deleted projects: an empty set cannot be stored.
        let none = ProjectId::new(uuid::Uuid::nil());
        let existing =
            |ids: &BTreeSet<ProjectId>| ids.iter().copied().filter(|id| *id != none).collect();
        Self {
            id: member.id,
            email: &member.user,
            role: member.role,
            projects: member.projects.as_ref().map(existing),
            joined_at: member.joined_at,
            last_seen_at,
        }
    }
}

/// Parses the address of a user, which compares without case.
pub fn read_email(text: &str) -> Result<UserId, FieldError> {
    let address = EmailAddress::parse(text)?;
    UserId::parse(&address.as_str().to_ascii_lowercase()).map_err(|_| {
        let message = "an address of a user has at most 128 characters";
        FieldError::new(ViolationCode::TooLong, message)
    })
}

/// Parses a role.
pub(crate) fn parse_role(text: &str) -> Result<Role, FieldError> {
    text.parse::<Role>().map_err(|error| FieldError::new(ViolationCode::InvalidValue, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::projects::project::Organization;

    fn member(role: Role, projects: Option<BTreeSet<ProjectId>>) -> Member {
        Member {
            id: MemberId::new(uuid::Uuid::nil()),
            organization: Organization::parse("acme").unwrap(),
            user: UserId::parse("mira@example.com").unwrap(),
            role,
            projects,
            joined_at: Timestamp::from_millis(0),
            version: 1,
        }
    }

    fn patch(body: &str) -> Result<MemberPatch, Vec<String>> {
        let json = Json::parse(body, 32).unwrap();
        MemberPatch::read(&json).map_err(|violations| {
            let listed = violations.listed();
            listed
                .iter()
                .map(|it| serde_json::to_value(it).unwrap()["pointer"].to_string())
                .collect()
        })
    }

    #[test]
    fn patches_keep_absent_fields() {
        let some = Some(BTreeSet::from([ProjectId::new(uuid::Uuid::nil())]));
        let stored = member(Role::Member, some.clone());
        let none = patch("{}").unwrap();
        assert_eq!(none.apply(&stored, None), Ok(Grant { role: Role::Member, projects: some }));
        let all = patch(r#"{"projects": null}"#).unwrap();
        assert_eq!(all.projects, Some(None));
        let access = Grant { role: Role::Member, projects: None };
        assert_eq!(all.apply(&stored, Some(&None)), Ok(access));
    }

    #[test]
    fn admins_see_all_projects() {
        let some = Some(BTreeSet::from([ProjectId::new(uuid::Uuid::nil())]));
        let stored = member(Role::Member, some.clone());
        let promotion = patch(r#"{"role": "admin"}"#).unwrap();
        let access = Grant { role: Role::Admin, projects: None };
        assert_eq!(promotion.apply(&stored, None), Ok(access));
        assert!(promotion.apply(&stored, Some(&some)).is_err());
        assert!(patch("{}").unwrap().apply(&member(Role::Owner, None), Some(&some)).is_err());
    }

    #[test]
    fn invalid_patches_are_rejected() {
        for (body, pointer) in [
            (r#"{"role": null}"#, "/role"),
            (r#"{"role": "root"}"#, "/role"),
            (r#"{"projects": []}"#, "/projects"),
            (r#"{"projects": [1]}"#, "/projects/0"),
            (r#"{"email": "a@b.de"}"#, "/email"),
        ] {
            assert_eq!(patch(body), Err(vec![format!("\"{pointer}\"")]), "{body}");
        }
    }

    #[test]
    fn addresses_compare_without_case() {
        assert_eq!(read_email("Mira@Example.COM").unwrap().as_str(), "mira@example.com");
        let long = format!("{}@{}.de", "a".repeat(64), "b".repeat(63));
        assert_eq!(read_email(&long).unwrap_err().code, ViolationCode::TooLong);
        assert!(read_email("mira").is_err());
    }
}
