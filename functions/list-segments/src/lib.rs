//! Lists a project's segments, sorted by key.

use flags::store::FlagStore;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, page_request, page_response};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/project/{idOrSlug}/segments",
    Access::ApiKey(Scope::FlagsRead, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    let page_request = page_request(app.cursor_key()?, incoming)?;
    let project_id = caller.project()?;

    let page = FlagStore::new(&app.store).list_segments(project_id, &page_request).await?;
    page_response(app.cursor_key()?, incoming, &page)
}
