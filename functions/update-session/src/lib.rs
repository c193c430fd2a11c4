//! Switches the caller's session to another organization of its user. The session gets a new
//! secret, so that no cache serves the previous organization.

use people::http::{no_randomness, organization_not_found, signed_in};
use people::sign_in::read_session_update;
use people::store::PeopleStore;
use shared::app::{Access, App, Operation};
use shared::auth::Caller;
use shared::http::{ApiRequest, ApiResult, Method, Problem};

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::PUT,
    "/v0/session",
    Access::AnyApiKey(|app, caller, incoming| Box::pin(handle(app, caller, incoming))),
);

async fn handle(app: &App, caller: &Caller<'_>, incoming: &ApiRequest) -> ApiResult {
    // Request.
    let now = app.clock.now();
    let session = caller.unended_session().await?;
    let organization =
        read_session_update(&incoming.json()?)?.ok_or_else(organization_not_found)?;

    // Rules.
    let found = app.store.find_membership(&organization, &session.user).await?;
    let member = found.member.ok_or_else(organization_not_found)?;
    let started = session.switch(organization, now).map_err(no_randomness)?;

    // Storage and response. A session that has just ended cannot be switched.
    let people = PeopleStore::new(&app.store);
    let more = vec![people.replace_session(session)?];
    if !people.start_session(&started.0, &member, more).await? {
        return Err(Problem::invalid_session());
    }
    let caller = app.caller_of(incoming, started.0, member)?;
    signed_in(&app.store, &caller, &started.1, app.clock.now()).await
}
