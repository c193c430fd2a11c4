//! Requests as API Gateway events, and their responses.

use std::time::Duration;

use lambda_http::http::{HeaderMap, Method};
use lambda_http::{Body, Context, RequestExt, Response};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use shared::app::{App, Operation, respond};

use crate::{contract, permissions};

/// The request id of every call.
pub const REQUEST_ID: &str = "8f14e45f-ea2c-4c5b-9d51-5f1c2f0a1b2c";

/// Attempts of a call that gets 503.
const MAX_ATTEMPTS: usize = 5;

/// The API type of API Gateway that sends the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gateway {
    /// An HTTP API: payload format 2.0, path parameters decoded.
    HttpApi,
    /// A REST API: payload format 1.0.
    RestApi,
}

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// A request.
#[derive(Clone)]
pub struct Call {
    operation: &'static Operation,
    method: Method,
    path: String,
    gateway: Gateway,
    parameters: Vec<(String, String)>,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    source: Option<String>,
    body: Vec<u8>,
    base64: bool,
}

/// A response.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body: `null` if it is empty, text if it is a page.
    pub body: Value,
    /// The body as sent.
    pub text: String,
}

impl Call {
    /// Returns a call of an operation without parameters, headers and body.
    pub fn of(operation: &'static Operation) -> Self {
        Self {
            operation,
            method: operation.method.clone(),
            path: operation.path.to_owned(),
            gateway: Gateway::HttpApi,
            parameters: Vec::new(),
            query: Vec::new(),
            headers: Vec::new(),
            source: None,
            body: Vec::new(),
            base64: false,
        }
    }

    /// Returns the operation's id.
    pub fn id(&self) -> &'static str {
        self.operation.name
    }

    /// Removes query, headers and body.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.query.clear();
        self.headers.clear();
        self.bytes(Vec::new())
    }

    /// Uses a different method from the operation's.
    #[must_use]
    pub fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// Uses another path of the operation's function.
    #[must_use]
    pub fn path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// Sends the event like another API type.
    #[must_use]
    pub fn gateway(mut self, gateway: Gateway) -> Self {
        self.gateway = gateway;
        self
    }

    /// Sets or replaces a path parameter.
    #[must_use]
    pub fn parameter(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.parameters.retain(|(known, _)| known != name);
        self.parameters.push((name.to_owned(), value.to_string()));
        self
    }

    /// Adds a query parameter.
    #[must_use]
    pub fn query(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.query.push((name.to_owned(), value.to_string()));
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends the request from a network address.
    #[must_use]
    pub fn source(mut self, address: &str) -> Self {
        self.source = Some(address.to_owned());
        self
    }

    /// Sends an API key.
    #[must_use]
    pub fn key(self, key: &str) -> Self {
        self.header("x-api-key", key)
    }

    /// Sends a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").bytes(body.to_string())
    }

    /// Sends bytes. Like API Gateway, bytes that are not text are encoded as base64.
    #[must_use]
    pub fn bytes(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.base64 = std::str::from_utf8(&self.body).is_err();
        self
    }

    /// Encodes the body as base64 even if it is text.
    #[must_use]
    pub fn base64(mut self) -> Self {
        self.base64 = true;
        self
    }

    /// Sends the call until the status is not 503, at most five times. Engine calls are canceled if
    /// the computer stalls for two seconds.
    pub async fn send_until_response(&self, app: &App) -> Reply {
        for _ in 1..MAX_ATTEMPTS {
            let reply = self.clone().send(app).await;
            if reply.status != 503 {
                return reply;
            }
        }
        self.clone().send(app).await
    }

    /// Sends the request. Checks the response against `openapi.yaml`, and the function's requests
    /// to DynamoDB against `template.yaml`.
    pub async fn send(self, app: &App) -> Reply {
        let reply = send_event(app, self.operation, &self.event().to_string()).await;
        if self.method == self.operation.method {
            contract::check(self.id(), &reply);
        }
        reply
    }

    /// Lets the function respond to an event of this call, without the checks of [`Self::send`].
    /// Returns the response and this thread's processor time, including the parsing of the event.
    pub async fn timed(&self, app: &App, event: &str) -> (Response<Body>, Duration) {
        let started = processor_time();
        let request = lambda_http::request::from_str(event).expect("the event is valid");
        let request = request.with_lambda_context(Context::default());
        let response = respond(app, self.operation, request).await;
        let spent = processor_time().checked_sub(started).expect("time increases");
        (response, spent)
    }

    /// Returns the event that API Gateway would send.
    pub fn event(&self) -> Value {
        let mut path = self.path.clone();
        for (name, value) in &self.parameters {
            path = path.replace(&format!("{{{name}}}"), value);
        }
        let parameters: serde_json::Map<String, Value> =
            self.parameters.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let body = if self.base64 {
            json!(base64(&self.body))
        } else if self.body.is_empty() {
            Value::Null
        } else {
            json!(String::from_utf8_lossy(&self.body))
        };
        match self.gateway {
            Gateway::HttpApi => {
                // HTTP APIs join the values of repeated headers.
                let mut headers = serde_json::Map::new();
                for (name, value) in &self.headers {
                    let joined = match headers.get(name).and_then(Value::as_str) {
                        Some(earlier) => format!("{earlier},{value}"),
                        None => value.clone(),
                    };
                    headers.insert(name.clone(), json!(joined));
                }
                json!({
                    "version": "2.0",
                    "routeKey": format!("{} {}", self.method, self.path),
                    "rawPath": path,
                    "rawQueryString": self.raw_query(),
                    "headers": headers,
                    "pathParameters": parameters,
                    "requestContext": {
                        "apiId": "a1b2c3d4e5",
                        "stage": "$default",
                        "http": {
                            "method": self.method.as_str(),
                            "path": path,
                            "protocol": "HTTP/1.1",
                            "sourceIp": self.source,
                        },
                        "timeEpoch": 0,
                    },
                    "body": body,
                    "isBase64Encoded": self.base64,
                })
            }
            Gateway::RestApi => {
                let mut multiple = serde_json::Map::new();
                for (name, value) in &self.headers {
                    let values = multiple.entry(name.clone()).or_insert_with(|| json!([]));
                    values.as_array_mut().expect("the value is an array").push(json!(value));
                }
                let (last, all) = self.query_maps();
                json!({
                    "resource": self.path,
                    "path": path,
                    "httpMethod": self.method.as_str(),
                    "headers": {},
                    "multiValueHeaders": multiple,
                    "queryStringParameters": last,
                    "multiValueQueryStringParameters": all,
                    "pathParameters": parameters,
                    "stageVariables": null,
                    "requestContext": {
                        "resourcePath": self.path,
                        "httpMethod": self.method.as_str(),
                        "path": path,
                        "stage": "prod",
                        "requestId": "r",
                        "identity": {},
                    },
                    "body": body,
                    "isBase64Encoded": self.base64,
                })
            }
        }
    }
}

