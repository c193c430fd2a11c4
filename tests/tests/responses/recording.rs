//! Requests as data, and exchanges as lines of a recording.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use shared::app::Operation;
use shared::projects::api_key::ApiKeyRecord;
use tests::app::{TestApp, app_over};
use tests::call::{Call, Gateway, Reply};
use tests::contract::OPENAPI;
use tests::errors::project;
use tests::operations::OPERATIONS;
use tests::scripted::{KEY, ScriptedDynamoDb, ScriptedReply};

/// Environment variable that requests new recordings.
const RECORD: &str = "RECORD_RESPONSES";
/// Time before each request: longer than flags are cached.
const PAUSE: Duration = Duration::from_secs(10);
/// Maximum recorded bytes of a request body, and maximum number of shown differences.
const SHOWN_BYTES: usize = 1_500;
const SHOWN_DIFFERENCES: usize = 3;

/// Returns DynamoDB's response, by target and number of earlier requests with that target.
pub(crate) type Script = fn(&str, usize) -> ScriptedReply;

/// A request.
#[derive(Clone)]
pub(crate) struct Request {
    method: &'static str,
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// Recorded replacement for a body that is not text.
    shown_body: Option<String>,
    gateway: Gateway,
}

/// Returns a request with the key that has all scopes.
pub(crate) fn request(method: &'static str, path: impl Into<String>) -> Request {
    let (query, headers, body) = (Vec::new(), Vec::new(), Vec::new());
    let (shown_body, gateway) = (None, Gateway::HttpApi);
    let path = path.into();
    let request = Request { method, path, query, headers, body, shown_body, gateway };
    request.header("x-api-key", "<key>")
}

pub(crate) fn get(path: impl Into<String>) -> Request {
    request("GET", path)
}

pub(crate) fn post(path: impl Into<String>) -> Request {
    request("POST", path)
}

pub(crate) fn put(path: impl Into<String>) -> Request {
    request("PUT", path)
}

pub(crate) fn patch(path: impl Into<String>) -> Request {
    request("PATCH", path)
}

pub(crate) fn delete(path: impl Into<String>) -> Request {
    request("DELETE", path)
}

