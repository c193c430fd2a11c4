//! Serves a function: reads its configuration, creates its clients and runs the loop around its
//! handler.

use std::collections::HashMap;
use std::convert::Infallible;
use std::env;
use std::future::ready;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use lambda_http::http::header::{HOST, VARY};
use lambda_http::http::{HeaderMap, HeaderValue, Method, Response};
use lambda_http::request::LambdaRequest;
use lambda_http::{Adapter, Body, BoxFuture, IntoResponse, Request, RequestExt, Service};
use lambda_runtime::{LambdaEvent, service_fn};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::de::IgnoredAny;

use crate::auth::{Caller, HEADERS, HEADERS_AND_COOKIE};
use crate::dynamodb::{Store, TableNames, client};
use crate::http::{
    ApiRequest, ApiResponse, BASE_URL, CursorKey, EDGE, ORIGIN_SECRET, OriginSecrets, Problem,
    preflight,
};
use crate::projects::api_key::Scope;
use crate::projects::limits::Limits;
use crate::telemetry::{self, ResourceUsage};
use crate::timestamp::Timestamp;
use crate::usage::{Usage, counted};

use super::operation::{Access, Job, Operation};
use super::state::{App, CURSOR_KEY_VARIABLE, Clock, Deadline, Ids};

/// Longest wait for the first connection during a cold start.
const WARM_UP_BUDGET: Duration = Duration::from_millis(500);

/// The error that prevents a function from starting.
pub type StartError = lambda_runtime::Error;

/// Serves an operation: reads the function's configuration, connects to DynamoDB and handles one
/// request at a time until Lambda stops the process.
pub fn serve(operation: &Operation) -> Result<(), StartError> {
    run(async {
        telemetry::start();
        let store = open_store()?;
        // Lambda provides a full CPU before the first request, so do the TLS handshake now.
        let _ = tokio::time::timeout(WARM_UP_BUDGET, warm_up(&store, operation)).await;
        let secrets = &OriginSecrets::from_environment();
        let app = &App::new(store, Clock::System, Ids::Random)
            .with_cursor_key(cursor_key())
            .with_origin_secrets(secrets.clone())
            .with_limits(Limits::from_environment())
            .recording_uses();
        let mut adapter = Adapter::from(service_fn(async |request: Request| {
            Ok::<_, Infallible>(BufferedResponse(respond(app, operation, request).await))
        }));
        lambda_runtime::run(service_fn(move |mut event: LambdaEvent<LambdaRequest>| {
            make_readable(&mut event.payload, secrets);
            adapter.call(event)
        }))
        .await
    })
}

/// A response whose body is already text or bytes. For other bodies, the library detects the
/// charset with tables that are larger than an operation.
struct BufferedResponse(Response<Body>);

impl IntoResponse for BufferedResponse {
    fn into_response(self) -> BoxFuture<'static, Response<Body>> {
        Box::pin(ready(self.0))
    }
}

/// Returns the resource usage of a request or job. The first call in a process reports the cold
/// start.
fn spent(app: &App, duration: Duration, usage: Usage) -> ResourceUsage {
    let is_cold_start = app.is_cold.swap(false, Ordering::Relaxed);
    ResourceUsage { duration, usage, is_cold_start }
}

/// Runs a function until it ends. One thread is enough: Lambda sends one request at a time.
fn run(function: impl Future<Output = Result<(), StartError>>) -> Result<(), StartError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(function)
}

/// Opens a function's DynamoDB connection with a read that the operation is permitted to make.
/// Skips public operations.
pub async fn warm_up(store: &Store, operation: &Operation) {
    match operation.access {
        Access::ApiKey(..) | Access::AnyApiKey(_) => store.warm_up().await,
        Access::Dsn(_) => store.warm_up_delivery().await,
        Access::Public(_) => {}
    }
}

/// Time before Lambda's deadline at which a job stops.
const JOB_MARGIN: Duration = Duration::from_secs(10);
/// Time limit of a job without a valid deadline, as under `cargo lambda watch` alone.
const JOB_BUDGET: Duration = Duration::from_secs(50);

/// Serves a job. A failure is an error of the invocation, so AWS counts it. The next invocation
/// continues.
pub fn serve_job(job: &Job) -> Result<(), StartError> {
    run(async {
        telemetry::start();
        let store = open_store()?;
        let app = &App::new(store, Clock::System, Ids::Random);
        lambda_runtime::run(service_fn(async |event: LambdaEvent<IgnoredAny>| {
            let started = Instant::now();
            let deadline = deadline(&event.context, app.clock.now());
            let (outcome, usage) = counted((job.run)(app, deadline)).await;
            let spent = spent(app, started.elapsed(), usage);
            let (error, now) = (outcome.as_ref().err(), app.clock.now());
            telemetry::log_job(job.name, &event.context, error, &spent, now);
            outcome.map_err(|_| "the job failed; see the log for the cause")
        }))
        .await
    })
}

