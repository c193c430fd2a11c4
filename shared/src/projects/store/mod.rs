//! Tables `projects` and `api-keys`.

mod access;
mod api_keys;
mod projects;

pub use access::Access;
pub use api_keys::Revocation;
pub use projects::{IngestAccess, ProjectCreation, ProjectIdentity};