impl Request {
    pub(crate) fn query(mut self, name: &str, value: impl Display) -> Self {
        self.query.push((name.to_owned(), value.to_string()));
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends another key by its name, or none.
    pub(crate) fn key(mut self, name: Option<&str>) -> Self {
        self.headers.retain(|(header, _)| header != "x-api-key");
        match name {
            Some(name) => self.header("x-api-key", name),
            None => self,
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.text(body.to_string())
    }

    /// Sends text as JSON, even if it is not JSON.
    pub(crate) fn text(self, body: impl Into<String>) -> Self {
        self.header("content-type", "application/json").bytes(body.into())
    }

    /// Sends bytes without a media type.
    pub(crate) fn bytes(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends the request through a REST API, whose events have another format.
    pub(crate) fn by_rest_api(mut self) -> Self {
        self.gateway = Gateway::RestApi;
        self
    }

    /// Records this text instead of the body.
    pub(crate) fn shown(mut self, body: impl Into<String>) -> Self {
        self.shown_body = Some(body.into());
        self
    }
}

/// The exchanges of a scenario so far.
pub(crate) struct Recording {
    /// The app under test.
    pub(crate) test: TestApp,
    area: &'static str,
    lines: Vec<String>,
    names: BTreeSet<String>,
    /// Values that differ between runs, and their names.
    names_of_values: Vec<(String, String)>,
    /// Identifiers from requests, which are the same in every run.
    given: BTreeSet<String>,
}

impl Recording {
    /// Starts a scenario with only a project and a key.
    pub(crate) async fn start(area: &'static str) -> Self {
        let test = TestApp::start().await;
        let project = project(&test.app.store, test.project_id).await;
        let names_of_values = [
            (test.key.clone(), "<key>"),
            (KEY.to_owned(), "<scripted key>"),
            (project.id.to_string(), "<project>"),
            (project.ingest_id.to_string(), "<ingest id>"),
            (project.public_key.to_string(), "<public key>"),
        ];
        let names_of_values = names_of_values.map(|(text, name)| (text, name.to_owned())).into();
        let (lines, names, given) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        Self { test, area, lines, names, names_of_values, given }
    }

    /// Creates a key that requests send by `name`.
    pub(crate) async fn create_key(
        &mut self,
        name: &str,
        adjust: impl FnOnce(ApiKeyRecord) -> ApiKeyRecord,
    ) {
        let key = self.test.key_with(adjust).await;
        self.names_of_values.push((key, name.to_owned()));
    }

    /// Sends a request ten seconds after the previous one.
    pub(crate) async fn send(&mut self, name: &str, request: Request) -> Reply {
        self.test.pass(PAUSE);
        let reply = self.call_of(&request).send(&self.test.app).await;
        self.record(name, &request, &reply);
        reply
    }

    /// Sends requests that differ in one value.
    pub(crate) async fn send_all<T>(
        &mut self,
        requests: impl IntoIterator<Item = (&'static str, T)>,
        make: impl Fn(T) -> Request,
    ) {
        for (name, given) in requests {
            Box::pin(self.send(name, make(given))).await;
        }
    }

    /// Sends a request for each page of a list.
    pub(crate) async fn send_pages(&mut self, name: &str, list: &Request) {
        let mut page = self.send(&format!("{name}: page 1"), list.clone()).await;
        let mut number = 1;
        while let Value::String(next) = page.body["nextCursor"].take() {
            number += 1;
            let next = list.clone().query("cursor", next);
            page = self.send(&format!("{name}: page {number}"), next).await;
        }
    }

    /// Sends a request to a function with a scripted DynamoDB.
    pub(crate) async fn send_over(&mut self, script: Script, name: &str, request: Request) {
        let dynamodb = ScriptedDynamoDb::start(script).await;
        let (app, _) = app_over(&dynamodb.endpoint);
        let request = request.key(Some("<scripted key>"));
        let reply = self.call_of(&request).send(&app).await;
        self.record(name, &request, &reply);
    }

    /// Writes the recording if requested. Otherwise, compares it with the existing one.
    /// Panics if they differ.
    pub(crate) fn finish(self) {
        let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/responses/recorded"))
            .join(self.area)
            .with_extension("jsonl");
        let mut text = self.lines.join("\n");
        text.push('\n');
        if std::env::var_os(RECORD).is_some() {
            fs::write(&file, text).expect("the recording is written");
            return;
        }
        let recorded = fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{} cannot be read: {error}", file.display()));
        if recorded != text {
            let recorded: Vec<&str> = recorded.lines().collect();
            panic!("{}", differences(self.area, &recorded, &self.lines));
        }
    }

    /// Returns the call of the operation with the request's method and path in `openapi.yaml`.
    fn call_of(&self, request: &Request) -> Call {
        let path = self.with_values(&request.path);
        let (operation, path_template, parameters) = operation_at(request.method, &path);
        let body = match std::str::from_utf8(&request.body) {
            Ok(text) => self.with_values(text).into_bytes(),
            Err(_) => request.body.clone(),
        };
        let method = request.method.parse().unwrap();
        let call = Call::of(operation).method(method).path(path_template);
        let mut call = call.gateway(request.gateway).bytes(body);
        for (name, value) in parameters {
            call = call.parameter(name, value);
        }
        for (name, value) in &request.query {
            call = call.query(name, self.with_values(value));
        }
        for (name, value) in &request.headers {
            call = call.header(name, &self.with_values(value));
        }
        call
    }

    fn record(&mut self, name: &str, request: &Request, reply: &Reply) {
        assert!(self.names.insert(name.to_owned()), "two requests have the name {name:?}");
        let query: Vec<String> =
            request.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let headers = request.headers.iter().map(|(name, value)| format!("{name}: {value}"));
        let headers: Vec<String> = headers.collect();
        let body = request.shown_body.clone();
        let body = body.unwrap_or_else(|| String::from_utf8_lossy(&request.body).into_owned());
        let given = [&request.path, &body].map(String::as_str);
        for id in given.into_iter().chain(query.iter().map(String::as_str)).flat_map(ids_in) {
            if !self.names_of_values.iter().any(|(text, _)| text == id) {
                self.given.insert(id.to_lowercase());
            }
        }
        let query = self.with_names(&query.join("&"));
        let headers: Vec<String> = headers.iter().map(|header| self.with_names(header)).collect();
        let gateway = (request.gateway == Gateway::RestApi).then_some("REST API");
        // Values in a response are named before it is recorded.
        let response = self.name_values(reply);
        let response_headers = reply.headers.iter().map(|(name, value)| {
            (name.as_str(), self.with_names(value.to_str().expect("the header is text")))
        });
        let response_headers: BTreeMap<&str, String> = response_headers.collect();
        let fields = [
            ("name", json!(name)),
            ("method", json!(request.method)),
            ("path", json!(self.with_names(&request.path))),
            ("query", json!(query)),
            ("headers", json!(headers)),
            ("gateway", json!(gateway)),
            ("body", json!(shortened(self.with_names(&body)))),
            ("status", json!(reply.status)),
            ("responseHeaders", json!(response_headers)),
            ("response", json!(response)),
        ];
        let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
        let fields: Vec<String> =
            fields.map(|(name, value)| format!("\"{name}\":{value}")).collect();
        self.lines.push(format!("{{{}}}", fields.join(",")));
    }

    /// Names the values of a response that differ between runs, in order of appearance.
    fn name_values(&mut self, reply: &Reply) -> String {
        let etag = reply.headers.get("etag").and_then(|value| value.to_str().ok());
        let tag = etag.map(|etag| etag.trim_start_matches("W/").trim_matches('"'));
        // Versions are numbers. Other tags depend on the response, including its ids.
        if let Some(tag) = tag.filter(|tag| tag.parse::<u64>().is_err()) {
            self.name_next("etag", tag);
        }
        for id in ids_in(&reply.text) {
            if !self.given.contains(id) {
                self.name_next("id", id);
            }
        }
        if let Some(cursor) = reply.body["nextCursor"].as_str() {
            self.name_next("cursor", cursor);
        }
        self.with_names(&reply.text)
    }

    fn name_next(&mut self, kind: &str, text: &str) {
        if !self.names_of_values.iter().any(|(value, _)| value == text) {
            let start = format!("<{kind} ");
            let count =
                self.names_of_values.iter().filter(|(_, name)| name.starts_with(&start)).count();
            self.names_of_values.push((text.to_owned(), format!("{start}{}>", count + 1)));
        }
    }

    /// Replaces values that differ between runs with their names.
    fn with_names(&self, text: &str) -> String {
        let names = self.names_of_values.iter();
        names.fold(text.to_owned(), |text, (value, name)| text.replace(value, name))
    }

    /// Replaces names with their values.
    fn with_values(&self, text: &str) -> String {
        let names = self.names_of_values.iter();
        names.fold(text.to_owned(), |text, (value, name)| text.replace(name, value))
    }
}

/// Returns the operation at a path in `openapi.yaml`, and the path parameters. A preflight request
/// fits any operation of its path.
fn operation_at(
    method: &str,
    path: &str,
) -> (&'static Operation, &'static str, Vec<(&'static str, String)>) {
    let paths = OPENAPI["paths"].as_object().unwrap();
    for (template, item) in paths {
        let Some(parameters) = parameters(template, path) else { continue };
        for described in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let id = item[described.to_lowercase()]["operationId"].as_str();
            let Some(id) = id.filter(|_| method == described || method == "OPTIONS") else {
                continue;
            };
            // One function handles several paths.
            let found = OPERATIONS.iter().filter(|operation| id.starts_with(operation.name));
            let found = found.max_by_key(|operation| operation.name.len());
            let operation = found.unwrap_or_else(|| panic!("no function handles {id}"));
            return (operation, template, parameters);
        }
    }
    panic!("openapi.yaml has no {method} {path}");
}

fn parameters(template: &'static str, path: &str) -> Option<Vec<(&'static str, String)>> {
    let (names, values): (Vec<_>, Vec<_>) =
        (template.split('/').collect(), path.split('/').collect());
    if names.len() != values.len() {
        return None;
    }
    let mut parameters = Vec::new();
    for (name, value) in names.into_iter().zip(values) {
        match name.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) if !value.is_empty() => parameters.push((name, value.to_owned())),
            _ if name == value => {}
            _ => return None,
        }
    }
    Some(parameters)
}

/// Returns the version 7 UUIDs in a text, with or without hyphens.
fn ids_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !letter.is_ascii_hexdigit() && letter != '-');
    words.filter(|word| Uuid::try_parse(word).is_ok_and(|id| id.get_version_num() == 7))
}

