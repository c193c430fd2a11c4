//! Counts the events and errors of several projects by the values of a category.

use errors::query::breakdown::{BreakdownQuery, ValueShares};
use errors::store::ErrorStore;
use shared::app::{Access, App, COUNTING_TIME_BUDGET, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/errors/breakdown/query",
    Access::ApiKey(Scope::ErrorsRead, shared::handler!(handle)),
)
.within(COUNTING_TIME_BUDGET);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let now = app.clock.now();
    let mut query = BreakdownQuery::read(&incoming.json()?, now)?;
    let names = query.projects.iter().map(|named| (named.written.as_str(), named.name.as_ref()));
    let projects = caller.projects(names).await?;

    // Storage and rules.
    let errors = ErrorStore::new(&app.store);
    errors.recognize_tags(&projects, &mut query.events).await?;
    let mut shares = ValueShares::new(query.by);
    errors.count_projects(projects, &query.events, &mut shares, now).await?;

    // Response.
    ApiResponse::ok(&shares.into_shares(query.limit)?)
}
