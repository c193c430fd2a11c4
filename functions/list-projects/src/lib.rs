//! Lists the projects that a caller can see, sorted by slug, with the parts of their DSNs.

use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, page_request, page_response};

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects",
    Access::AnyApiKey(|app, caller, incoming| Box::pin(handle(app, caller, incoming))),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let page_request = page_request(app.cursor_key()?, incoming)?;

    // Storage and response.
    let page = caller.list_projects(&page_request).await?;
    page_response(app.cursor_key()?, incoming, &page)
}
