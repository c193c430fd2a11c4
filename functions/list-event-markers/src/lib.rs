//! Lists the events of a collection, the oldest first.

use markers::store::MarkerStore;
use markers::{TimeRange, http};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, page_response, read_page_request};
use shared::json::Violations;
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects/{idOrSlug}/event-marker-collections/{collectionId}/events",
    Access::ApiKey(Scope::MarkersRead, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let mut violations = Violations::default();
    let from = incoming.query_parameter("from", &mut violations, TimeRange::parse_bound);
    let to = incoming.query_parameter("to", &mut violations, TimeRange::parse_bound);
    let range = from.zip(to).and_then(|(from, to)| {
        TimeRange::new(from, to).map_err(|error| violations.note_query("from", error)).ok()
    });
    let page_request = read_page_request(app.cursor_key()?, incoming, &mut violations);
    let (range, page_request) = violations.into_result(range.zip(page_request))?;
    let project_id = caller.project()?;
    let id = http::collection_id(incoming)?;

    // Storage and response.
    let page =
        MarkerStore::new(&app.store).list_events(project_id, id, range, &page_request).await?;
    let page = page.ok_or_else(http::collection_not_found)?;
    page_response(app.cursor_key()?, incoming, &page)
}
