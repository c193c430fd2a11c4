//! Confirms an address, or undoes the change of one, by the link that was sent there: a page that asks (GET),
//! and the button on it (POST).

use notifications::TokenKeyCache;
use notifications::address::Nonce;
use notifications::http::{ask_to_follow, followed, no_such_link, not_confirmed, token_of};
use notifications::store::{NotificationStore, UserName};
use notifications::token::Token;
use shared::app::{Access, App, Operation};
use shared::dynamodb::ConflictRetry;
use shared::http::{ApiRequest, ApiResponse, Method, Problem, Protocol};

/// What this function is.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/notifications/confirm",
    Access::Public(|app, incoming| Box::pin(handle(app, incoming))),
)
.speaking(Protocol::PAGES);

/// Answers one request. Its body says nothing: the token alone decides.
async fn handle(app: &App, incoming: &ApiRequest) -> Result<ApiResponse, Problem> {
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
        // Storage: the address as it is.
        let mut address = NotificationStore::new(&app.store).find_address(&name).await?;

        // Rules.
        let undo = Nonce(app.ids.new_uuid(now).into_bytes());
        let effect = match address.follow(nonce, undo, now) {
            Ok(effect) => effect,
            Err(reason) => return Ok(not_confirmed(reason)),
        };
        // Programs that look at links before people do only ever GET.
        if incoming.method() != Method::POST {
            return Ok(ask_to_follow(&effect));
        }

        // Storage and answer.
        let tells = address.untold(now).is_some();
        if NotificationStore::new(&app.store).replace_address(&name, &address, tells).await? {
            return Ok(followed(&effect));
        }
    }
    Err(Problem::conflict("the address kept changing"))
}
