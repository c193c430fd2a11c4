//! The official Sentry SDKs, unmodified: programs that raise errors, the reported events, and the
//! filters that find them.

mod browser;
mod bundlers;
mod categories;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Output, Stdio};
use std::time::Duration;

use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tokio::process::Command;

use local::demo;
use shared::app::Clock;
use tests::call::Reply;
use tests::errors::project;
use tests::stack::{Stack, send};

use crate::recording_proxy::{Exchange, RecordingProxy};

/// A reported error.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ReportedError<'a> {
    error_type: &'a str,
    culprit: &'a str,
    level: &'a str,
    handled: bool,
    /// The messages of its events, in alphabetical order.
    messages: Vec<&'a str>,
}

fn handled<'a>(error_type: &'a str, culprit: &'a str, messages: &[&'a str]) -> ReportedError<'a> {
    ReportedError {
        error_type,
        culprit,
        level: "error",
        handled: true,
        messages: messages.to_vec(),
    }
}

fn unhandled<'a>(error_type: &'a str, culprit: &'a str, message: &'a str) -> ReportedError<'a> {
    ReportedError { handled: false, ..handled(error_type, culprit, &[message]) }
}

fn imported_late<'a>() -> ReportedError<'a> {
    ReportedError { level: "warning", ..handled("", "", &["the nightly import is late"]) }
}

/// Raised at two lines with two callers.
const PAYMENTS: [&str; 5] = [
    "order 1 at 10.0.0.1 is not found",
    "order 2 cannot be charged",
    "order 3 at 10.0.0.3 is not found",
    "order 4 cannot be charged",
    "order 5 at 10.0.0.5 is not found",
];
/// Message of the exception that ends each program.
const LAST: &str = "the last one";

/// All programs share a stack, each with its own project.
#[tokio::test]
async fn official_sdks_report_errors_with_all_categories() {
    let stack = Stack::start().await;
    // The browser runs first, because it needs the whole machine.
    browser::reports_each_error(&stack).await;
    bundlers::resolve_minified_builds(&stack).await;
    futures_util::join!(
        python_reports_each_error(&stack, "sentry-sdk", "gzip"),
        python_reports_each_error(&stack, "sentry-sdk-brotli", "br"),
        node_reports_each_error(&stack),
        node_reports_a_large_error(&stack),
        rust_reports_each_error(&stack),
    );
}

async fn python_reports_each_error(stack: &Stack, environment: &str, coding: &str) {
    let python = tests::workspace().join(".venv").join(environment).join("bin/python");
    let python = python.to_str().expect("the path is UTF-8");
    let command = ["python", python, "raise_errors.py"];
    let program = Program::fail(stack, &stack.base_url, environment, &command).await;

    let errors = program.errors().await;
    let expected = [
        handled("", "", &["mail 23 bounced", "mail 42 bounced"]),
        imported_late(),
        unhandled("ConnectionResetError", "__main__ in synchronize", "the warehouse hung up"),
        handled("PaymentError", "__main__ in charge", &PAYMENTS),
        unhandled("PermissionError", "__main__ in <module>", LAST),
        handled("RuntimeError", "__main__ in load_cart", &["no cart"]),
    ];
    assert_eq!(reported_errors(&errors), expected);
    assert_eq!(types_of_chain(&errors, "RuntimeError"), ["KeyError", "RuntimeError"]);
    program.check_timeseries(&errors).await;
    program.check_categories(&errors).await;

    let count = |text: &str| program.output.matches(text).count();
    let compressed = count(&format!("Content-Encoding: {coding}\\r\\n"));
    let counts = (compressed, count("Content-Encoding: "), count("reply: 'HTTP/1.1 200 OK"));
    assert_eq!(counts, (11, 11, 11), "{}", program.output);
}

async fn node_reports_each_error(stack: &Stack) {
    let command = ["node", "node", "raise_errors.mjs"];
    let program = Program::fail(stack, &stack.base_url, "node", &command).await;

    let errors = program.errors().await;
    let fatal = unhandled("RangeError", "raise_errors in closeDay", LAST);
    let expected = [
        imported_late(),
        handled("Error", "raise_errors in loadCart", &["no cart"]),
        handled("PaymentError", "raise_errors in charge", &PAYMENTS),
        ReportedError { level: "fatal", ..fatal },
        unhandled("URIError", "raise_errors in synchronize", "the warehouse hung up"),
    ];
    assert_eq!(reported_errors(&errors), expected, "{}", program.output);
    assert_eq!(types_of_chain(&errors, "Error"), ["TypeError", "Error"]);
    program.check_timeseries(&errors).await;
    program.check_categories(&errors).await;

    let accepted = program.output.lines().map(|line| line.strip_prefix("200 "));
    let accepted: BTreeSet<_> = accepted.map(|id| id.expect("the event is accepted")).collect();
    assert_eq!(accepted, event_ids(&errors));
}

