//! Calls of sign-in and sessions.

use serde_json::json;

use shared::app::Operation;
use tests::app::TestApp;
use tests::call::{Call, Reply};
use tests::notifications::SentMessages;
use tests::people::{sign_in_code, sign_in_token};

pub(crate) const REQUEST: &Operation = &request_sign_in::OPERATION;
pub(crate) const COMPLETE: &Operation = &complete_sign_in::OPERATION;
pub(crate) const SIGN_OUT: &Operation = &sign_out::OPERATION;
pub(crate) const SWITCH: &Operation = &update_session::OPERATION;
pub(crate) const ACCEPT: &Operation = &accept_invitation::OPERATION;
pub(crate) const CALLER: &Operation = &get_caller::OPERATION;

pub(crate) const MIRA: &str = "mira@example.com";
pub(crate) const BROWSER: &str = people::sign_in::BROWSER_COOKIE;
pub(crate) const SESSION: &str = shared::projects::session::COOKIE;

/// A sent sign-in email, and the cookie of the browser that requested it.
pub(crate) struct SentSignIn {
    pub(crate) browser: String,
    pub(crate) token: String,
    pub(crate) code: String,
}

/// Requests a sign-in from a new browser.
pub(crate) async fn request(test: &TestApp, email: &str) -> Reply {
    Call::of(REQUEST).from_console().json(&json!({"email": email})).send(&test.app).await
}

/// Requests a sign-in of a member, and sends the email.
pub(crate) async fn requested(test: &TestApp, sent: &SentMessages, email: &str) -> SentSignIn {
    let reply = request(test, email).await;
    assert_eq!(reply.status, 202, "{}", reply.body);
    sent.run(&test.app).await;
    let mail = &sent.emails_to(&email.to_lowercase()).await[0];
    let browser = reply.cookie(BROWSER).unwrap();
    SentSignIn { browser, token: sign_in_token(mail), code: sign_in_code(mail) }
}

/// Sends a token from a browser, or from another one.
pub(crate) async fn complete(
    test: &TestApp,
    browser: Option<&str>,
    token: &str,
    code: Option<&str>,
) -> Reply {
    let body = match code {
        Some(code) => json!({"token": token, "code": code}),
        None => json!({"token": token}),
    };
    let call = Call::of(COMPLETE).from_console().json(&body);
    let call = match browser {
        Some(browser) => call.cookie(BROWSER, browser),
        None => call,
    };
    call.send(&test.app).await
}

/// Gets the caller of a session.
pub(crate) async fn me(test: &TestApp, session: &str) -> Reply {
    Call::of(CALLER).session(session).send(&test.app).await
}

/// Asserts a problem's status and code.
pub(crate) fn assert_problem(reply: &Reply, status: u16, code: &str) {
    assert_eq!((reply.status, &reply.body["code"]), (status, &json!(code)), "{}", reply.body);
}
