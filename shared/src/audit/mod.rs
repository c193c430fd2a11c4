//! Audit entries: who did what, from where (`docs/semantics/people.md`, "Audit log"). Each is
//! written in the transaction of its change.

mod store;

use std::time::Duration;

use serde::Serialize;
use uuid::Uuid;

use crate::http::ApiRequest;
use crate::projects::api_key::Actor;
use crate::projects::member::Member;
use crate::projects::project::Organization;
use crate::timestamp::Timestamp;

/// Time that an entry is kept.
pub const RETENTION: Duration = Duration::from_hours(400 * 24);
/// Most characters of a user agent and of a target's name.
const MAX_TEXT: usize = 200;

/// A change, and its author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// The identifier, a UUID of version 7: entries sort by it.
    pub id: Uuid,
    /// The time of the change.
    pub at: Timestamp,
    /// The organization of the changed resource.
    pub organization: Organization,
    /// The author.
    pub actor: Actor,
    /// The kind of change.
    pub action: AuditAction,
    /// The changed resource.
    pub target: AuditTarget,
    /// The sender of the request.
    pub source: AuditSource,
}

impl AuditEntry {
    /// Returns the entry of a change that the `waymark` command makes.
    pub fn of_command(
        id: Uuid,
        organization: Organization,
        action: AuditAction,
        target: AuditTarget,
        at: Timestamp,
    ) -> Self {
        let (actor, source) = (Actor::Command, AuditSource::default());
        Self { id, at, organization, actor, action, target, source }
    }

    /// Returns the entry of a change that concerns a member, by the member's own request.
    pub fn of_member(
        id: Uuid,
        member: &Member,
        action: AuditAction,
        incoming: &ApiRequest,
        at: Timestamp,
    ) -> Self {
        Self {
            id,
            at,
            organization: member.organization.clone(),
            actor: Actor::Session { user: member.user.clone() },
            action,
            target: AuditTarget::new("member", member.id, member.user.as_str()),
            source: AuditSource::of(incoming),
        }
    }
}

/// A changed resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditTarget {
    /// The type, such as `member`.
    pub kind: &'static str,
    /// The identifier.
    pub id: String,
    /// The name at the time of the change, at most 200 characters.
    pub name: String,
}

impl AuditTarget {
    /// Creates a target. Cuts the name.
    #[allow(clippy::needless_pass_by_value)] // IDs are cheap to copy.
    pub fn new(kind: &'static str, id: impl ToString, name: impl AsRef<str>) -> Self {
        Self { kind, id: id.to_string(), name: cut(name.as_ref()) }
    }
}

/// The sender of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditSource {
    /// The network address; `None` for the `waymark` command.
    pub address: Option<String>,
    /// The header `user-agent`, at most 200 characters.
    pub user_agent: Option<String>,
}

impl AuditSource {
    /// Returns the sender of a request.
    pub fn of(incoming: &ApiRequest) -> Self {
        let user_agent = incoming.header_texts("user-agent").first().map(|text| cut(text));
        Self { address: incoming.source_address(), user_agent }
    }
}

/// Name of the `waymark` command as an author.
pub const COMMAND: &str = "waymark";

/// An entry as callers see it, with the fields of `openapi.yaml` in the same order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedEntry {
    /// The identifier.
    pub id: String,
    /// The time of the change.
    pub at: Timestamp,
    /// The author: a `user`, a `key` or a `command`.
    pub actor: NamedResource,
    /// The kind of change.
    pub action: String,
    /// The changed resource.
    pub target: NamedResource,
    /// The sender of the request.
    pub source: AuditSource,
}

/// An author or a changed resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedResource {
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The identifier.
    pub id: String,
    /// The name at the time of the change.
    pub name: String,
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

crate::named_enum! {
    /// The kind of a change. `openapi.yaml` lists the names.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[allow(missing_docs)] // Only openapi.yaml documents their meanings.
    pub enum AuditAction {
        SignedIn = "signed_in",
        MemberAdded = "member_added",
        MemberUpdated = "member_updated",
        MemberRemoved = "member_removed",
        InvitationCreated = "invitation_created",
        InvitationAccepted = "invitation_accepted",
        InvitationRevoked = "invitation_revoked",
        ApiKeyCreated = "api_key_created",
        ApiKeyRevoked = "api_key_revoked",
        ProjectCreated = "project_created",
        ProjectUpdated = "project_updated",
        ProjectDeleted = "project_deleted",
        FlagCreated = "flag_created",
        FlagUpdated = "flag_updated",
        FlagArchived = "flag_archived",
        FlagUnarchived = "flag_unarchived",
        FlagRestored = "flag_restored",
        FlagDeleted = "flag_deleted",
        SegmentCreated = "segment_created",
        SegmentUpdated = "segment_updated",
        SegmentDeleted = "segment_deleted",
        ErrorDeleted = "error_deleted",
        CollectionDeleted = "collection_deleted",
        SourceMapDeleted = "source_map_deleted",
        UserErased = "user_erased",
    }
}
