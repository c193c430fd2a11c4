//! Sets the caller's email address. It takes effect once confirmed, through the link in an email
//! that this function requests.

use notifications::address::{Nonce, read_email_address};
use notifications::store::{NotificationStore, UserName};
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::dynamodb::ConflictRetry;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem};
use shared::projects::api_key::Scope;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::PUT,
    "/v0/notifications/email-address",
    Access::ApiKey(Scope::NotificationsWrite, shared::handler!(handle)),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request. The address receives all emails to the user, about every project.
    caller.require_all_projects()?;
    let email = read_email_address(&incoming.json()?)?;

    let (organization, user) = (caller.organization().clone(), caller.user().clone());
    let name = UserName { organization, user };
    let now = app.clock.now();
    let mut retry = ConflictRetry::default();
    while retry.next_attempt().await {
        // Storage: the current address.
        let stored = NotificationStore::new(&app.store).find_address(&name).await?;

        // Rules. The token is signed, so its nonce only needs to be new.
        let mut address = stored.clone();
        let nonce = Nonce(app.ids.new_uuid(now).into_bytes());
        address.set(email.clone(), nonce, now);
        if let Some(pending) = &mut address.pending {
            pending.user_agent = caller.browser();
        }

        // Storage and response.
        let asks_to_confirm = address.pending.is_some();
        let is_same = address == stored;
        if is_same
            || NotificationStore::new(&app.store)
                .replace_address(&name, &address, asks_to_confirm)
                .await?
        {
            return ApiResponse::ok(&address.shown());
        }
    }
    Err(Problem::conflict("the address kept changing"))
}