/// The SDK compresses bodies over 32 KiB.
async fn node_reports_a_large_error(stack: &Stack) {
    let command = ["node", "node", "raise_large_error.mjs"];
    let proxy = RecordingProxy::start(&stack.base_url).await;
    let program = Program::fail(stack, &proxy.base_url, "node-large", &command).await;

    let errors = program.errors().await;
    let fatal = unhandled("RangeError", "raise_large_error in closeDay", LAST);
    assert_eq!(reported_errors(&errors), [ReportedError { level: "fatal", ..fatal }]);
    let rows = errors[0].events[0]["event"]["extra"]["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[799]), (800, &json!(format!("row 799: {}", "x".repeat(50)))));
    let is_compressed = |it: &Exchange| it.content_encoding.as_deref() == Some("gzip");
    assert!(proxy.exchanges().iter().any(is_compressed), "{:?}", proxy.exchanges());
}

async fn rust_reports_each_error(stack: &Stack) {
    let program = tests::workspace().join("target/sdks/debug/raise-errors");
    let program = program.to_str().expect("the path is UTF-8");
    let program = Program::fail(stack, &stack.base_url, "rust", &["rust", program]).await;

    let errors = program.errors().await;
    let panic = unhandled("panic", "main.rs in raise_errors::close_day", LAST);
    let expected = [
        imported_late(),
        handled("PaymentError", "", &[PAYMENTS[0], "order 2 at 10.0.0.2 is not found"]),
        ReportedError { level: "fatal", ..panic },
    ];
    assert_eq!(reported_errors(&errors), expected, "{}", program.output);
    program.check_timeseries(&errors).await;
    program.check_categories(&errors).await;
}

/// A program that has ended.
struct Program<'s> {
    stack: &'s Stack,
    project: String,
    started_at: i64,
    output: String,
}

/// An error from list-errors with its events from list-error-events.
struct Reported {
    error: Value,
    events: Vec<Value>,
}

impl<'s> Program<'s> {
    /// Runs a program with its own project until an exception or panic ends it.
    async fn fail(stack: &'s Stack, base_url: &str, slug: &str, command: &[&str]) -> Self {
        let (program, status, stderr) = Self::run(stack, base_url, slug, command).await;
        assert!(matches!(status, Some(1 | 101)), "{stderr}");
        assert!(stderr.contains(LAST), "{stderr}");
        program
    }

    /// Runs a program in a folder of `tests/sdks` with its own project, and returns how it ended.
    async fn run(
        stack: &'s Stack,
        base_url: &str,
        slug: &str,
        command: &[&str],
    ) -> (Self, Option<i32>, String) {
        let started_at = Clock::System.now().as_millis();
        let id = demo::ensure_project(&stack.store, slug, "Failing").await.unwrap();
        let dsn = project(&stack.store, id).await.dsn(base_url);
        let Output { status, stdout, stderr } = run(command, &dsn.to_string()).await;
        let output = String::from_utf8(stdout).unwrap();
        let program = Self { stack, project: slug.to_owned(), started_at, output };
        (program, status.code(), String::from_utf8(stderr).unwrap())
    }

    /// Returns all reported errors, after checks that apply to each.
    async fn errors(&self) -> Vec<Reported> {
        let listed = self.get("list-errors", "").await;
        let mut errors = Vec::new();
        for error in listed.body["items"].as_array().unwrap() {
            let path = format!("/{}", error["errorId"].as_str().unwrap());
            assert_eq!(&self.get("get-error", &path).await.body, error);
            let events = self.get("list-error-events", &format!("{path}/events")).await;
            let events = events.body["items"].as_array().unwrap().clone();
            check_error(error, &events);
            errors.push(Reported { error: error.clone(), events });
        }
        let events = errors.iter().map(|reported| reported.events.len()).sum::<usize>();
        assert_eq!(event_ids(&errors).len(), events, "an event arrived twice or is missing");
        errors
    }

    async fn get(&self, operation: &str, path: &str) -> Reply {
        let url = format!("{}/v0/projects/{}/errors{path}", self.stack.base_url, self.project);
        self.send(operation, self.stack.http.get(url)).await
    }

    async fn send(&self, operation: &str, request: RequestBuilder) -> Reply {
        let reply = send(operation, request.header("x-api-key", &self.stack.key)).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply
    }

    /// Checks that the timeseries agrees with the events of each minute.
    async fn check_timeseries(&self, errors: &[Reported]) {
        let query = json!({"projectIds": [self.project], "from": self.started_at});
        assert_eq!(self.timeseries(&query).await, counts(errors, |_| true));
        let unhandled = json!([{"categoryId": "handled", "operator": "is", "value": "false"}]);
        let query = json!({
            "projectIds": [self.project], "from": self.started_at, "filters": unhandled,
            "searchQuery": "release:shop@1.2.3",
        });
        assert_eq!(self.timeseries(&query).await, counts(errors, |event| !is_handled(event)));
    }

