//! Answers where the caller gets mail, and which address is to take its place once it is confirmed.

use notifications::store::{NotificationStore, UserName};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiResponse, Method, Problem};
use shared::projects::api_key::Scope;

/// What this function is.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/notifications/email-address",
    Access::ApiKey(Scope::NotificationsRead, |app, caller, _| Box::pin(handle(app, caller))),
);

/// Answers one request.
async fn handle(app: &App, caller: &Caller<'_>) -> Result<ApiResponse, Problem> {
    // Request: nobody's address but the caller's own can be asked for.
    let (organization, user) = (caller.organization().clone(), caller.user().clone());

    // Storage.
    let address =
        NotificationStore::new(&app.store).find_address(&UserName { organization, user }).await?;

    // Answer.
    ApiResponse::ok(&address.shown())
}
