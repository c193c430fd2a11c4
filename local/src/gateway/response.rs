//! HTTP responses: of functions, and of the gateway itself.

use axum::body::Bytes;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, SET_COOKIE, TRANSFER_ENCODING};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value as Json, json};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Returns a response without a body.
pub(super) fn empty(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}

/// Returns the gateway's own response with an error status, like API Gateway.
pub(super) fn error(status: StatusCode) -> Response<Bytes> {
    let message = match status {
        StatusCode::PAYLOAD_TOO_LARGE => "Request Entity Too Large",
        other => other.canonical_reason().unwrap_or_default(),
    };
    let body = json!({ "message": message }).to_string();
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// Converts a function's payload format 2.0 to a response. Returns the reason if it is invalid.
pub(super) fn from_function(payload: &Bytes) -> Result<Response<Bytes>, String> {
    let read: Json = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
    let Some(status) = read.get("statusCode") else {
        // Without a status, API Gateway treats the payload as the body.
        let mut response = Response::new(payload.clone());
        response.headers_mut().insert(CONTENT_TYPE, JSON);
        return Ok(response);
    };
    let status = status.as_u64().and_then(|status| u16::try_from(status).ok());
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    let mut response = empty(status.ok_or("its statusCode is invalid")?);
    for (name, value) in read["headers"].as_object().into_iter().flatten() {
        let name: HeaderName = name.parse().map_err(|_| format!("{name} is not a header"))?;
        if name == CONTENT_LENGTH || name == TRANSFER_ENCODING {
            continue;
        }
        let value = match value {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        };
        let value = value.parse().map_err(|_| format!("its header {name} has an invalid value"))?;
        response.headers_mut().insert(name, value);
    }
    for cookie in read["cookies"].as_array().into_iter().flatten().filter_map(Json::as_str) {
        let cookie = cookie.parse().map_err(|_| "a cookie is invalid")?;
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    let body = read["body"].as_str().unwrap_or_default();
    *response.body_mut() = if read["isBase64Encoded"] == true {
        let decoded = BASE64_STANDARD.decode(body);
        Bytes::from(decoded.map_err(|error| format!("its body is not base64: {error}"))?)
    } else {
        Bytes::from(body.to_owned())
    };
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(payload: &Json) -> Result<Response<Bytes>, String> {
        from_function(&Bytes::from(payload.to_string()))
    }

    #[test]
    fn payloads_become_responses() {
        let response = response(&json!({
            "statusCode": 201,
            "headers": {"etag": "\"1\"", "x-count": 7, "content-length": "3"},
            "multiValueHeaders": {},
            "cookies": ["a=1; Secure", "b=2"],
            "body": "{}",
            "isBase64Encoded": false,
        }));
        let response = response.unwrap();
        assert_eq!((response.status(), &response.body()[..]), (StatusCode::CREATED, &b"{}"[..]));
        let headers = response.headers();
        assert_eq!((&headers["etag"], &headers["x-count"]), (&json_text("\"1\""), &json_text("7")));
        assert!(!headers.contains_key("content-length"));
        let cookies: Vec<_> = headers.get_all("set-cookie").iter().collect();
        assert_eq!(cookies, ["a=1; Secure", "b=2"]);
    }

    fn json_text(text: &str) -> HeaderValue {
        text.parse().unwrap()
    }

    #[test]
    fn bodies_can_be_binary_missing_or_bare() {
        let binary = json!({"statusCode": 200, "body": "/wA=", "isBase64Encoded": true});
        assert_eq!(&response(&binary).unwrap().body()[..], b"\xff\0");
        let empty = response(&json!({"statusCode": 204, "body": null})).unwrap();
        assert_eq!((empty.status(), empty.body().len()), (StatusCode::NO_CONTENT, 0));
        let bare = response(&json!({"message": "hello"})).unwrap();
        assert_eq!(&bare.body()[..], br#"{"message":"hello"}"#);
        assert_eq!((bare.status(), &bare.headers()["content-type"]), (StatusCode::OK, &JSON));
    }

    #[test]
    fn invalid_payloads_are_rejected_with_a_reason() {
        for (payload, reason) in [
            (json!({"statusCode": "x"}), "its statusCode is invalid"),
            (json!({"statusCode": 99}), "its statusCode is invalid"),
            (json!({"statusCode": 200, "headers": {"a b": "c"}}), "a b is not a header"),
            (
                json!({"statusCode": 200, "headers": {"a": "\n"}}),
                "its header a has an invalid value",
            ),
            (json!({"statusCode": 200, "cookies": ["\n"]}), "a cookie is invalid"),
        ] {
            assert_eq!(response(&payload).unwrap_err(), reason);
        }
        let not_base64 = json!({"statusCode": 200, "body": "?", "isBase64Encoded": true});
        assert!(response(&not_base64).unwrap_err().starts_with("its body is not base64"));
        assert!(from_function(&Bytes::from("{")).is_err());
    }

    #[test]
    fn gateway_errors_match_api_gateway() {
        for (status, body) in [
            (StatusCode::NOT_FOUND, r#"{"message":"Not Found"}"#),
            (StatusCode::PAYLOAD_TOO_LARGE, r#"{"message":"Request Entity Too Large"}"#),
            (StatusCode::TOO_MANY_REQUESTS, r#"{"message":"Too Many Requests"}"#),
            (StatusCode::INTERNAL_SERVER_ERROR, r#"{"message":"Internal Server Error"}"#),
            (StatusCode::SERVICE_UNAVAILABLE, r#"{"message":"Service Unavailable"}"#),
        ] {
            let response = error(status);
            assert_eq!((response.status(), &response.body()[..]), (status, body.as_bytes()));
        }
    }
}
