//! Lists a project's errors by their last occurrence, latest first.

use errors::ErrorStatus;
use errors::store::ErrorStore;
use shared::app::{Access, App, COUNTING_TIME_BUDGET, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, page_response, read_page_request};
use shared::json::Violations;
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects/{idOrSlug}/errors",
    Access::ApiKey(Scope::ErrorsRead, shared::handler!(handle)),
)
.within(COUNTING_TIME_BUDGET);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let mut violations = Violations::default();
    let status = incoming.query_parameter("status", &mut violations, ErrorStatus::parse);
    let page_request = read_page_request(app.cursor_key()?, incoming, &mut violations);
    let (status, page_request) = violations.into_result(status.zip(page_request))?;
    let project_id = caller.project()?;

    // Storage and response.
    let now = app.clock.now();
    let store = ErrorStore::new(&app.store);
    let page = store.list_errors(project_id, status, &page_request, now).await?;
    page_response(app.cursor_key()?, incoming, &page.map(|(error, events)| error.shown(*events)))
}
