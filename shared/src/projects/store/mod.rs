//! Tables `projects`, `api-keys` and `people`, and the console codes in `idempotency`.

mod access;
mod api_keys;
mod console_codes;
mod erasures;
pub mod people;
mod projects;

pub use access::Access;
pub use api_keys::Revocation;
pub use people::{Membership, StoredSession, UseOf};
pub use projects::{IngestAccess, ProjectCreation, ProjectIdentity};
