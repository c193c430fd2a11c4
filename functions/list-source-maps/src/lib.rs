//! Lists the source maps of a project and its rejected bundles, the newest first.

use serde::Serialize;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, next_cursor, page_request};
use shared::projects::api_key::Scope;
use source_maps::store::{Failure, ListedMap, ProjectMaps};

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects/{idOrSlug}/source-maps",
    Access::ApiKey(Scope::ErrorsRead, shared::handler!(handle)),
)
// A build can check whether its maps arrived.
.or_scope(Scope::SourceMapsWrite);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    items: Vec<ListedMap>,
    next_cursor: Option<String>,
    failures: Vec<Failure>,
}

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let page_request = page_request(app.cursor_key()?, incoming)?;
    let store = ProjectMaps::new(&app.store, caller.project()?);

    // Storage and response.
    let page = store.list_maps(&page_request).await?;
    let failures = store.list_failures(app.clock.now()).await?;
    let next_cursor = next_cursor(app.cursor_key()?, incoming, &page);
    ApiResponse::ok(&Body { items: page.items, next_cursor, failures })
}
