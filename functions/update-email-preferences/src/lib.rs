//! Changes the caller's notification email preferences (`interface.md` §4.4): PUT
//! `/v0/notifications/email-preferences`.

use shared::app::App;
use shared::auth::Caller;
use shared::http::{Answer, Incoming, Problem};
use shared::models::api_key::Scope;
use shared::models::email_preferences::EmailPreferencesUpdate;

/// The operation's name in `openapi.yaml` and in the logs.
pub const OPERATION: &str = env!("CARGO_PKG_NAME");

/// Answers one request.
pub async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request, in the order of checks that contract.md §1 lays down.
    let caller = Caller::authenticate(app, incoming).await?;
    caller.require(Scope::NotificationsWrite)?;

    // Rules: one body can tell them all.
    let update = EmailPreferencesUpdate::read(&incoming.json()?)?;

    // Storage.
    let (organization, user) = (caller.organization(), caller.user());
    let preferences = app.store.update_email_preferences(organization, user, &update).await?;

    // Answer: what holds now for every type, not only for those in the body.
    Answer::ok(&preferences)
}
