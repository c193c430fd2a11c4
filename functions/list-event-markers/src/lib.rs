//! Lists the events of a collection, the oldest first: GET `/v0/projects/{idOrSlug}/event-marker-collections/{collectionId}/events`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem, page_answer, read_page_request};
use shared::json::Violations;
use shared::models::api_key::Scope;
use shared::models::event_marker::TimeRange;

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::MarkersRead)?;
    // The cursor belongs to the list of the path as it was sent.
    let list = format!("{OPERATION}/{}", incoming.path());
    let mut violations = Violations::default();
    let from = incoming.query_parameter("from", &mut violations, TimeRange::parse_bound);
    let to = incoming.query_parameter("to", &mut violations, TimeRange::parse_bound);
    let range = from.zip(to).and_then(|(from, to)| {
        TimeRange::new(from, to).map_err(|fault| violations.note_query("from", fault)).ok()
    });
    let page_request = read_page_request(app, incoming, &list, &mut violations)?;
    let (range, page_request) = violations.into_result(range.zip(page_request))?;
    let project_id = caller.project()?;
    let id = incoming.collection_id()?;

    // Storage and answer.
    let page = app.store.list_events(project_id, id, range, &page_request).await?;
    let page = page.ok_or_else(Problem::collection_not_found)?;
    page_answer(app, &list, &page)
}
