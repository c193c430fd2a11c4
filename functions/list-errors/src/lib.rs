//! Lists a project's errors, the one last seen latest first: GET `/v0/projects/{idOrSlug}/errors`.

use shared::app::App;
use shared::auth::Caller;
use shared::errors::timeseries::ErrorStatus;
use shared::http::{Answer, Incoming, Problem, page_answer, read_page_request};
use shared::json::Violations;
use shared::models::api_key::Scope;

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::ErrorsRead)?;
    // The cursor belongs to the list of the path as it was sent.
    let list = format!("{OPERATION}/{}", incoming.path());
    let mut violations = Violations::default();
    let status = incoming.query_parameter("status", &mut violations, ErrorStatus::parse);
    let page_request = read_page_request(app, incoming, &list, &mut violations)?;
    let (status, page_request) = violations.into_result(status.zip(page_request))?;
    let project_id = caller.project()?;

    // Storage and answer.
    let now = app.clock.now();
    let (page, counts) = tokio::try_join!(
        app.store.list_errors(project_id, status, &page_request),
        app.store.count_events_by_error(project_id, now)
    )?;
    let fingerprints = page.items.iter().map(|error| error.description.fingerprint);
    let latest = app.store.latest_events(project_id, fingerprints, now).await?;
    let shown = page.map(|error| {
        let fingerprint = &error.description.fingerprint;
        let count = counts.get(fingerprint).copied().unwrap_or_default();
        error.shown(count, latest.get(fingerprint).copied())
    });
    page_answer(app, &list, &shown)
}
