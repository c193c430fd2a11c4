//! Counts errors of several projects over time.

use errors::http;
use errors::query::count::Counter;
use errors::query::timeseries::{Bucket, TimeseriesQuery};
use errors::store::ErrorStore;
use shared::app::{Access, App, COUNTING_TIME_BUDGET, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/errors/timeseries/query",
    Access::ApiKey(Scope::ErrorsRead, shared::handler!(handle)),
)
.within(COUNTING_TIME_BUDGET);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let now = app.clock.now();
    let mut query = TimeseriesQuery::read(&incoming.json()?, now)?;
    let names = query.projects.iter().map(|named| (named.written.as_str(), named.name.as_ref()));
    let projects = caller.projects(names).await?;

    // Storage and rules.
    let errors = ErrorStore::new(&app.store);
    errors.recognize_tags(&projects, &mut query.events).await?;
    let events = &query.events;
    let mut counter = Counter::new(&events.range);
    errors.count_projects(projects, events, &mut counter, now).await?;

    // Response.
    let buckets = Bucket::of_counts(&events.range, &counter.into_counts());
    Ok(http::with_buckets_of(ApiResponse::ok(&buckets)?, &events.range))
}
