//! Lists the projects that a caller can see, sorted by slug, with the parts of their DSNs.

use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, page_response, read_page_request};
use shared::json::Violations;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects",
    Access::AnyApiKey(|app, caller, incoming| Box::pin(handle(app, caller, incoming))),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let mut violations = Violations::default();
    let page_request = read_page_request(app.cursor_key()?, incoming, &mut violations);
    let page_request = violations.into_result(page_request)?;

    // Storage and response.
    let page = caller.list_projects(&page_request).await?;
    page_response(app.cursor_key()?, incoming, &page)
}
