//! Ends the caller's session, or all sessions of its user.

use people::sign_in::read_sign_out;
use people::store::PeopleStore;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, StatusCode};
use shared::projects::session::{COOKIE, clear_cookie};

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/sign-out",
    Access::AnyApiKey(|app, caller, incoming| Box::pin(handle(app, caller, incoming))),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request. The body is optional.
    let session = caller.session()?;
    let everywhere = !incoming.body().is_empty() && read_sign_out(&incoming.json()?)?;

    // Storage and response.
    PeopleStore::new(&app.store).end_session(session, everywhere, app.clock.now()).await?;
    ApiResponse::empty(StatusCode::NO_CONTENT).with_cookie(&clear_cookie(COOKIE))
}
