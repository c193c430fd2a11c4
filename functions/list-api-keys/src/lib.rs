//! Lists the API keys of an organization, newest first.

use people::store::PeopleStore;
use people::{ListedApiKey, http};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, page_request, page_response};
use shared::projects::api_key::Scope;
use shared::projects::store::UseOf;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/api-keys",
    Access::ApiKey(Scope::KeysWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let page_request = page_request(app.cursor_key()?, incoming)?;

    // Storage and response.
    let mut page = app.store.page_of_keys(caller.organization(), &page_request).await?;
    page.items.retain(|key| http::can_administer(caller, key));
    PeopleStore::new(&app.store).end_with_members(&mut page.items).await?;
    let used = |id: &_| UseOf::Key(Clone::clone(id));
    let uses: Vec<UseOf> = page.items.iter().map(|key| used(&key.key_id)).collect();
    let uses = app.store.last_uses(&uses).await?;
    let shown = page.map(|key| ListedApiKey::new(key, uses.get(&used(&key.key_id)).copied()));
    page_response(app.cursor_key()?, incoming, &shown)
}
