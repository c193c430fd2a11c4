//! Confirms an email address, or undoes its change, through the link that was sent to it. GET
//! returns a page with a button, and the button sends POST.

use notifications::TokenKeyCache;
use notifications::address::Nonce;
use notifications::http::{ask_to_follow, followed, no_such_link, not_confirmed, token_of};
use notifications::store::{NotificationStore, UserName};
use notifications::token::Token;
use shared::app::{Access, App, Operation};
use shared::dynamodb::ConflictRetry;
use shared::http::{ApiRequest, ApiResult, Method, Problem, Protocol};

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/notifications/confirm",
    Access::Public(shared::handler!(handle without caller)),
)
.speaking(Protocol::PAGES);

/// The token alone decides; the body is ignored.
async fn handle(app: &App, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let key = app.cache::<TokenKeyCache>().get(&app.store).await?;
    let Some(Token::Confirm { organization, user, nonce }) = Token::open(&key, token_of(incoming))
    else {
        return Ok(no_such_link());
    };

    let name = UserName { organization, user };
    let now = app.clock.now();
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the current address.
        let mut address = NotificationStore::new(&app.store).find_address(&name).await?;

        // Rules.
        let undo = Nonce(app.ids.new_uuid(now).into_bytes());
        let effect = match address.follow(nonce, undo, now) {
            Ok(effect) => effect,
            Err(reason) => return Ok(not_confirmed(reason)),
        };
        // Link scanners only send GET, so only POST has an effect.
        if incoming.method() != Method::POST {
            return Ok(ask_to_follow(&effect));
        }

        // Storage and response.
        let asks_to_confirm = address.unnotified(now).is_some();
        if NotificationStore::new(&app.store)
            .replace_address(&name, &address, asks_to_confirm)
            .await?
        {
            return Ok(followed(&effect));
        }
    }
    Err(Problem::conflict("the address kept changing"))
}
