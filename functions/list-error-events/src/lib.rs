//! Lists the events of an error, the latest first. Frames of events that came before their source
//! map are resolved here.

use errors::store::ErrorStore;
use errors::{StoredEvent, http};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, page_request, page_response};
use shared::page::Page;
use shared::projects::api_key::Scope;
use source_maps::store::{ProjectMaps, Resolver, SourceMapCache};

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/projects/{idOrSlug}/errors/{errorId}/events",
    Access::ApiKey(Scope::ErrorsRead, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let page_request = page_request(app.cursor_key()?, incoming)?;
    let project_id = caller.project()?;
    let id = http::error_id(incoming)?;

    // Storage and response.
    let now = app.clock.now();
    let errors = ErrorStore::new(&app.store);
    let error = errors.find_error(project_id, id, now).await?.ok_or_else(http::error_not_found)?;
    let events = errors.events_of_error(project_id, &error).await?;
    let page = errors.list_error_events(project_id, &events, &page_request, now).await?;
    let mut items = Vec::with_capacity(page.items.len());
    let cache = app.cache::<SourceMapCache>();
    let maps = ProjectMaps::new(&app.store, project_id);
    let resolver = Resolver::new(maps, &cache, now);
    for event in page.items {
        let resolved = resolver.resolve_stored(event.members_to_resolve(), StoredEvent::write);
        let (map_status, resolved) = resolved.await?;
        items.push(event.resolved(map_status, resolved));
    }
    page_response(app.cursor_key()?, incoming, &Page { items, end: page.end })
}
