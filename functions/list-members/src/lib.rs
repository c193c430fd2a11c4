//! Lists the members of an organization, sorted by address.

use people::ListedMember;
use people::store::PeopleStore;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, page_request, page_response};
use shared::projects::api_key::Scope;
use shared::projects::store::UseOf;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/members",
    Access::ApiKey(Scope::MembersRead, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let page_request = page_request(app.cursor_key()?, incoming)?;

    // Storage and response.
    let people = PeopleStore::new(&app.store);
    let page = people.list_members(caller.organization(), &page_request).await?;
    let uses: Vec<UseOf> = page.items.iter().map(|member| UseOf::Member(member.id)).collect();
    let uses = app.store.last_uses(&uses).await?;
    let shown =
        page.map(|member| ListedMember::new(member, uses.get(&UseOf::Member(member.id)).copied()));
    page_response(app.cursor_key()?, incoming, &shown)
}
