//! Converts requests to events of payload format 2.0.
//!
//! Details that AWS does not document follow published measurements of API Gateway. The path and
//! its parameters are decoded, the query is not. A body is text only if its `content-type` says so.
//! Cookies are separate from the headers.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use axum::http::header::{
    CONNECTION, CONTENT_TYPE, COOKIE, HOST, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value as Json, json};
use shared::timestamp::Timestamp;
use uuid::Uuid;

use super::api::{Parameters, decoded};

/// Media types whose bodies are passed as text, in addition to `text/*`.
const TEXT_TYPES: [&str; 3] = ["application/json", "application/javascript", "application/xml"];
/// Connection headers, which end at the gateway.
const CONNECTION_HEADERS: [HeaderName; 3] = [CONNECTION, TRANSFER_ENCODING, UPGRADE];

/// A received request.
pub(super) struct Received<'r> {
    pub(super) parts: &'r Parts,
    pub(super) body: &'r [u8],
    pub(super) client: SocketAddr,
    /// The port of the gateway.
    pub(super) port: u16,
    pub(super) at: Timestamp,
    /// The gateway's id of the request.
    pub(super) id: Uuid,
}

/// Returns the event of a request for a route.
pub(super) fn of(received: &Received<'_>, route_key: &str, parameters: &Parameters) -> Vec<u8> {
    let Received { parts, body, client, at, id, .. } = received;
    let path = decoded(parts.uri.path());
    let query = parts.uri.query().unwrap_or_default();
    let mut headers = headers(&parts.headers);
    let host = headers.get(HOST.as_str()).cloned().unwrap_or_default();
    let user_agent = headers.get(USER_AGENT.as_str()).cloned().unwrap_or_default();
    let source = client.ip().to_string();
    add_forwarding(&mut headers, received);
    let mut event = json!({
        "version": "2.0",
        "routeKey": route_key,
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "local",
            "domainName": host,
            "domainPrefix": host.split('.').next(),
            "http": {
                "method": parts.method.as_str(),
                "path": path,
                "protocol": format!("{:?}", parts.version),
                "sourceIp": source,
                "userAgent": user_agent,
            },
            "requestId": id.to_string(),
            "routeKey": route_key,
            "stage": "$default",
            "time": time(*at),
            "timeEpoch": at.as_millis(),
        },
        "isBase64Encoded": false,
    });
    let cookies = cookies(&parts.headers);
    if !cookies.is_empty() {
        event["cookies"] = json!(cookies);
    }
    if !query.is_empty() {
        event["queryStringParameters"] = Json::Object(query_parameters(query));
    }
    if !parameters.is_empty() {
        event["pathParameters"] = parameters.iter().cloned().collect();
    }
    if !body.is_empty() {
        let text = std::str::from_utf8(body).ok().filter(|_| is_text(&parts.headers));
        event["isBase64Encoded"] = json!(text.is_none());
        event["body"] =
            text.map_or_else(|| json!(BASE64_STANDARD.encode(body)), |text| json!(text));
    }
    event.to_string().into_bytes()
}

/// Returns all headers except cookies and those of the connection. Repeated headers are joined.
fn headers(all: &HeaderMap) -> BTreeMap<String, String> {
    let mut headers = BTreeMap::new();
    for name in all.keys() {
        if *name == COOKIE || CONNECTION_HEADERS.contains(name) {
            continue;
        }
        let values: Vec<String> = all.get_all(name).iter().map(header_text).collect();
        headers.insert(name.as_str().to_owned(), values.join(","));
    }
    headers
}

/// Returns a header's value as text. Values that are not UTF-8 are decoded as Latin-1, HTTP's
/// former encoding.
fn header_text(value: &HeaderValue) -> String {
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => text.to_owned(),
        Err(_) => value.as_bytes().iter().copied().map(char::from).collect(),
    }
}

/// Adds API Gateway's headers about the connection and the trace.
fn add_forwarding(headers: &mut BTreeMap<String, String>, received: &Received<'_>) {
    let Received { client, port, at, id, .. } = received;
    let client = client.ip().to_string();
    let clients = match headers.get("x-forwarded-for") {
        Some(clients) => format!("{clients}, {client}"),
        None => client,
    };
    let (seconds, random) = (at.as_millis() / 1_000, id.simple().to_string());
    let trace = format!("Root=1-{seconds:08x}-{}", &random[8..]);
    let added = [
        ("x-forwarded-for", clients),
        ("x-forwarded-port", port.to_string()),
        ("x-forwarded-proto", "http".to_owned()),
        ("x-amzn-trace-id", trace),
    ];
    headers.extend(added.map(|(name, value)| (name.to_owned(), value)));
}

fn cookies(headers: &HeaderMap) -> Vec<String> {
    let values: Vec<String> = headers.get_all(COOKIE).iter().map(header_text).collect();
    let cookies = values.iter().flat_map(|value| value.split(';')).map(str::trim);
    cookies.filter(|cookie| !cookie.is_empty()).map(str::to_owned).collect()
}

