//! Answers the caller's notification email preferences.

use notifications::store::NotificationStore;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiResponse, Method, Problem};
use shared::projects::api_key::Scope;

/// What this function is.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/notifications/email-preferences",
    Access::ApiKey(Scope::NotificationsRead, |app, caller, _| Box::pin(handle(app, caller))),
);

/// Answers one request.
async fn handle(app: &App, caller: &Caller<'_>) -> Result<ApiResponse, Problem> {
    // Request.

    // Storage.
    let (organization, user) = (caller.organization(), caller.user());
    let preferences =
        NotificationStore::new(&app.store).find_email_preferences(organization, user).await?;

    // Answer.
    ApiResponse::ok(&preferences)
}
