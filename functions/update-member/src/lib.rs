//! Changes the role and projects of a member.

use std::collections::BTreeSet;

use people::store::{PeopleChange, PeopleStore};
use people::{Grant, ListedMember, MemberPatch, http};
use shared::app::{Access, App, Operation};
use shared::audit::{AuditAction, AuditTarget};
use shared::auth::Caller;
use shared::dynamodb::ConflictRetry;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem};
use shared::projects::api_key::Scope;
use shared::projects::member::Member;
use shared::projects::project::ProjectId;
use shared::projects::store::UseOf;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::PATCH,
    "/v0/members/{memberId}",
    Access::ApiKey(Scope::MembersWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    caller.require_all_projects()?;
    let patch = MemberPatch::read(&incoming.merge_patch()?)?;
    let projects: Option<Option<BTreeSet<ProjectId>>> = match &patch.projects {
        None => None,
        Some(None) => Some(None),
        Some(Some(named)) => Some(Some(http::projects_in(caller, named).await?)),
    };
    let id = http::member_id(incoming)?;

    let people = PeopleStore::new(&app.store);
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the current member.
        let stored = people.find_member(caller.organization(), id).await?;
        let stored = stored.ok_or_else(http::member_not_found)?;

        // Rules.
        http::require_role_over(caller, &stored, patch.role)?;
        let grant = patch.apply(&stored, projects.as_ref())?;
        http::require_scopes_of(caller, grant.role)?;
        let Grant { role, projects } = grant.clone();
        let member = Member { role, projects, ..stored.clone() };
        let response = shown(app, &member).await?;
        if member == stored {
            return Ok(response);
        }

        // Storage and response.
        let target = AuditTarget::new("member", id, stored.user.as_str());
        let entry = caller.audit(&app.ids, AuditAction::MemberUpdated, target);
        let more = vec![app.store.audit(&entry)?];
        let by = http::member_of(caller);
        let now = app.clock.now();
        let change = people.change_member(&stored, &grant, by.as_ref(), more, now).await?;
        if change != PeopleChange::Outdated {
            return http::response_to(change, &stored.user, now, response);
        }
    }
    Err(Problem::conflict("the member kept changing"))
}

async fn shown(app: &App, member: &Member) -> ApiResult {
    let used = UseOf::Member(member.id);
    let uses = app.store.last_uses(std::slice::from_ref(&used)).await?;
    ApiResponse::ok(&ListedMember::new(member, uses.get(&used).copied()))
}
