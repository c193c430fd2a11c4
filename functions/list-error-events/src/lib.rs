//! Lists the events of an error, the latest first. Frames of events that came before their source
//! map are resolved here.

use errors::store::ErrorStore;
use errors::{EventId, StoredEvent, http};
use serde::Serialize;
use serde_json::value::RawValue;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::dynamodb::StoreError;
use shared::http::{ApiRequest, ApiResponse, Method, Problem, page_response, read_page_request};
use shared::json::Violations;
use shared::page::Page;
use shared::projects::api_key::Scope;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;
use source_maps::event::minified_frames;
use source_maps::store::{MapStatus, SourceMapCache, SourceMapStore};

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects/{idOrSlug}/errors/{errorId}/events",
    Access::ApiKey(Scope::ErrorsRead, |app, caller, incoming| {
        Box::pin(handle(app, caller, incoming))
    }),
);

/// An event with its resolved frames.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedEvent {
    event_id: EventId,
    occurred_at: Timestamp,
    /// The reason why some frames have no source map.
    map_status: Option<MapStatus>,
    event: Box<RawValue>,
}

async fn handle(
    app: &App,
    caller: &Caller<'_>,
    incoming: &ApiRequest,
) -> Result<ApiResponse, Problem> {
    // Request.
    let mut violations = Violations::default();
    let page_request = read_page_request(app.cursor_key()?, incoming, &mut violations);
    let page_request = violations.into_result(page_request)?;
    let project_id = caller.project()?;
    let id = http::error_id(incoming)?;

    // Storage and response.
    let now = app.clock.now();
    let error = ErrorStore::new(&app.store).find_error(project_id, id, now).await?;
    let events = (&error.ok_or_else(http::error_not_found)?).into();
    let page = ErrorStore::new(&app.store)
        .list_error_events(project_id, &events, &page_request, now)
        .await?;
    let mut items = Vec::with_capacity(page.items.len());
    for event in page.items {
        items.push(resolved(app, project_id, event, now).await?);
    }
    page_response(app.cursor_key()?, incoming, &Page { items, end: page.end })
}

/// Resolves the frames that were not resolved when the event came.
async fn resolved(
    app: &App,
    project: ProjectId,
    stored: StoredEvent,
    now: Timestamp,
) -> Result<ListedEvent, StoreError> {
    let (mut map_status, mut resolved) = (None, None);
    // Most events of other platforms have no columns, and need not be parsed.
    if stored.event.get().contains("\"colno\"")
        && let Some(members) = stored.members()
    {
        let minified = minified_frames(&members);
        let (store, cache) = (SourceMapStore::new(&app.store), app.cache::<SourceMapCache>());
        let resolution = store.resolve(&cache, project, &minified, now).await?;
        let reasons = store.explain_missing(project, &resolution.missing, now).await?;
        map_status = reasons.into_values().max();
        if !resolution.frames.is_empty() {
            resolved = StoredEvent::write(resolution.frames.apply(members));
        }
    }
    let StoredEvent { event_id, occurred_at, event } = stored;
    Ok(ListedEvent { event_id, occurred_at, map_status, event: resolved.unwrap_or(event) })
}
