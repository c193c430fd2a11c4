//! Lists the events of an error that pass filters, with the position of the first one.

use errors::query::error_events::{ErrorEventsQuery, EventOrder};
use errors::query::errors::ErrorCounts;
use errors::query::event_query::EventQuery;
use errors::query::filter::EventFilters;
use errors::query::time_bucket::{QueryRange, WrittenTime};
use errors::store::{ErrorStore, EventsOfError, KeyRange};
use errors::{ErrorRecord, ResolvedEvent, StoredEvent, http};
use serde::Serialize;
use shared::app::{Access, App, COUNTING_TIME_BUDGET, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem, open_cursor, seal_cursor};
use shared::json::{JsonPath, ViolationCode, Violations};
use shared::page::Page;
use shared::projects::api_key::Scope;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;
use source_maps::store::{MapStatus, ProjectMaps, Resolver, SourceMapCache};

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/projects/{idOrSlug}/errors/{errorId}/events/query",
    Access::ApiKey(Scope::ErrorsRead, shared::handler!(handle)),
)
.within(COUNTING_TIME_BUDGET);

/// The response.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventPage {
    items: Vec<ResolvedEvent<MapStatus>>,
    total: Option<u64>,
    position: Option<u64>,
    next_cursor: Option<String>,
}

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let now = app.clock.now();
    let project = caller.project()?;
    let cursor_key = app.cursor_key()?;
    let open = |cursor: &str| open_cursor(cursor_key, incoming, cursor);
    let body = incoming.json()?;
    let id = http::error_id(incoming)?;
    let mut query = ErrorEventsQuery::read(&body, id, open, now)?;

    // Storage: the error and the events.
    ErrorStore::new(&app.store).recognize_tags(&[project], &mut query.events).await?;
    let error = ErrorStore::new(&app.store).find_error(project, id, now).await?;
    let error = error.ok_or_else(http::error_not_found)?;
    let of_error = ErrorStore::new(&app.store).events_of_error(project, &error).await?;
    let search = Search { app, project, error: &error, of_error, query: &query, now };
    let events = search.page().await?;
    let (total, position) = match (&query.after, query.events.matches(&error)) {
        (Some(_), _) => (None, None),
        (None, false) => (Some(0), None),
        (None, true) => {
            let first = events.items.first().map(|(sk, event)| (sk.as_str(), event));
            let position = match first {
                Some((sk, event)) => search.position(sk, event.occurred_at).await?,
                None => None,
            };
            (Some(search.count(&query.events).await?), position)
        }
    };

    // Response.
    let next_cursor =
        events.end.map(|end| seal_cursor(cursor_key, incoming, &query.position(&end)));
    let mut items = Vec::with_capacity(events.items.len());
    let cache = app.cache::<SourceMapCache>();
    let maps = ProjectMaps::new(&app.store, project);
    let resolver = Resolver::new(maps, &cache, now);
    for (_, event) in events.items {
        let resolved = resolver.resolve_stored(event.members_to_resolve(), StoredEvent::write);
        let (map_status, resolved) = resolved.await?;
        items.push(event.resolved(map_status, resolved));
    }
    ApiResponse::ok(&EventPage { items, total, position, next_cursor })
}

/// A search for events of an error.
struct Search<'s> {
    app: &'s App,
    project: ProjectId,
    error: &'s ErrorRecord,
    of_error: EventsOfError,
    query: &'s ErrorEventsQuery,
    now: Timestamp,
}

impl Search<'_> {
    fn store(&self) -> ErrorStore<'_> {
        ErrorStore::new(&self.app.store)
    }

    /// Returns the requested page.
    async fn page(&self) -> Result<Page<(String, StoredEvent)>, Problem> {
        let (query, events) = (self.query, &self.query.events);
        let mut range = KeyRange::of_times(events.range.from(), events.range.to(), query.order);
        let mut limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let mut page = Page { items: Vec::new(), end: None };
        if let Some(after) = &query.after {
            range = range.after(after);
        } else if let Some(event) = query.event {
            let found = self.store().find_event_key(self.project, &self.of_error, event, self.now);
            let sk = found.await?.ok_or_else(unknown_event)?;
            let only = KeyRange { from: sk.clone(), to: format!("{sk}~"), order: query.order };
            page = self.matching(only, None, 1).await?;
            range = range.after(&sk);
            limit -= 1;
            if limit == 0 || !events.matches(self.error) {
                page.end = events.matches(self.error).then_some(sk);
                return Ok(page);
            }
        }
        if events.matches(self.error) {
            let rest = self.matching(range, Some(events), limit).await?;
            page.items.extend(rest.items);
            page.end = rest.end;
        }
        Ok(page)
    }

    async fn matching(
        &self,
        range: KeyRange,
        events: Option<&EventQuery>,
        limit: usize,
    ) -> Result<Page<(String, StoredEvent)>, Problem> {
        let all = EventFilters::default();
        let filters = events.map_or(&all, |events| &events.event_filters);
        let found = self.store().matching_events(
            self.project,
            &self.of_error,
            range,
            filters,
            limit,
            self.now,
        );
        Ok(found.await?)
    }

    /// Returns the number of matching events.
    async fn count(&self, events: &EventQuery) -> Result<u64, Problem> {
        let mut counts = ErrorCounts::of_events(false);
        self.store().count_project(self.project, events, &mut counts, self.now).await?;
        Ok(counts.all_events())
    }

    /// Returns the position of an event among the matching ones, counted from the newest. `None` if
    /// it does not match or its minute has too many events.
    async fn position(&self, sk: &str, at: Timestamp) -> Result<Option<u64>, Problem> {
        let events = &self.query.events;
        let next_minute = Timestamp::from_millis((at.as_millis().div_euclid(60_000) + 1) * 60_000);
        if at < events.range.from() || at >= events.range.to() {
            return Ok(None);
        }
        let order = EventOrder::Newest;
        // From the event itself to the end of its minute.
        let to = KeyRange::of_times(at, next_minute, order).to;
        let counted = |range| {
            let filters = &events.event_filters;
            self.store().count_matching(self.project, &self.of_error, range, filters, self.now)
        };
        let only = KeyRange { from: sk.to_owned(), to: format!("{sk}~"), order };
        if counted(only).await? != Some(1) {
            return Ok(None);
        }
        let in_minute = counted(KeyRange { from: sk.to_owned(), to, order }).await?;
        let Some(in_minute) = in_minute else { return Ok(None) };
        let (from, to) = (WrittenTime::from(next_minute), WrittenTime::from(events.range.to()));
        let later = match QueryRange::new(Some(&from), Some(&to), None, self.now) {
            Ok(range) => self.count(&EventQuery { range, ..events.clone() }).await?,
            Err(_) => 0,
        };
        Ok(Some(later + in_minute))
    }
}

fn unknown_event() -> Problem {
    let mut violations = Violations::default();
    let message = "the error has no event with this ID; it can have expired";
    violations.note(&JsonPath::Root.member("event"), ViolationCode::InvalidValue, message);
    violations.into()
}
