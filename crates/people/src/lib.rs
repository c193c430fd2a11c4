//! People of organizations: members, invitations, API keys and projects.

mod api_key;
mod email_job;
pub mod http;
mod invitation;
mod member;
mod oidc_sign_in;
mod project;
pub mod sign_in;
pub mod store;

pub use api_key::{ApiKeyDraft, CreatedApiKey, ListedApiKey, read_key_name};
pub use email_job::{EmailJob, EmailKind, RequestedFrom};
pub use invitation::{Invitation, InvitationDraft, InvitationId, LIFETIME};
pub use member::{Grant, ListedMember, MemberPatch, read_email};
pub use oidc_sign_in::{OIDC_COOKIE, OIDC_LIFETIME, OidcSignIn};
pub use project::{ProjectDeletion, ProjectDraft, read_project_patch};