/// Returns the deadline of a job. `cargo lambda watch` alone sets deadlines in the past.
fn deadline(context: &lambda_runtime::Context, now: Timestamp) -> Deadline {
    let now = u64::try_from(now.as_millis()).unwrap_or_default();
    match context.deadline.checked_sub(now).map(Duration::from_millis) {
        Some(left) if left > JOB_MARGIN => Deadline::after(left.saturating_sub(JOB_MARGIN)),
        Some(left) if !left.is_zero() => Deadline::after(left / 2),
        _ => Deadline::after(JOB_BUDGET),
    }
}

/// Opens the function's tables. Unreadable items are logged and counted.
fn open_store() -> Result<Store, StartError> {
    let store = Store::new(client::for_function()?, TableNames::from_environment()?);
    Ok(store.reporting_damage(telemetry::log_damaged_item))
}

fn cursor_key() -> Option<CursorKey> {
    env::var(CURSOR_KEY_VARIABLE).ok().filter(|key| !key.is_empty()).map(CursorKey::new)
}

/// Header with the scheme of the request, set by API Gateway.
const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// ASCII characters to encode in queries. Other characters are always encoded.
const NOT_IN_QUERIES: AsciiSet =
    CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'`').add(b'{').add(b'}');

/// ASCII characters to encode in paths.
const NOT_IN_PATHS: AsciiSet = NOT_IN_QUERIES.add(b'?');

/// Headers in which the stack's own distribution reports the address and the host that its client
/// used.
const VIEWER_ADDRESS: &str = "x-waymark-viewer-address";
const VIEWER_HOST: &str = "x-waymark-viewer-host";

/// Removes the host that the caller sent, which no operation uses, and every scheme except `https`.
/// Encodes queries that callers sent unencoded and paths that HTTP APIs decoded. If the stack's own
/// distribution sent the request, its client's address and host replace those of the distribution
/// (`docs/security.md`, "Client addresses").
///
/// The library builds a URL from these parts, and panics if the URL is invalid.
fn make_readable(request: &mut LambdaRequest, secrets: &OriginSecrets) {
    let (headers, more_headers, source) = match request {
        LambdaRequest::ApiGatewayV1(event) => {
            event.request_context.domain_name = None;
            let source = &mut event.request_context.identity.source_ip;
            (&mut event.headers, Some(&mut event.multi_value_headers), source)
        }
        LambdaRequest::ApiGatewayV2(event) => {
            event.request_context.domain_name = None;
            if let Some(path) = &mut event.raw_path {
                *path = utf8_percent_encode(path, &NOT_IN_PATHS).to_string();
            }
            if let Some(query) = &mut event.raw_query_string {
                *query = utf8_percent_encode(query, &NOT_IN_QUERIES).to_string();
            }
            (&mut event.headers, None, &mut event.request_context.http.source_ip)
        }
        _ => return,
    };
    let sent = headers.get(ORIGIN_SECRET);
    let is_from_edge = sent.is_some_and(|secret| secrets.admits_edge(secret.as_bytes()));
    let of_viewer = |name| headers.get(name).filter(|_| is_from_edge);
    if let Some(Ok(address)) = of_viewer(VIEWER_ADDRESS).map(HeaderValue::to_str) {
        *source = Some(address.to_owned());
    }
    let host = of_viewer(VIEWER_HOST).or_else(|| headers.get(HOST));
    let base_url = base_url(host, headers);
    for headers in [Some(&mut *headers), more_headers].into_iter().flatten() {
        for name in [HOST.as_str(), BASE_URL, EDGE, VIEWER_ADDRESS, VIEWER_HOST] {
            headers.remove(name);
        }
        if headers.get(FORWARDED_PROTO).is_some_and(|scheme| scheme != "https") {
            headers.remove(FORWARDED_PROTO);
        }
    }
    if let Some(base_url) = base_url {
        headers.insert(BASE_URL, base_url);
    }
    if is_from_edge {
        headers.insert(EDGE, HeaderValue::from_static("1"));
    }
}

/// Returns the scheme and host to which a client sent its request, if the host is well-formed.
fn base_url(host: Option<&HeaderValue>, headers: &HeaderMap) -> Option<HeaderValue> {
    let host = host?.to_str().ok()?;
    let is_of_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:[]_".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_of_host) {
        return None;
    }
    let is_plain = headers.get(FORWARDED_PROTO).is_some_and(|scheme| scheme == "http");
    let scheme = if is_plain { "http" } else { "https" };
    HeaderValue::try_from(format!("{scheme}://{host}")).ok()
}