/// Invokes a function with an event. Panics if the function sends a request that `template.yaml`
/// does not allow.
pub async fn send_event(app: &App, operation: &'static Operation, event: &str) -> Reply {
    let request = lambda_http::request::from_str(event).expect("the event is valid");
    let mut context = Context::default();
    REQUEST_ID.clone_into(&mut context.request_id);
    let work = respond(app, operation, request.with_lambda_context(context));
    let (parts, body) = permissions::checked(operation.name, work).await.into_parts();
    let text = match body {
        Body::Empty => String::new(),
        Body::Text(text) => text,
        _ => panic!("the body is not text"),
    };
    Reply::new(parts.status.as_u16(), parts.headers, text)
}

impl Call {
    /// Returns the encoded query of the URL.
    fn raw_query(&self) -> String {
        let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
        let pairs = self.query.iter().map(|(name, value)| (encode(name), encode(value)));
        let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join("&")
    }

    /// Returns the decoded query like a REST API: the last value of each name, and all values;
    /// `null` without a query.
    fn query_maps(&self) -> (Value, Value) {
        if self.query.is_empty() {
            return (Value::Null, Value::Null);
        }
        let (mut last, mut all) = (json!({}), json!({}));
        for (name, value) in &self.query {
            last[name] = json!(value);
            match all[name].as_array_mut() {
                Some(values) => values.push(json!(value)),
                None => all[name] = json!([value]),
            }
        }
        (last, all)
    }
}

impl Reply {
    /// Returns a response with its body as sent.
    pub fn new(status: u16, headers: HeaderMap, text: String) -> Self {
        let content_type = headers.get("content-type").and_then(|it| it.to_str().ok());
        let body = if text.is_empty() {
            Value::Null
        } else if content_type.is_some_and(|it| it.starts_with("text/html")) {
            Value::String(text.clone())
        } else {
            serde_json::from_str(&text).expect("the response is JSON")
        };
        Self { status, headers, body, text }
    }

    /// Returns the code of a problem.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    /// Returns status and code of a problem.
    pub fn problem(&self) -> (u16, &str) {
        (self.status, self.code())
    }

    /// Returns pointers and codes of the violations.
    pub fn violations(&self) -> Vec<(&str, &str)> {
        let errors = self.body["errors"].as_array().map_or(&[][..], Vec::as_slice);
        let text = |error: &'_ Value, name: &str| error[name].as_str().map(str::to_owned);
        debug_assert!(errors.iter().all(|error| text(error, "message").is_some()));
        errors
            .iter()
            .map(|error| {
                (error["pointer"].as_str().expect("text"), error["code"].as_str().expect("text"))
            })
            .collect()
    }
}

/// Encodes RFC 4648 base64 with the AWS SDK's function.
pub fn base64(bytes: &[u8]) -> String {
    aws_smithy_types::base64::encode(bytes)
}
