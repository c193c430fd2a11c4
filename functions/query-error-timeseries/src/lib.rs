//! Counts errors of several projects over time.

use futures_util::stream::{self, StreamExt, TryStreamExt};
use shared::app::App;
use shared::app::{Access, COUNTING_TIME_BUDGET, Operation};
use shared::auth::Caller;
use shared::error_tracking::ErrorId;
use shared::error_tracking::query::count::Counter;
use shared::error_tracking::query::time_bucket::QueryRange;
use shared::error_tracking::query::timeseries::{Bucket, TimeseriesQuery};
use shared::http::{Answer, Incoming, Method, Problem};
use shared::projects::api_key::Scope;

/// What this function is.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/errors/timeseries/query",
    Access::ApiKey(Scope::ErrorsRead, |app, caller, incoming| {
        Box::pin(handle(app, caller, incoming))
    }),
)
.within(COUNTING_TIME_BUDGET);

/// How many projects are read at the same time: bounds the memory of a query.
const PROJECTS_AT_ONCE: usize = 5;

/// Answers one request.
async fn handle(app: &App, caller: &Caller<'_>, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let now = app.clock.now();
    let query = TimeseriesQuery::read(&incoming.json()?, now)?;
    let names = query.projects.iter().map(|named| (named.written.as_str(), named.name.as_ref()));
    let projects = caller.projects(names).await?;

    // Storage and rules: each project is counted as soon as it is read.
    let mut counter = Counter::new(&query.range, &query.event_filters);
    let new_error_id = || ErrorId::new(app.ids.new_uuid(now));
    let reads: Vec<_> = projects
        .into_iter()
        .map(|project| app.store.read_project_events(project, &query, &new_error_id, now))
        .collect();
    let mut reads = stream::iter(reads).buffer_unordered(PROJECTS_AT_ONCE);
    while let Some(events) = reads.try_next().await? {
        events.count(&mut counter).await?;
    }

    // Answer.
    answer(&query.range, &Bucket::of_counts(&query.range, &counter.into_counts()))
}

fn answer(range: &QueryRange, buckets: &[Bucket]) -> Result<Answer, Problem> {
    Ok(Answer::ok(&buckets)?
        .with_number("x-bucket-seconds", range.bucket_size().seconds())
        .with_number("x-range-from", range.from().as_millis())
        .with_number("x-range-to", range.to().as_millis()))
}
