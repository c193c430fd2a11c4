//! Returns the caller's user, scopes and visible projects. A signed-in caller also gets its role,
//! organizations and open invitations.

use people::http::describe;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiResponse, ApiResult, Method};

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/me",
    Access::AnyApiKey(|app, caller, _| Box::pin(handle(app, caller))),
);

async fn handle(app: &App, caller: &Caller<'_>) -> ApiResult {
    ApiResponse::ok(&describe(&app.store, caller, app.clock.now()).await?)
}
