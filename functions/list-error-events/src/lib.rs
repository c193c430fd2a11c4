//! Lists the events of an error, the latest first: GET `/v0/projects/{idOrSlug}/errors/{errorId}/events`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem, page_answer, read_page_request};
use shared::json::Violations;
use shared::models::api_key::Scope;

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::ErrorsRead)?;
    // The cursor belongs to the list of the path as it was sent.
    let list = format!("{OPERATION}/{}", incoming.path());
    let mut violations = Violations::default();
    let page_request = read_page_request(app, incoming, &list, &mut violations)?;
    let page_request = violations.into_result(page_request)?;
    let project_id = caller.project()?;
    let id = incoming.error_id()?;

    // Storage and answer.
    let error = app.store.find_error(project_id, id).await?;
    let fingerprint = error.ok_or_else(Problem::error_not_found)?.description.fingerprint;
    let now = app.clock.now();
    let page = app.store.list_error_events(project_id, fingerprint, &page_request, now).await?;
    page_answer(app, &list, &page)
}
