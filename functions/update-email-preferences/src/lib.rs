//! Changes the caller's notification email preferences.

use notifications::preferences::EmailPreferencesUpdate;
use notifications::store::NotificationStore;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::PUT,
    "/v0/notifications/email-preferences",
    Access::ApiKey(Scope::NotificationsWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request and rules.
    let update = EmailPreferencesUpdate::read(&incoming.json()?)?;

    // Storage.
    let (organization, user) = (caller.organization(), caller.user());
    let preferences = NotificationStore::new(&app.store)
        .update_email_preferences(organization, user, &update)
        .await?;

    // Response: the current preferences of every type, not only of those in the body.
    ApiResponse::ok(&preferences)
}
