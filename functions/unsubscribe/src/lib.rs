//! Switches mails of one type off, by the link that each of them has: a page that asks (GET), and what its
//! button and the mail program's own one send (POST, RFC 8058).

use notifications::TokenKeyCache;
use notifications::http::{ask_to_unsubscribe, no_such_link, token_of, unsubscribed};
use notifications::preferences::EmailPreferencesUpdate;
use notifications::store::{NotificationStore, UserName};
use notifications::token::Token;
use shared::app::{Access, App, Operation};
use shared::http::{ApiRequest, ApiResponse, Method, Problem, Protocol};

/// What this function is.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/notifications/unsubscribe",
    Access::Public(|app, incoming| Box::pin(handle(app, incoming))),
)
.speaking(Protocol::PAGES);

/// Answers one request. Its body says nothing: the token alone decides.
async fn handle(app: &App, incoming: &ApiRequest) -> Result<ApiResponse, Problem> {
    // Request.
    let key = app.cache::<TokenKeyCache>().get(&app.store).await?;
    let Some(Token::Unsubscribe { organization, user, notification_type }) =
        Token::open(&key, token_of(incoming))
    else {
        return Ok(no_such_link());
    };
    // Programs that look at links before people do only ever GET.
    if incoming.method() != Method::POST {
        return Ok(ask_to_unsubscribe(notification_type));
    }

    // Storage. Whoever has no address gets no mail, and nothing is to be stored of who was erased: the
    // links in their mails never end.
    let name = UserName { organization, user };
    if NotificationStore::new(&app.store).find_address(&name).await?.is_stored() {
        let id = app.ids.new_uuid(app.clock.now());
        let update = EmailPreferencesUpdate::off(notification_type);
        let UserName { organization, user } = &name;
        NotificationStore::new(&app.store)
            .update_email_preferences(organization, user, &update, id)
            .await?;
    }

    // Answer.
    Ok(unsubscribed(notification_type))
}
