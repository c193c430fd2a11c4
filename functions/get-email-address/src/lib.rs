//! Returns the caller's email address, and the address that replaces it once confirmed.

use notifications::store::{NotificationStore, UserName};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiResponse, ApiResult, Method};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/notifications/email-address",
    Access::ApiKey(Scope::NotificationsRead, |app, caller, _| Box::pin(handle(app, caller))),
);

async fn handle(app: &App, caller: &Caller<'_>) -> ApiResult {
    // Request: callers can read only their own address.
    let (organization, user) = (caller.organization().clone(), caller.user().clone());

    // Storage.
    let address =
        NotificationStore::new(&app.store).find_address(&UserName { organization, user }).await?;

    // Response.
    ApiResponse::ok(&address.shown())
}
