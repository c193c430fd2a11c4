//! Lists the changes of a feature flag, the latest first.

use flags::http;
use flags::store::FlagStore;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, page_request, page_response};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/project/{idOrSlug}/feature-flags/{key}/changes",
    Access::ApiKey(Scope::FlagsRead, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let page_request = page_request(app.cursor_key()?, incoming)?;
    let project_id = caller.project()?;
    let key = http::flag_key(incoming)?;

    // Storage: the history is stored under the flag's id.
    let flag = FlagStore::new(&app.store).find_flag(project_id, &key).await?;
    let flag = flag.ok_or_else(http::flag_not_found)?;
    let page =
        FlagStore::new(&app.store).list_flag_changes(&flag, &page_request, app.clock.now()).await?;
    page_response(app.cursor_key()?, incoming, &page)
}
