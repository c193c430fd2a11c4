//! Tables `projects` and `api-keys`, and the console codes in `idempotency`.

mod access;
pub(crate) mod announced;
mod api_keys;
mod console_codes;
mod erasures;
pub(crate) mod outbox;
mod projects;

pub use access::Access;
pub use api_keys::Revocation;
pub use projects::{IngestAccess, ProjectCreation, ProjectIdentity};
