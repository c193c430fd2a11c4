//! Turns off emails of one type, through the link in each of them. GET returns a page with a
//! button. The button and the email program's own one send POST (RFC 8058).

use notifications::TokenKeyCache;
use notifications::http::{ask_to_unsubscribe, no_such_link, token_of, unsubscribed};
use notifications::preferences::EmailPreferencesUpdate;
use notifications::store::{NotificationStore, UserName};
use notifications::token::Token;
use shared::app::{Access, App, Operation};
use shared::http::{ApiRequest, ApiResult, Method, Protocol};

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/notifications/unsubscribe",
    Access::Public(shared::handler!(handle without caller)),
)
.speaking(Protocol::PAGES);

/// The token alone decides; the body is ignored.
async fn handle(app: &App, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let key = app.cache::<TokenKeyCache>().get(&app.store).await?;
    let Some(Token::Unsubscribe { organization, user, notification_type }) =
        Token::open(&key, token_of(incoming))
    else {
        return Ok(no_such_link());
    };
    // Link scanners only send GET, so only POST has an effect.
    if incoming.method() != Method::POST {
        return Ok(ask_to_unsubscribe(notification_type));
    }

    // Storage. Users without an address get no emails. The links in emails never expire, and
    // nothing must be stored about an erased user.
    let name = UserName { organization, user };
    if NotificationStore::new(&app.store).find_address(&name).await?.is_stored() {
        let update = EmailPreferencesUpdate::off(notification_type);
        let UserName { organization, user } = &name;
        NotificationStore::new(&app.store)
            .update_email_preferences(organization, user, &update)
            .await?;
    }

    // Response.
    Ok(unsubscribed(notification_type))
}