/// Responds to a request and logs it once. Problems, panics and timeouts also become responses.
pub async fn respond(app: &App, operation: &Operation, request: Request) -> Response<Body> {
    let incoming = ApiRequest::new(operation.name, with_path_parameters(request, operation.path));
    let (outcome, usage) = if incoming.method() == Method::OPTIONS {
        (preflight(&operation.protocol), Usage::default())
    } else if let Some(rejection) = app.origin_secrets.reject(&incoming) {
        (Ok(rejection), Usage::default())
    } else {
        // Between requests, handlers keep only caches, whose locks recover from panics.
        let handling = AssertUnwindSafe(Box::pin(handle(app, operation, &incoming))).catch_unwind();
        let budget = app.time_budget.unwrap_or(operation.time_budget);
        let in_time = tokio::time::timeout(budget, handling);
        let (ended, usage) = counted(in_time).await;
        let outcome = match ended {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Problem::internal("panic; see the previous line for the location")),
            Err(_) => Err(Problem::timed_out(budget.as_secs_f32())),
        };
        (outcome, usage)
    };
    let (response, problem) = match outcome {
        Ok(response) => (response, None),
        Err(problem) => ((operation.protocol.problem_response)(&problem, &incoming), Some(problem)),
    };
    let spent = spent(app, incoming.elapsed(), usage);
    telemetry::log_request(&incoming, &response, problem.as_ref(), &spent, app.clock.now());
    let response = match operation.access {
        Access::ApiKey(..) | Access::AnyApiKey(_) => {
            let has_cookie = incoming.header_values("cookie").next().is_some();
            let headers = if has_cookie { HEADERS_AND_COOKIE } else { HEADERS };
            response.with_header(VARY, HeaderValue::from_static(headers))
        }
        Access::Dsn(_) | Access::Public(_) => response,
    };
    response.into_response(incoming.request_id())
}

/// Adds the path parameters of a gateway's route if the event has none. Events of function URLs and
/// `cargo lambda watch` have none.
fn with_path_parameters(request: Request, template: &str) -> Request {
    if request.path_parameters_ref().is_some() {
        return request;
    }
    match path_parameters(template, request.raw_http_path()) {
        Some(parameters) => request.with_path_parameters(parameters),
        None => request,
    }
}

/// Returns the value of each variable of a path template, as sent. Ignores a trailing slash.
/// Returns `None` if the path does not match the template.
fn path_parameters(template: &str, path: &str) -> Option<HashMap<String, Vec<String>>> {
    let [expected, mut sent] =
        [template, path].map(|it| it.strip_suffix('/').unwrap_or(it).split('/'));
    let mut parameters = HashMap::new();
    for expected in expected {
        let segment = sent.next()?;
        match expected.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
            Some(name) => {
                parameters.insert(name.to_owned(), vec![segment.to_owned()]);
            }
            None if expected == segment => {}
            None => return None,
        }
    }
    sent.next().is_none().then_some(parameters)
}

