//! Confirms an address: the page to which the link leads that was sent there.

use shared::app::{Access, App, Operation};
use shared::dynamodb::ConflictRetry;
use shared::http::{Answer, Incoming, Method, Problem, Protocol};
use shared::notifications::http::{confirmed, no_such_link, not_confirmed, token_of};
use shared::notifications::store::UserName;
use shared::notifications::token::Token;
use shared::notifications::token_key;

/// What this function is.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/notifications/confirm",
    Access::Public(|app, incoming| Box::pin(handle(app, incoming))),
)
.speaking(Protocol::PAGES);

/// Answers one request.
async fn handle(app: &App, incoming: &Incoming) -> Result<Answer, Problem> {
    // Request.
    let key = token_key(app).await?;
    let Some(Token::Confirm { organization, user, nonce }) = Token::open(&key, token_of(incoming))
    else {
        return Ok(no_such_link());
    };

    let name = UserName { organization, user };
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the address as it is.
        let mut address = app.store.find_address(&name).await?;

        // Rules.
        let email = match address.confirm(nonce, app.clock.now()) {
            Ok(email) => email,
            Err(reason) => return Ok(not_confirmed(reason)),
        };

        // Storage and answer.
        if app.store.replace_address(&name, &address, false).await? {
            return Ok(confirmed(&email));
        }
    }
    Err(Problem::conflict("the address kept changing"))
}
