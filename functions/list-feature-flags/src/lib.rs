//! Lists a project's feature flags, sorted by key.

use flags::store::{FlagStore, ListedFlags};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, page_response, read_page_request};
use shared::json::{FieldError, ViolationCode, Violations};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/project/{idOrSlug}/feature-flags",
    Access::ApiKey(Scope::FlagsRead, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let mut violations = Violations::default();
    let listed = incoming.query_parameter("archived", &mut violations, parse_archived);
    let page_request = read_page_request(app.cursor_key()?, incoming, &mut violations);
    let (listed, page_request) = violations.into_result(listed.zip(page_request))?;
    let project_id = caller.project()?;

    // Storage and response.
    let listed = listed.unwrap_or(ListedFlags::Live);
    let page = FlagStore::new(&app.store).list_flags(project_id, listed, &page_request).await?;
    page_response(app.cursor_key()?, incoming, &page)
}

fn parse_archived(text: &str) -> Result<ListedFlags, FieldError> {
    match text {
        "true" => Ok(ListedFlags::All),
        "false" => Ok(ListedFlags::Live),
        _ => Err(FieldError::new(ViolationCode::InvalidValue, "must be true or false")),
    }
}
