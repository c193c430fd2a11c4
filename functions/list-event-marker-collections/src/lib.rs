//! Lists a project's event marker collections, the newest first: GET `/v0/projects/{idOrSlug}/event-marker-collections`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem, page_answer, read_page_request};
use shared::json::Violations;
use shared::models::api_key::Scope;

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::MarkersRead)?;
    // The cursor belongs to the list of the path as it was sent.
    let list = format!("{OPERATION}/{}", incoming.path());
    let mut violations = Violations::default();
    let page_request = read_page_request(app, incoming, &list, &mut violations)?;
    let page_request = violations.into_result(page_request)?;
    let project_id = caller.project()?;

    let page = app.store.list_collections(project_id, &page_request).await?;
    page_answer(app, &list, &page)
}
