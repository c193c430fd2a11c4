//! Summarizes the events of an error: events, users, releases, and shares by category.

use std::borrow::Cow;

use errors::attribute::Attribute;
use errors::query::breakdown::{BreakdownRow, ValueShares};
use errors::query::counted_run::Accumulator;
use errors::query::errors::ErrorCounts;
use errors::query::event_query::EventQuery;
use errors::query::summary::{SummaryQuery, minute_of_error};
use errors::store::ErrorStore;
use errors::{ErrorId, http};
use serde::Serialize;
use shared::app::{Access, App, COUNTING_TIME_BUDGET, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem};
use shared::projects::api_key::Scope;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/projects/{idOrSlug}/errors/{errorId}/summary/query",
    Access::ApiKey(Scope::ErrorsRead, shared::handler!(handle)),
)
.within(COUNTING_TIME_BUDGET);

/// The response.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorSummary {
    count: u64,
    users: u64,
    first_release: Option<String>,
    last_release: Option<String>,
    shares: Vec<CategoryShares>,
}

/// The events of each value of a category.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CategoryShares {
    category_id: Cow<'static, str>,
    rows: Vec<BreakdownRow>,
}

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let now = app.clock.now();
    let project = caller.project()?;
    let body = incoming.json()?;
    let id = http::error_id(incoming)?;
    let mut query = SummaryQuery::read(&body, id, now)?;

    // Storage and rules. A warm function caches the columns, so they are read once.
    ErrorStore::new(&app.store).recognize_tags(&[project], &mut query.events).await?;
    let events = &query.events;
    let seen = ErrorStore::new(&app.store).count_events_by_error(project, now).await?;
    let error = ErrorStore::new(&app.store).find_error(project, id, now).await?;
    let (error, _) = seen.of(error.ok_or_else(http::error_not_found)?);
    let (first_seen, last_seen) = (error.first_seen, error.last_seen);
    let counted = count(app, project, events, ErrorCounts::of_users(false), now).await?;
    let (count_of_events, users) = (counted.all_events(), counted.users_of_single()?);
    let mut shares = Vec::with_capacity(query.by.len());
    for by in &query.by {
        let counted = count(app, project, events, ValueShares::new(*by), now).await?;
        let rows = counted.into_shares(query.limit)?;
        shares.push(CategoryShares { category_id: by.name(), rows });
    }

    // Response.
    ApiResponse::ok(&ErrorSummary {
        count: count_of_events,
        users,
        first_release: release_at(app, project, id, first_seen, now).await?,
        last_release: release_at(app, project, id, last_seen, now).await?,
        shares,
    })
}

async fn count<C: Accumulator>(
    app: &App,
    project: ProjectId,
    events: &EventQuery,
    mut counts: C,
    now: Timestamp,
) -> Result<C, Problem> {
    ErrorStore::new(&app.store).count_project(project, events, &mut counts, now).await?;
    Ok(counts)
}

/// Returns the release with most of an error's events in a minute.
async fn release_at(
    app: &App,
    project: ProjectId,
    error: ErrorId,
    at: Timestamp,
    now: Timestamp,
) -> Result<Option<String>, Problem> {
    let Some(events) = minute_of_error(error, at, now) else { return Ok(None) };
    let counted = ValueShares::new(Attribute::Release.into());
    let rows = count(app, project, &events, counted, now).await?.into_shares(1)?;
    Ok(rows.into_iter().next().and_then(|row| row.value))
}