fn shortened(body: String) -> String {
    let shown = body.chars().take(SHOWN_BYTES).collect::<String>();
    if shown == body { body } else { format!("{shown}… {} bytes in all", body.len()) }
}

/// Describes the first differences.
fn differences(area: &str, recorded: &[&str], now: &[String]) -> String {
    let pairs = (0..recorded.len().max(now.len())).map(|at| {
        let read = |line: &str| serde_json::from_str(line).expect("the recording is JSON");
        let line: Value = recorded.get(at).map_or(Value::Null, |line| read(line));
        (line, now.get(at).map_or(Value::Null, |line| read(line)))
    });
    let different: Vec<_> = pairs.filter(|(recorded, now)| recorded != now).collect();
    let mut report = format!(
        "{} of {} exchanges differ from recorded/{area}.jsonl, which has {}; if they should, run \
         this with {RECORD}=1. The first:",
        different.len(),
        now.len(),
        recorded.len()
    );
    for (recorded, now) in different.iter().take(SHOWN_DIFFERENCES) {
        let request = if now.is_null() { recorded } else { now };
        let _ =
            write!(report, "\n\n{}: {} {}", request["name"], request["method"], request["path"]);
        let fields = request.as_object().into_iter().flatten().map(|(field, _)| field);
        for field in fields.filter(|field| recorded[*field] != now[*field]) {
            let (recorded, now) = (&recorded[field], &now[field]);
            let _ = write!(report, "\n  {field}\n    recorded {recorded}\n    now      {now}");
        }
    }
    report
}
