//! Why a command failed, and what to do then.

use std::io;
use std::path::PathBuf;

use shared::dynamodb::StoreError;
use shared::projects::project::{IdOrSlug, Organization, Slug};
use shared::projects::{
    NoRandomness,
    api_key::{KeyId, NotAScope, UserId},
};
use shared::timestamp::Timestamp;

use crate::flags::{Conflicts, DocumentError};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The tables could not be used; [`crate::connection::Connection::explain`] tells why.
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the slug `{0}` is taken; choose another")]
    SlugTaken(Slug),
    #[error("the project's numeric id, drawn at random, is another's; try again")]
    IngestIdTaken,
    #[error(
        "the organization `{organization}` has no project {names}; `waymark project list` shows \
         which there are"
    )]
    UnknownProjects { names: String, organization: Organization },
    #[error("there is no project `{0}`; `waymark project list` shows which there are")]
    UnknownProject(IdOrSlug),
    #[error("{place} cannot be read: {source}")]
    Unreadable { place: String, source: io::Error },
    #[error("{} cannot be written: {source}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("{place}: {error}")]
    Document { place: String, error: Box<DocumentError> },
    #[error("nothing was written, since not all flags can become what the file says:\n{0}")]
    ImportRefused(Conflicts),
    #[error("{done} of {total} changes are made; these could not be:\n{conflicts}")]
    ImportIncomplete { done: usize, total: usize, conflicts: Conflicts },
    #[error(
        "a key that expires at {expires} would never be valid, it is {now} now; give --expires a \
         date in the future"
    )]
    Expired { expires: Timestamp, now: Timestamp },
    #[error(
        "the project got another DSN key at the same time; `waymark project list --json` shows it"
    )]
    DsnKeyChanged,
    #[error(
        "where the API is, is not known; give --base-url what the stack's output BaseUrl says, or use \
         --local for the local stack"
    )]
    NoBaseUrl,
    #[error("the address was changed at the same time; try again")]
    AddressChanged,
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    #[error("there is no key {0}; `waymark key list` shows which there are")]
    UnknownKey(KeyId),
    /// The key itself must not be repeated: errors end up in logs.
    #[error("this is a whole API key; give only its key id: `waymark key revoke {0}`")]
    WholeKey(KeyId),
    #[error("say what the key may do: --scopes with some of these, or `all`\n{scopes}")]
    NoScopes { scopes: String },
    #[error(transparent)]
    NotAScope(#[from] NotAScope),
    #[error("the {0} is being erased already; `waymark erasure list` shows how far it has come")]
    BeingErased(String),
    #[error(
        "nothing is stored of a user `{user}` of {organization}: no key, no preferences, no address{near}; \
         `waymark user list` shows who has keys. To erase again what a restored table has brought back, say \
         --even-if-unknown"
    )]
    UnknownUser { user: UserId, organization: Organization, near: String },
    #[error(
        "there is no project `{0}`; one that is not there any more has no slug, so name it by its id, which \
         was told when its erasure began"
    )]
    ErasedByIdOnly(Slug),
    #[error("{0}; nothing was deleted")]
    NotConfirmed(String),
    #[error("this is not a key id, which has 16 letters and digits; `waymark key list` lists them")]
    NotAKeyId,
    #[error("the result could not be written: {0}")]
    Output(#[from] io::Error),
    #[error(
        "the key {key_id} is made, but it could not be written and cannot be shown again \
         ({source}); revoke it with `waymark key revoke {key_id}` and make another"
    )]
    SecretLost { key_id: KeyId, source: io::Error },
}

impl CliError {
    /// Whether nothing went wrong but that nobody reads the result any more.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
