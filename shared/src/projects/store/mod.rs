//! Tables `projects` and `api-keys`, and the console codes in `idempotency`.

mod access;
mod api_keys;
mod console_codes;
mod erasures;
mod projects;

pub use access::Access;
pub use api_keys::Revocation;
pub use projects::{IngestAccess, ProjectCreation, ProjectIdentity};
