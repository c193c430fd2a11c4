//! The API key of a request (`docs/api-conventions.md`, "Authentication"): `x-api-key` or a bearer
//! token.

use crate::http::{ApiRequest, Problem};
use crate::projects::api_key::ApiKey;

/// The headers that [`read`] reads, as listed in `vary`.
pub(crate) const HEADERS: &str = "authorization, x-api-key";

/// Returns the request's key. Both headers can contain it if they agree.
pub(super) fn read(incoming: &ApiRequest) -> Result<ApiKey, Problem> {
    let plain = incoming.header_values("x-api-key").filter(|value| !value.is_empty());
    let bearer = incoming.header_values("authorization").filter_map(bearer_token);
    let mut sent = plain.chain(bearer);
    let first = sent.next().ok_or_else(Problem::missing_api_key)?;
    if sent.any(|other| other != first) {
        return Err(Problem::invalid_api_key());
    }
    let text = std::str::from_utf8(first).ok();
    text.and_then(ApiKey::parse).ok_or_else(Problem::invalid_api_key)
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
        read(&incoming).map(|key| key.reveal()).map_err(|problem| problem.code())
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
}
