//! Returns the caller's user, the scopes of its key, and the projects that it can see.

use std::collections::BTreeSet;

use serde::Serialize;
use shared::app::{Access, Operation};
use shared::auth::Caller;
use shared::http::{ApiResponse, Method, Problem};
use shared::page::PageRequest;
use shared::projects::api_key::{KeyId, Scope, UserId};
use shared::projects::project::{Organization, ProjectSummary};
use shared::timestamp::Timestamp;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/me",
    Access::AnyApiKey(|_, caller, _| Box::pin(handle(caller))),
);

/// Most projects in the response; list-projects returns all of them.
const MAX_PROJECTS: u32 = 100;

/// The caller's details.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallerInfo<'c> {
    user: Option<&'c UserId>,
    organization: &'c Organization,
    scopes: &'c BTreeSet<Scope>,
    projects: Vec<ProjectSummary>,
    key_id: &'c KeyId,
    expires_at: Option<Timestamp>,
}

async fn handle(caller: &Caller<'_>) -> Result<ApiResponse, Problem> {
    // Every visitor of a page can read its key, and a user is often an email address.
    let is_private = caller.scopes().iter().any(|scope| *scope != Scope::FlagsEvaluate);
    let first = PageRequest { limit: MAX_PROJECTS, after: None };
    ApiResponse::ok(&CallerInfo {
        user: is_private.then(|| caller.user()),
        organization: caller.organization(),
        scopes: caller.scopes(),
        projects: caller.name_projects(&first).await?.items,
        key_id: caller.key_id(),
        expires_at: caller.expires_at(),
    })
}
