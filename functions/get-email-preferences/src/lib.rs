//! Answers the caller's notification email preferences: GET `/v0/notifications/email-preferences`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem};
use shared::models::api_key::Scope;

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::NotificationsRead)?;

    // Storage.
    let (organization, user) = (caller.organization(), caller.user());
    let preferences = app.store.find_email_preferences(organization, user).await?;

    // Answer.
    Answer::ok(&preferences)
}
