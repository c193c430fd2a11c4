//! Returns the caller's notification email preferences.

use notifications::store::NotificationStore;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiResponse, ApiResult, Method};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/notifications/email-preferences",
    Access::ApiKey(Scope::NotificationsRead, |app, caller, _| Box::pin(handle(app, caller))),
);

async fn handle(app: &App, caller: &Caller<'_>) -> ApiResult {
    // Storage.
    let (organization, user) = (caller.organization(), caller.user());
    let preferences =
        NotificationStore::new(&app.store).find_email_preferences(organization, user).await?;

    // Response.
    ApiResponse::ok(&preferences)
}
