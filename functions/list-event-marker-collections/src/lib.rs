//! Lists a project's event marker collections, the newest first.

use markers::store::MarkerStore;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, page_request, page_response};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects/{idOrSlug}/event-marker-collections",
    Access::ApiKey(Scope::MarkersRead, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    let page_request = page_request(app.cursor_key()?, incoming)?;
    let project_id = caller.project()?;

    let page = MarkerStore::new(&app.store).list_collections(project_id, &page_request).await?;
    page_response(app.cursor_key()?, incoming, &page)
}
