//! Signs a user in with the token of a link, and starts a session. A token works once.
//!
//! The link of an email is bound to the browser that requested it. Other browsers need the code of
//! the email, too. The link of an invitation also accepts the invitation.

use people::InvitationId;
use people::http::{self, signed_in, signed_in_with};
use people::sign_in::{BROWSER_COOKIE, PendingSignIn, SignInCompletion};
use people::store::{PeopleChange, PeopleStore};
use shared::app::{Access, App, Operation};
use shared::audit::{AuditAction, AuditEntry};
use shared::http::{ApiRequest, ApiResult, Method, Problem};
use shared::projects::member::{Member, MemberId};
use shared::projects::secret::{Secret, SecretDigest};
use shared::projects::session::{Session, clear_cookie};

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::POST,
    "/v0/sign-in/complete",
    Access::Public(shared::handler!(handle without caller)),
);

async fn handle(app: &App, incoming: &ApiRequest) -> ApiResult {
    // Request. A link alone must not sign a user in: another site could send an attacker's token.
    incoming.require_same_origin()?;
    let completion = SignInCompletion::read(&incoming.json()?)?;
    let token = completion.token.as_ref().ok_or_else(http::invalid_token)?;
    let browser = incoming.cookies(BROWSER_COOKIE).find_map(Secret::parse);

    // Rules.
    let now = app.clock.now();
    let found = PeopleStore::new(&app.store).find_sign_in(&token.digest(), now).await?;
    let pending = found.ok_or_else(http::invalid_token)?;
    check_browser(app, &pending, browser.map(|it| it.digest()).as_ref(), token, &completion)
        .await?;

    // Storage and response.
    let response = match pending.invitation {
        Some(id) => accept(app, incoming, &pending, id).await?,
        None => sign_in(app, incoming, &pending).await?,
    };
    response.with_cookie(&clear_cookie(BROWSER_COOKIE))
}

/// Fails unless the browser requested the link, or sent its code. Each code counts as an attempt
/// before it is compared, so concurrent requests cannot try more.
async fn check_browser(
    app: &App,
    pending: &PendingSignIn,
    browser: Option<&SecretDigest>,
    token: &Secret,
    completion: &SignInCompletion,
) -> Result<(), Problem> {
    let Some(binding) = pending.binding_against(browser) else { return Ok(()) };
    let code = completion.code.as_ref().ok_or_else(http::code_required)?;
    if !PeopleStore::new(&app.store).take_attempt(&pending.digest).await? {
        return Err(http::invalid_token());
    }
    if code.hash(token) == binding.code { Ok(()) } else { Err(http::invalid_code()) }
}

/// Starts a session in the sign-in's organization, or in the one that the user joined first.
async fn sign_in(app: &App, incoming: &ApiRequest, pending: &PendingSignIn) -> ApiResult {
    let (people, now) = (PeopleStore::new(&app.store), app.clock.now());
    let account = people.find_account(&pending.user, now).await?;
    let wanted = |member: &Member| {
        pending.organization.as_ref().is_none_or(|wanted| *wanted == member.organization)
    };
    let members = account.members.iter().filter(|member| wanted(member));
    let member = members.min_by_key(|member| member.joined_at).ok_or_else(http::invalid_token)?;
    let member = member.clone();
    let started = Session::start(member.user.clone(), member.organization.clone(), now)
        .map_err(http::no_randomness)?;
    let entry = entry(app, incoming, &member, AuditAction::SignedIn);
    let more = vec![people.use_sign_in(&pending.digest)?, app.store.audit(&entry)?];
    let caller = app.caller_of(incoming, started.0.clone(), member.clone())?;
    // The response contains nothing that the new session changes, so its reads wait for no write.
    let (is_started, response) = tokio::join!(
        people.start_session(&started.0, &member, more),
        signed_in_with(account, &caller, &started.1),
    );
    if !is_started? {
        return Err(http::invalid_token());
    }
    response
}

/// Accepts the sign-in's invitation, and starts a session in its organization.
async fn accept(
    app: &App,
    incoming: &ApiRequest,
    pending: &PendingSignIn,
    id: InvitationId,
) -> ApiResult {
    let (people, now) = (PeopleStore::new(&app.store), app.clock.now());
    let invitation = people.find_invitation(id, now).await?.ok_or_else(http::invalid_token)?;
    let member = invitation.clone().into_member(MemberId::new(app.ids.new_uuid(now)), now);
    let started = Session::start(member.user.clone(), member.organization.clone(), now)
        .map_err(http::no_randomness)?;
    let mut more = vec![people.use_sign_in(&pending.digest)?, people.put_session(&started.0)?];
    for action in [AuditAction::InvitationAccepted, AuditAction::SignedIn] {
        more.push(app.store.audit(&entry(app, incoming, &member, action))?);
    }
    if people.accept_invitation(&invitation, &member, more).await? != PeopleChange::Done {
        return Err(http::invalid_token());
    }
    let caller = app.caller_of(incoming, started.0, member)?;
    signed_in(&app.store, &caller, &started.1, app.clock.now()).await
}

fn entry(app: &App, incoming: &ApiRequest, member: &Member, action: AuditAction) -> AuditEntry {
    let now = app.clock.now();
    AuditEntry::of_member(app.ids.new_uuid(now), member, action, incoming, now)
}
