//! Lists a project's event marker collections, the newest first.

use markers::store::MarkerStore;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, page_response, read_page_request};
use shared::json::Violations;
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects/{idOrSlug}/event-marker-collections",
    Access::ApiKey(Scope::MarkersRead, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    let mut violations = Violations::default();
    let page_request = read_page_request(app.cursor_key()?, incoming, &mut violations);
    let page_request = violations.into_result(page_request)?;
    let project_id = caller.project()?;

    let page = MarkerStore::new(&app.store).list_collections(project_id, &page_request).await?;
    page_response(app.cursor_key()?, incoming, &page)
}
