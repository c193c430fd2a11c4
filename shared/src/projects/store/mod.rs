//! Tables `projects` and `api-keys`.

mod access;
pub(crate) mod announced;
mod api_keys;
mod erasures;
pub(crate) mod outbox;
mod projects;

pub use access::Access;
pub use api_keys::Revocation;
pub use projects::{IngestAccess, ProjectCreation, ProjectIdentity};