/// Decodes the query. Values of repeated names are joined.
fn query_parameters(query: &str) -> Map<String, Json> {
    let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = |text: &str| decoded(&text.replace('+', " "));
        parameters.entry(decoded(name)).or_default().push(decoded(value));
    }
    parameters.into_iter().map(|(name, values)| (name, json!(values.join(",")))).collect()
}

fn is_text(headers: &HeaderMap) -> bool {
    let media_type = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_lowercase();
    media_type.starts_with("text/") || TEXT_TYPES.contains(&media_type.as_str())
}

/// Formats a time as in web server logs: `21/Nov/2026:04:16:00 +0000`.
fn time(at: Timestamp) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = at.to_string();
    let part = |range| text.get(range).unwrap_or_default();
    let month = part(5..7).parse().ok().and_then(|month: usize| MONTHS.get(month.wrapping_sub(1)));
    let month = month.copied().unwrap_or_default();
    format!("{}/{month}/{}:{} +0000", part(8..10), part(0..4), part(11..19))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn event_of(request: Request<&[u8]>) -> Json {
        let (parts, body) = request.into_parts();
        let received = Received {
            parts: &parts,
            body,
            client: ([127, 0, 0, 1], 50_000).into(),
            port: 9000,
            at: Timestamp::from_millis(1_795_234_560_000),
            id: Uuid::from_u128(0x019a_a000_0000_7000_8000_0000_0000_000a),
        };
        let parameters = vec![("id".to_owned(), "a b".to_owned())];
        serde_json::from_slice(&of(&received, "POST /things/{id}", &parameters)).unwrap()
    }

    #[test]
    fn requests_become_api_gateway_events() {
        let request = Request::post("/things/a%20b?x=1%2B1&y=a+b&x=2&z")
            .header("host", "127.0.0.1:9000")
            .header("user-agent", "curl/8")
            .header("x-tag", "one")
            .header("x-tag", "two")
            .header("connection", "keep-alive")
            .header("cookie", "a=1; b=2")
            .header("content-type", "Application/JSON; charset=utf-8")
            .body(&b"{\"name\":\"\xc3\xa9\"}"[..])
            .unwrap();
        let expected = json!({
            "version": "2.0",
            "routeKey": "POST /things/{id}",
            "rawPath": "/things/a b",
            "rawQueryString": "x=1%2B1&y=a+b&x=2&z",
            "cookies": ["a=1", "b=2"],
            "headers": {
                "host": "127.0.0.1:9000",
                "user-agent": "curl/8",
                "x-tag": "one,two",
                "content-type": "Application/JSON; charset=utf-8",
                "x-forwarded-for": "127.0.0.1",
                "x-forwarded-port": "9000",
                "x-forwarded-proto": "http",
                "x-amzn-trace-id": "Root=1-6b011b00-00007000800000000000000a",
            },
            "queryStringParameters": {"x": "1+1,2", "y": "a b", "z": ""},
            "pathParameters": {"id": "a b"},
            "requestContext": {
                "accountId": "000000000000",
                "apiId": "local",
                "domainName": "127.0.0.1:9000",
                "domainPrefix": "127",
                "http": {
                    "method": "POST",
                    "path": "/things/a b",
                    "protocol": "HTTP/1.1",
                    "sourceIp": "127.0.0.1",
                    "userAgent": "curl/8",
                },
                "requestId": "019aa000-0000-7000-8000-00000000000a",
                "routeKey": "POST /things/{id}",
                "stage": "$default",
                "time": "21/Nov/2026:04:16:00 +0000",
                "timeEpoch": 1_795_234_560_000_i64,
            },
            "body": "{\"name\":\"é\"}",
            "isBase64Encoded": false,
        });
        assert_eq!(event_of(request), expected);
    }

    #[test]
    fn bodies_are_text_if_type_and_bytes_are() {
        for (media_type, body, is_base64) in [
            (Some("application/json"), &b"{}"[..], false),
            (Some("text/plain;charset=UTF-8"), b"a", false),
            (Some("application/json"), b"\xff", true),
            (Some("application/x-www-form-urlencoded"), b"a=b", true),
            (Some("application/merge-patch+json"), b"{}", true),
            (None, b"{}", true),
            (None, b"", false),
        ] {
            let mut request = Request::post("/things/1");
            if let Some(media_type) = media_type {
                request = request.header("content-type", media_type);
            }
            let event = event_of(request.body(body).unwrap());
            assert_eq!(event["isBase64Encoded"], is_base64, "{media_type:?}");
            let expected = match body {
                b"" => Json::Null,
                _ if is_base64 => json!(BASE64_STANDARD.encode(body)),
                _ => json!(std::str::from_utf8(body).unwrap()),
            };
            assert_eq!(event["body"], expected, "{media_type:?}");
        }
    }

    #[test]
    fn non_utf8_headers_become_text() {
        for (value, text) in [(&b"caf\xe9"[..], "café"), ("café".as_bytes(), "café")] {
            let value = HeaderValue::from_bytes(value).unwrap();
            let request = Request::post("/").header("x-name", value).body(&b""[..]).unwrap();
            assert_eq!(event_of(request)["headers"]["x-name"], text);
        }
    }
}
