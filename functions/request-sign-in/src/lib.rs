//! Requests a sign-in email, which only members get. Status, body and work are the same for all
//! addresses: the same reads and an equal write. send-notifications creates the link and sends it.
//!
//! A GET lists the ways to sign in.

use std::env;

use people::sign_in::{
    BROWSER_COOKIE, BROWSER_LIFETIME, EMAILS_PER_ADDRESS, REQUESTS_PER_NETWORK, network_of,
    read_sign_in_request,
};
use people::store::PeopleStore;
use people::{RequestedFrom, http};
use serde::Serialize;
use shared::app::{Access, App, Operation};
use shared::audit::AuditSource;
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem, StatusCode};
use shared::projects::api_key::UserId;
use shared::projects::secret::Secret;
use shared::projects::session::set_cookie;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/sign-in",
    Access::Public(shared::handler!(handle without caller)),
);

/// Environment variables, set by `template.yaml`: the sender address of emails, and the provider.
const MAIL_FROM_VARIABLE: &str = "WAYMARK_MAIL_FROM";
const OIDC_VARIABLES: [&str; 2] = ["WAYMARK_OIDC_ISSUER", "WAYMARK_OIDC_CLIENT_ID"];

/// The ways to sign in.
#[derive(Serialize)]
struct SignInOptions {
    email: bool,
    oidc: bool,
}

#[derive(Serialize)]
struct Requested {}

async fn handle(app: &App, incoming: &ApiRequest) -> ApiResult {
    if [Method::GET, Method::HEAD].contains(incoming.method()) {
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let (email, oidc) = (is_set(MAIL_FROM_VARIABLE), OIDC_VARIABLES.into_iter().all(is_set));
        return ApiResponse::ok(&SignInOptions { email, oidc });
    }

    // Request. A browser keeps its cookie, so that an earlier email of the browser stays usable.
    incoming.require_same_origin()?;
    let user = read_sign_in_request(&incoming.json()?)?;
    let sent = incoming.cookies(BROWSER_COOKIE).find_map(Secret::parse);
    let browser = match sent {
        Some(browser) => browser,
        None => Secret::generate().map_err(http::no_randomness)?,
    };
    let AuditSource { address, user_agent } = AuditSource::of(incoming);
    let place = incoming.place();
    let from = RequestedFrom { browser: browser.digest(), user_agent, place };

    // Rules and storage: the same requests for members and others.
    let is_allowed = is_within_limits(app, &user, address.as_deref()).await?;
    let (now, people) = (app.clock.now(), PeopleStore::new(&app.store));
    let is_member = people.is_member(&user).await?;
    let id = app.ids.new_uuid(now);
    people.queue_sign_in(id, &user, &from, is_allowed && is_member, now).await?;

    // Response.
    ApiResponse::json(StatusCode::ACCEPTED, &Requested {})?.with_cookie(&set_cookie(
        BROWSER_COOKIE,
        &browser.reveal(),
        BROWSER_LIFETIME,
    ))
}

/// Counts the request by network and by email address. Over the first limit, the second count is an
/// equal write that limits nothing, so that one network cannot use up the emails of many users.
async fn is_within_limits(
    app: &App,
    user: &UserId,
    address: Option<&str>,
) -> Result<bool, Problem> {
    let now = app.clock.now();
    let network = format!("sign-in#network#{}", network_of(address.unwrap_or("unknown")));
    let is_within = app.store.count_in_hour(&network, now).await? <= REQUESTS_PER_NETWORK;
    let counted = if is_within { "user" } else { "none" };
    let emails = app.store.count_in_hour(&format!("sign-in#{counted}#{user}"), now).await?;
    Ok(is_within && emails <= EMAILS_PER_ADDRESS)
}
