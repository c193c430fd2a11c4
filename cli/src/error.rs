//! Errors of commands, with the remedy.

use std::io;
use std::path::PathBuf;

use people::InvitationId;
use people::store::{MAX_INVITATIONS_PER_DAY, PeopleChange};
use shared::dynamodb::StoreError;
use shared::projects::project::{IdOrSlug, Organization, Slug};
use shared::projects::role::Role;
use shared::projects::{
    NoRandomness,
    api_key::{KeyId, NotAScope, UserId},
};
use shared::timestamp::Timestamp;

use crate::flags::conflict::Conflicts;
use crate::flags::document::DocumentError;

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The tables could not be used. [`crate::connection::Connection::explain`] adds the cause.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the slug `{0}` is taken; choose another")]
    SlugTaken(Slug),
    #[error("the random ingest id of the project is already in use; try again")]
    IngestIdTaken,
    #[error(
        "the organization `{organization}` has no project {names}; `waymark project list` shows \
         all projects"
    )]
    UnknownProjects { names: String, organization: Organization },
    #[error("there is no project `{0}`; `waymark project list` shows all projects")]
    UnknownProject(IdOrSlug),
    #[error("`{0}` belongs to a project; pass --project")]
    SettingOfProject(&'static str),
    #[error("{place} cannot be read: {source}")]
    Unreadable { place: String, source: io::Error },
    #[error("{} cannot be written: {source}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("{place}: {error}")]
    Document { place: String, error: Box<DocumentError> },
    #[error("nothing was written, because these flags and segments cannot be imported:\n{0}")]
    ImportRejected(Conflicts),
    #[error("{done} of {total} changes were applied; these failed:\n{conflicts}")]
    ImportIncomplete { done: usize, total: usize, conflicts: Conflicts },
    #[error("--expires {expires} is in the past: it is {now} now; give a date in the future")]
    Expired { expires: Timestamp, now: Timestamp },
    #[error(
        "the DSN key was replaced at the same time; `waymark project list --json` shows the new one"
    )]
    DsnKeyChanged,
    #[error(
        "the address of the API is unknown; pass the stack's output BaseUrl as --base-url, or use \
         --local for the local stack"
    )]
    NoBaseUrl,
    #[error("the address was changed at the same time; try again")]
    AddressChanged,
    #[error("{user} is not a member of {organization}; `waymark member list` shows all members")]
    UnknownMember { user: UserId, organization: Organization },
    #[error("{0} is the last owner; add another owner first")]
    LastOwner(UserId),
    #[error("a member with the role {0} sees all projects; leave out --project")]
    LimitedRole(Role),
    #[error("the member was changed at the same time; try again")]
    MemberChanged,
    #[error("{0} is already a member; `waymark member update` changes the role")]
    MemberExists(UserId),
    #[error("{0} already has an open invitation; revoke it first")]
    InvitationExists(UserId),
    #[error("an organization can create {0} invitations per day (UTC); try again tomorrow")]
    TooManyInvitations(u32),
    #[error("there is no open invitation {0}; `waymark invitation list` shows all invitations")]
    UnknownInvitation(InvitationId),
    #[error("the invitation of {0} was accepted or revoked at the same time")]
    InvitationGone(UserId),
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    #[error("there is no key {0}; `waymark key list` shows all keys")]
    UnknownKey(KeyId),
    /// Does not repeat the whole key, because errors end up in logs.
    #[error("this is a complete API key; pass only its key id: `waymark key revoke {0}`")]
    WholeKey(KeyId),
    #[error("the key needs scopes: pass --scopes with some of these, or `all`\n{scopes}")]
    NoScopes { scopes: String },
    #[error(transparent)]
    NotAScope(#[from] NotAScope),
    #[error("the {0} is already being erased; `waymark erasure list` shows the progress")]
    BeingErased(String),
    #[error(
        "there is no user `{user}` in {organization}: no keys, preferences or address are \
         stored{near}; `waymark user list` shows users with keys. To erase data that a table \
         restore returned, add --even-if-unknown"
    )]
    UnknownUser { user: UserId, organization: Organization, near: String },
    #[error(
        "there is no project `{0}`; deleted projects have no slug: pass the id, which was shown \
         when the erasure began"
    )]
    ErasedByIdOnly(Slug),
    #[error("{0}; nothing was deleted")]
    NotConfirmed(String),
    #[error(
        "this is not a key id: it has 16 letters and digits; `waymark key list` shows all keys"
    )]
    NotAKeyId,
    #[error("the result could not be written: {0}")]
    Output(#[from] io::Error),
    #[error(
        "the key {key_id} was created, but it could not be written and cannot be shown again \
         ({source}); revoke it with `waymark key revoke {key_id}` and create another"
    )]
    SecretLost { key_id: KeyId, source: io::Error },
}

/// Fails if a change of members or invitations is not stored. `user` is the member or the invited
/// user.
pub(crate) fn require_done(change: &PeopleChange, user: &UserId) -> Result<(), CliError> {
    let user = user.clone();
    Err(match change {
        PeopleChange::Done | PeopleChange::Replay(_) => return Ok(()),
        PeopleChange::LastOwner => CliError::LastOwner(user),
        PeopleChange::MemberExists => CliError::MemberExists(user),
        PeopleChange::InvitationExists => CliError::InvitationExists(user),
        PeopleChange::LimitReached => CliError::TooManyInvitations(MAX_INVITATIONS_PER_DAY),
        PeopleChange::InvitationGone => CliError::InvitationGone(user),
        PeopleChange::Outdated | PeopleChange::CallerChanged => CliError::MemberChanged,
    })
}

impl CliError {
    /// `true` if the reader of the output closed the pipe.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
