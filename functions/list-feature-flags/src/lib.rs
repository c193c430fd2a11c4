//! Lists a project's feature flags by their keys: GET `/v0/project/{idOrSlug}/feature-flags`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem, page_answer, read_page_request};
use shared::json::{Fault, ViolationCode, Violations};
use shared::models::api_key::Scope;
use shared::store::ListedFlags;

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::FlagsRead)?;
    // The cursor belongs to the list of the path as it was sent.
    let list = format!("{OPERATION}/{}", incoming.path());
    let mut violations = Violations::default();
    let listed = incoming.query_parameter("archived", &mut violations, parse_archived);
    let page_request = read_page_request(app, incoming, &list, &mut violations)?;
    let (listed, page_request) = violations.into_result(listed.zip(page_request))?;
    let project_id = caller.project()?;

    // Storage and answer.
    let listed = listed.unwrap_or(ListedFlags::Live);
    let page = app.store.list_flags(project_id, listed, &page_request).await?;
    page_answer(app, &list, &page)
}

fn parse_archived(text: &str) -> Result<ListedFlags, Fault> {
    match text {
        "true" => Ok(ListedFlags::All),
        "false" => Ok(ListedFlags::Live),
        _ => Err(Fault::new(ViolationCode::InvalidValue, "must be true or false")),
    }
}