/// Checks the credential and calls the handler (`docs/api-conventions.md`, "Order of checks").
async fn handle(
    app: &App,
    operation: &Operation,
    incoming: &ApiRequest,
) -> Result<ApiResponse, Problem> {
    let (scope, handler) = match operation.access {
        Access::ApiKey(scope, handler) => (Some(scope), handler),
        Access::AnyApiKey(handler) => (None, handler),
        Access::Dsn(handler) | Access::Public(handler) => return handler(app, incoming).await,
    };
    let now = app.clock.now();
    // During an outage, callers can still evaluate flags with cached keys, but not manage them.
    let outlives_outages = scope == Some(Scope::FlagsEvaluate);
    let caller =
        Caller::authenticate(&app.store, &app.access, incoming, outlives_outages, now).await?;
    // All visitors of a page share its key: a limit would let one visitor stop flags for all.
    if !caller.only_evaluates_flags() {
        app.count_request(caller.credential(), caller.own_request_limit()).await?;
    }
    if let Some(scope) = scope
        && !operation.other_scope.is_some_and(|other| caller.scopes().contains(&other))
    {
        caller.require(scope)?;
    }
    if !app.records_uses {
        return handler(app, &caller, incoming).await;
    }
    tokio::join!(handler(app, &caller, incoming), caller.record_use()).0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn decoded_paths_are_encoded_again() {
        for (path, read) in [
            ("/a b/é?c#d", "/a%20b/%C3%A9%3Fc%23d"),
            ("/a%zz/\u{7f}\n\"<>", "/a%zz/%7F%0A%22%3C%3E"),
            ("/a%20b", "/a%20b"),
            ("", ""),
        ] {
            let event = json!({
                "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
                "headers": {}, "isBase64Encoded": false,
                "requestContext": {"http": {"method": "GET", "path": path}, "stage": "$default"},
            });
            let mut event: LambdaRequest = serde_json::from_value(event).unwrap();
            make_readable(&mut event, &OriginSecrets::default());
            assert_eq!(Request::from(event).raw_http_path(), read, "{path:?}");
        }
    }

    #[test]
    fn paths_supply_parameters_that_events_lack() {
        let template = "/v0/projects/{idOrSlug}/things/{thingId}";
        let of = |path: &str| {
            let request = Request::default().with_raw_http_path(path);
            with_path_parameters(request, template).path_parameters()
        };
        for path in ["/v0/projects/shop/things/a%20b", "/v0/projects/shop/things/a%20b/"] {
            let found = of(path);
            let found = (found.first("idOrSlug"), found.first("thingId"));
            assert_eq!(found, (Some("shop"), Some("a%20b")), "{path}");
        }
        for path in ["/v0/projects/shop/things", "/v0/projects/shop/others/a", "/v0/me", ""] {
            assert!(of(path).is_empty(), "{path}");
        }
        let given = HashMap::from([("thingId".to_owned(), vec!["given".to_owned()])]);
        let request = Request::default().with_raw_http_path("/v0/projects/shop/things/sent");
        let request = with_path_parameters(request.with_path_parameters(given), template);
        assert_eq!(request.path_parameters().first("thingId"), Some("given"));
    }

    #[test]
    fn only_the_own_distribution_reports_addresses_and_hosts() {
        let secret = "s".repeat(32);
        let edge = OriginSecrets::parse(&secret).of_edge();
        // A distribution of the operator's own must not choose the host.
        let other = OriginSecrets::parse(&secret);
        let none = OriginSecrets::default();
        let read = |sent: &str, edge: &OriginSecrets| {
            let event = json!({
                "version": "2.0", "routeKey": "$default", "rawPath": "/", "rawQueryString": "",
                "headers": {
                    "host": "api.example.com", "x-origin-secret": sent, "x-waymark-edge": "1",
                    "x-waymark-viewer-address": "2001:db8::7",
                    "x-waymark-viewer-host": "edge.example.com",
                },
                "requestContext": {
                    "http": {"method": "GET", "path": "/", "sourceIp": "203.0.113.9"},
                },
                "isBase64Encoded": false,
            });
            let mut event: LambdaRequest = serde_json::from_value(event).unwrap();
            make_readable(&mut event, edge);
            let incoming = ApiRequest::new("test", Request::from(event));
            for name in ["x-waymark-viewer-address", "x-waymark-viewer-host"] {
                assert_eq!(incoming.header_texts(name), [""; 0]);
            }
            let base_url = incoming.base_url().unwrap().to_owned();
            (incoming.source_address().unwrap(), base_url, incoming.is_from_edge())
        };
        let direct = ("203.0.113.9".to_owned(), "https://api.example.com".to_owned(), false);
        let viewer = ("2001:db8::7".to_owned(), "https://edge.example.com".to_owned(), true);
        assert_eq!(read(&secret, &edge), viewer);
        for (sent, edge) in
            [("", &edge), ("1", &edge), (&secret[1..], &edge), (&secret, &other), (&secret, &none)]
        {
            assert_eq!(read(sent, edge), direct, "{sent}");
        }
        assert_eq!(read("", &none), direct);
    }

    #[test]
    fn malformed_hosts_and_queries_are_readable() {
        for query in ["a=\"x\"&b=<y> z", "a=é`{}|\\^", "a=%22%zz#b", "a=\u{7f}\t", ""] {
            let event = json!({
                "version": "2.0", "routeKey": "$default", "rawPath": "/", "rawQueryString": query,
                "headers": {"host": "a b"}, "isBase64Encoded": false,
                "requestContext": {"http": {"method": "GET", "path": "/"}, "domainName": "a b"},
            });
            let mut event: LambdaRequest = serde_json::from_value(event).unwrap();
            make_readable(&mut event, &OriginSecrets::default());
            let request = Request::from(event);
            let read = request.query_string_parameters();
            let first = query.split('&').next().and_then(|it| it.strip_prefix("a="));
            let expected = first.map(|value| value.replace("%22", "\""));
            assert_eq!(read.first("a"), expected.as_deref(), "{query:?}");
        }
    }
}
