//! Tells a caller who it is: the user that its key acts for, what the key may do, and which projects it
//! may see.

use std::collections::BTreeSet;

use serde::Serialize;
use shared::app::{Access, Operation};
use shared::auth::Caller;
use shared::http::{ApiResponse, Method, Problem};
use shared::page::PageRequest;
use shared::projects::api_key::{KeyId, Scope, UserId};
use shared::projects::project::{Organization, ProjectSummary};
use shared::timestamp::Timestamp;

/// What this function is.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/me",
    Access::AnyApiKey(|_, caller, _| Box::pin(handle(caller))),
);

/// How many projects are told at most; list-projects has all of them.
const MAX_PROJECTS: u32 = 100;

/// Who calls.
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

/// Answers one request.
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
