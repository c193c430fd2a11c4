//! Members of organizations (`docs/semantics/people.md`).

use std::collections::BTreeSet;

use super::api_key::UserId;
use super::project::{Organization, ProjectId};
use super::role::Role;
use crate::timestamp::Timestamp;
use crate::uuid_type;

uuid_type! {
    /// The identifier of a membership. A user who is removed and added again gets another one.
    MemberId, parse_uuid
}

/// A user's membership in an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The identifier of the membership.
    pub id: MemberId,
    /// The organization.
    pub organization: Organization,
    /// The user: a verified email address in lower case.
    pub user: UserId,
    /// The role.
    pub role: Role,
    /// The projects that the member can see, or `None` for all of the organization. Admins and
    /// owners see all.
    pub projects: Option<BTreeSet<ProjectId>>,
    /// The time when the user became a member. Sessions that are older do not count.
    pub joined_at: Timestamp,
    /// The number of changes, for conditional writes.
    pub version: u64,
}
