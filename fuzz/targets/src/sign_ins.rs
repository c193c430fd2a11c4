//! Cookies of sessions and parameters of the OpenID callback: each secret has one spelling, and a
//! browser's own cookie is found next to all others.

use std::collections::HashMap;

use lambda_http::http::HeaderValue;
use lambda_http::http::header::COOKIE;
use lambda_http::{Body, Request, RequestExt};
use shared::http::ApiRequest;
use shared::projects::secret::Secret;
use shared::projects::session;

/// The first line is a `cookie` header, the rest a `state`.
pub(crate) fn sign_ins(bytes: &[u8]) {
    let mut lines = bytes.splitn(2, |byte| *byte == b'\n');
    let [header, state] = [(); 2].map(|()| lines.next().unwrap_or_default());
    let Ok(other) = HeaderValue::from_bytes(header) else { return };
    let own = Secret::parse(&"A".repeat(Secret::LENGTH)).expect("a secret").reveal();
    let own = format!("{}={own}", session::COOKIE);

    let mut request = Request::new(Body::Empty);
    request.headers_mut().append(COOKIE, other);
    request.headers_mut().append(COOKIE, HeaderValue::from_str(&own).expect("a valid header"));
    let state = String::from_utf8_lossy(state).into_owned();
    let parameters = HashMap::from([("state".to_owned(), vec![state.clone()])]);
    let request = request.with_query_string_parameters(parameters);
    let incoming = ApiRequest::new("complete-oidc-sign-in", request);

    let cookies: Vec<&str> = incoming.cookies(session::COOKIE).collect();
    assert!(cookies.last().is_some_and(|it| own.ends_with(it)), "{cookies:?}");
    assert_eq!(incoming.query_texts("state"), [state.as_str()]);
    for text in cookies.into_iter().chain([state.as_str()]) {
        if let Some(secret) = Secret::parse(text) {
            assert_eq!(secret.reveal(), text, "two spellings of a secret");
        }
    }
}
