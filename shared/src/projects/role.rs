//! Roles of members, and the scopes of each (`docs/semantics/people.md`, "Roles").

use std::collections::BTreeSet;
use std::str::FromStr;

use super::api_key::Scope;

crate::named_enum! {
    /// The role of a member. Later roles have more scopes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Role {
        /// Reads everything, evaluates flags, and changes the own notification settings.
        Viewer = "viewer",
        /// Also changes flags, insights, markers, errors and source maps.
        Member = "member",
        /// Also changes members, keys and projects, and reads the audit log.
        Admin = "admin",
        /// Also changes owners.
        Owner = "owner",
    }
}

/// A text that is not a role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a role; the roles are viewer, member, admin and owner")]
pub struct NotARole(String);

impl Role {
    /// Returns the scopes of the role.
    pub fn scopes(self) -> BTreeSet<Scope> {
        Scope::ALL.into_iter().filter(|scope| self >= lowest_role(*scope)).collect()
    }
}

/// Returns the lowest role with a scope.
fn lowest_role(scope: Scope) -> Role {
    match scope {
        Scope::FlagsRead
        | Scope::FlagsEvaluate
        | Scope::InsightsRead
        | Scope::MarkersRead
        | Scope::ErrorsRead
        | Scope::NotificationsRead
        | Scope::NotificationsWrite
        | Scope::MembersRead => Role::Viewer,
        Scope::FlagsWrite
        | Scope::InsightsWrite
        | Scope::MarkersWrite
        | Scope::ErrorsWrite
        | Scope::SourceMapsWrite => Role::Member,
        Scope::MembersWrite | Scope::KeysWrite | Scope::ProjectsWrite | Scope::AuditRead => {
            Role::Admin
        }
    }
}

impl FromStr for Role {
    type Err = NotARole;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::named(text).ok_or_else(|| NotARole(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_includes_the_scopes_of_lower_roles() {
        for pair in Role::ALL.windows(2) {
            assert!(pair[0] < pair[1]);
            assert!(pair[0].scopes().is_subset(&pair[1].scopes()));
        }
        assert_eq!(Role::Owner.scopes().len(), Scope::ALL.len());
        assert_eq!(Role::Admin.scopes(), Role::Owner.scopes());
    }

    #[test]
    fn viewers_write_only_their_notification_settings() {
        let writes: Vec<&str> = Role::Viewer
            .scopes()
            .into_iter()
            .map(Scope::as_str)
            .filter(|it| it.ends_with(":write"))
            .collect();
        assert_eq!(writes, ["notifications:write"]);
        for scope in [Scope::MembersWrite, Scope::KeysWrite, Scope::ProjectsWrite, Scope::AuditRead]
        {
            assert!(!Role::Member.scopes().contains(&scope));
            assert!(Role::Admin.scopes().contains(&scope));
        }
    }

    #[test]
    fn roles_are_parsed_by_name() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        assert!("Owner".parse::<Role>().is_err());
    }
}
