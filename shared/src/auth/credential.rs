//! The credential of a request (`docs/api-conventions.md`, "Authentication"): an API key in
//! `x-api-key` or as a bearer token, or the cookie of a session.

use crate::http::{ApiRequest, Problem};
use crate::projects::api_key::ApiKey;
use crate::projects::secret::Secret;
use crate::projects::session::COOKIE;

/// The headers that [`read`] reads, as listed in `vary`. A cookie counts only without a key.
pub(crate) const HEADERS: &str = "authorization, x-api-key";
/// Like [`HEADERS`], for requests with cookies.
pub(crate) const HEADERS_AND_COOKIE: &str = "authorization, x-api-key, cookie";

/// A credential as sent.
pub(super) enum Sent {
    Key(ApiKey),
    Session(Secret),
}

/// Returns the request's credential. Both headers of keys can contain the key if they agree. A key
/// wins over a cookie, even if the key is invalid.
pub(super) fn read(incoming: &ApiRequest) -> Result<Sent, Problem> {
    let plain = incoming.header_values("x-api-key").filter(|value| !value.is_empty());
    let bearer = incoming.header_values("authorization").filter_map(bearer_token);
    let mut sent = plain.chain(bearer);
    let Some(first) = sent.next() else { return read_session(incoming).map(Sent::Session) };
    if sent.any(|other| other != first) {
        return Err(Problem::invalid_api_key());
    }
    let text = std::str::from_utf8(first).ok();
    text.and_then(ApiKey::parse).map(Sent::Key).ok_or_else(Problem::invalid_api_key)
}

fn read_session(incoming: &ApiRequest) -> Result<Secret, Problem> {
    let mut cookies = incoming.cookies(COOKIE).filter(|value| !value.is_empty());
    let first = cookies.next().ok_or_else(Problem::missing_api_key)?;
    if cookies.any(|other| other != first) {
        return Err(Problem::invalid_session());
    }
    Secret::parse(first).ok_or_else(Problem::invalid_session)
}

/// Returns the token of an `authorization` header with the scheme Bearer, in either case (RFC 9110
/// §11.1).
fn bearer_token(value: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer";
    let (scheme, rest) = value.split_at_checked(SCHEME.len())?;
    let token = rest.trim_ascii();
    let is_bearer = scheme.eq_ignore_ascii_case(SCHEME) && rest.first() == Some(&b' ');
    (is_bearer && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::ProblemCode;
    use lambda_http::Body;
    use lambda_http::http;

    fn read_headers(headers: &[(&str, &str)]) -> Result<String, ProblemCode> {
        let mut request = http::Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let incoming = ApiRequest::new("an-operation", request.body(Body::Empty).unwrap());
        let sent = read(&incoming).map_err(|problem| problem.code())?;
        Ok(match sent {
            Sent::Key(key) => key.reveal(),
            Sent::Session(secret) => secret.reveal(),
        })
    }

    #[test]
    fn either_header_or_both_contain_the_key() {
        let key = ApiKey::generate().unwrap().reveal();
        let bearers = ["Bearer", "bearer", "BEARER", "Bearer  "].map(|s| format!("{s} {key}"));
        assert_eq!(read_headers(&[("x-api-key", &key)]), Ok(key.clone()));
        for bearer in &bearers {
            assert_eq!(read_headers(&[("authorization", bearer)]), Ok(key.clone()), "{bearer}");
        }
        let both = [("x-api-key", key.as_str()), ("authorization", &bearers[0])];
        assert_eq!(read_headers(&both), Ok(key.clone()));
        let basic = [("x-api-key", key.as_str()), ("authorization", "Basic abc")];
        assert_eq!(read_headers(&basic), Ok(key));
    }

    #[test]
    fn different_keys_are_rejected() {
        let [one, two] = [1, 2].map(|_| ApiKey::generate().unwrap().reveal());
        let bearer = format!("Bearer {two}");
        for headers in [
            [("x-api-key", one.as_str()), ("authorization", &bearer)],
            [("x-api-key", &one), ("x-api-key", &two)],
        ] {
            assert_eq!(read_headers(&headers), Err(ProblemCode::InvalidApiKey));
        }
    }

    #[test]
    fn requests_without_a_key_are_rejected() {
        for headers in [
            &[][..],
            &[("x-api-key", "")],
            &[("authorization", "")],
            &[("authorization", "Bearer")],
            &[("authorization", "Bearer ")],
            &[("authorization", "Basic dXNlcjpwYXNz")],
            &[("authorization", "wm_token")],
        ] {
            assert_eq!(read_headers(headers), Err(ProblemCode::MissingApiKey), "{headers:?}");
        }
    }

    #[test]
    fn malformed_keys_are_rejected() {
        for value in ["x", "wm_", "wm_AAAABBBBCCCC0001_short", "\u{e9}"] {
            let result = read_headers(&[("x-api-key", value)]);
            assert_eq!(result, Err(ProblemCode::InvalidApiKey), "{value}");
        }
    }

    #[test]
    fn cookies_contain_sessions() {
        let secret = Secret::generate().unwrap().reveal();
        let cookie = |value: &str| format!("a=b; {COOKIE}={value};c=d");
        assert_eq!(read_headers(&[("cookie", &cookie(&secret))]), Ok(secret.clone()));
        let repeated = format!("{}; {COOKIE}={secret}", cookie(&secret));
        assert_eq!(read_headers(&[("cookie", &repeated)]), Ok(secret.clone()));
        for other in ["x", "wm_x", "aGVsbG8"] {
            let invalid = Err(ProblemCode::InvalidSession);
            assert_eq!(read_headers(&[("cookie", &cookie(other))]), invalid, "{other}");
            let two = format!("{}; {COOKIE}={secret}", cookie(other));
            assert_eq!(read_headers(&[("cookie", &two)]), invalid, "{other}");
        }
        for none in ["", "a=b", "__Host-waymark", "__Host-waymark=", "waymark=x"] {
            assert_eq!(
                read_headers(&[("cookie", none)]),
                Err(ProblemCode::MissingApiKey),
                "{none}"
            );
        }
    }

    #[test]
    fn keys_win_over_cookies() {
        let (key, secret) = (ApiKey::generate().unwrap().reveal(), Secret::generate().unwrap());
        let cookie = format!("{COOKIE}={}", secret.reveal());
        assert_eq!(read_headers(&[("cookie", &cookie), ("x-api-key", &key)]), Ok(key));
        let wrong = read_headers(&[("cookie", &cookie), ("x-api-key", "wm_x")]);
        assert_eq!(wrong, Err(ProblemCode::InvalidApiKey));
        let basic = read_headers(&[("cookie", &cookie), ("authorization", "Basic abc")]);
        assert_eq!(basic, Ok(secret.reveal()));
    }
}