    /// Returns events and errors of each minute with any.
    async fn timeseries(&self, query: &Value) -> BTreeMap<String, (usize, usize)> {
        let url = format!("{}/v0/errors/timeseries/query", self.stack.base_url);
        let reply =
            self.send("query-error-timeseries", self.stack.http.post(url).json(query)).await;
        assert_eq!(reply.headers["x-bucket-seconds"], "60");
        let count = |bucket: &Value, name: &str| usize::try_from(bucket[name].as_u64().unwrap());
        let buckets = reply.body.as_array().unwrap().iter().map(|bucket| {
            let start = bucket["bucketStart"].as_str().unwrap().to_owned();
            (start, (count(bucket, "errors").unwrap(), count(bucket, "uniqueErrors").unwrap()))
        });
        buckets.filter(|(_, counts)| *counts != (0, 0)).collect()
    }
}

async fn run(command: &[&str], dsn: &str) -> Output {
    let [folder, program, arguments @ ..] = command else { unreachable!("it names a program") };
    let running = Command::new(program)
        .args(arguments)
        .current_dir(tests::workspace().join("tests/sdks").join(folder))
        // The environment must not configure the SDK.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("SENTRY_DSN", dsn)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(Duration::from_secs(90), running).await;
    let output = output.expect("the program ends");
    output.unwrap_or_else(|error| panic!("{program}: {error}; run `make test-tools`"))
}

/// Checks the properties of every error.
fn check_error(error: &Value, events: &[Value]) {
    let (error_type, message) = (text(error, "type"), text(error, "message"));
    let title =
        if error_type.is_empty() { message.to_owned() } else { format!("{error_type}: {message}") };
    assert_eq!((text(error, "title"), text(error, "status")), (title.as_str(), "open"));
    assert!(events.iter().any(|event| message_of(&event["event"]) == message), "{message}");
    assert_eq!(error["count"], events.len());
    let mut times = events.iter().map(|event| &event["occurredAt"]);
    assert_eq!(times.clone().next(), Some(&error["lastSeen"]));
    assert_eq!(times.next_back(), Some(&error["firstSeen"]));
    for reported in events {
        let event = &reported["event"];
        assert_eq!(event["event_id"], reported["eventId"]);
        assert_eq!((text(event, "release"), text(event, "environment")), ("shop@1.2.3", "staging"));
        assert_eq!(event["tags"]["team"], "payments");
        if error_type == "PaymentError" {
            let order = event["tags"]["order"].as_str().unwrap();
            assert!(message_of(event).starts_with(&format!("order {order} ")), "{order}");
            assert_eq!(event["user"], json!({"id": "u-17", "geo": {"country_code": "DE"}}));
        }
    }
}

/// Returns the reported errors, sorted by type.
fn reported_errors(errors: &[Reported]) -> Vec<ReportedError<'_>> {
    let mut reported_errors: Vec<_> = errors.iter().map(ReportedError::of).collect();
    reported_errors.sort();
    reported_errors
}

impl<'r> ReportedError<'r> {
    fn of(Reported { error, events }: &'r Reported) -> Self {
        let first = &events[0]["event"];
        let mut messages: Vec<_> = events.iter().map(|event| message_of(&event["event"])).collect();
        messages.sort_unstable();
        Self {
            error_type: text(error, "type"),
            culprit: text(error, "culprit"),
            level: text(first, "level"),
            handled: is_handled(first),
            messages,
        }
    }
}

fn exceptions(event: &Value) -> &[Value] {
    event["exception"]["values"].as_array().map_or(&[], Vec::as_slice)
}

fn message_of(event: &Value) -> &str {
    match exceptions(event).last() {
        Some(outermost) => text(outermost, "value"),
        None => text(&event["logentry"], "formatted"),
    }
}

fn is_handled(event: &Value) -> bool {
    exceptions(event).iter().all(|exception| exception["mechanism"]["handled"] != false)
}

/// Returns the types of an error's exceptions, starting with the cause.
fn types_of_chain<'r>(errors: &'r [Reported], error_type: &str) -> Vec<&'r str> {
    let mut found = errors.iter().filter(|reported| reported.error["type"] == error_type);
    let event = &found.next().expect("the error was reported").events[0]["event"];
    exceptions(event).iter().map(|exception| text(exception, "type")).collect()
}

fn event_ids(errors: &[Reported]) -> BTreeSet<&str> {
    let events = errors.iter().flat_map(|reported| &reported.events);
    events.map(|event| text(event, "eventId")).collect()
}

/// Returns the number of selected events and their errors, by minute.
fn counts(
    errors: &[Reported],
    passes: impl Fn(&Value) -> bool,
) -> BTreeMap<String, (usize, usize)> {
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for Reported { events, .. } in errors {
        let passing = events.iter().filter(|event| passes(&event["event"]));
        let minutes = passing.map(|event| format!("{}:00.000Z", &text(event, "occurredAt")[..16]));
        let minutes: Vec<_> = minutes.collect();
        for minute in &minutes {
            counts.entry(minute.clone()).or_default().0 += 1;
        }
        for minute in minutes.into_iter().collect::<BTreeSet<_>>() {
            counts.entry(minute).or_default().1 += 1;
        }
    }
    counts
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} of {value}"))
}
