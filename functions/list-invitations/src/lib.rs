//! Lists the open invitations of an organization, sorted by address.

use people::store::PeopleStore;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, page_request, page_response};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/invitations",
    Access::ApiKey(Scope::MembersRead, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let page_request = page_request(app.cursor_key()?, incoming)?;

    // Storage and response.
    let (people, now) = (PeopleStore::new(&app.store), app.clock.now());
    let page = people.list_invitations(caller.organization(), &page_request, now).await?;
    page_response(app.cursor_key()?, incoming, &page)
}
