//! Lists the changes in an organization, newest first.

use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, page_request, page_response};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/audit",
    Access::ApiKey(Scope::AuditRead, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    caller.require_all_projects()?;
    let page_request = page_request(app.cursor_key()?, incoming)?;

    // Storage and response.
    let now = app.clock.now();
    let page = app.store.list_audit(caller.organization(), &page_request, now).await?;
    page_response(app.cursor_key()?, incoming, &page)
}
