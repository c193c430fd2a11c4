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

/// The variable that asks for new recordings.
const RECORD: &str = "RECORD_ANSWERS";
/// How much time passes before each request: more than flags are remembered for.
const PAUSE: Duration = Duration::from_secs(10);
/// How many bytes of a request's body are recorded, and how many differences are shown.
const SHOWN_BYTES: usize = 1_500;
const SHOWN_DIFFERENCES: usize = 3;

/// How DynamoDB answers, by target and by how many requests of that target came before.
pub(crate) type Script = fn(&str, usize) -> ScriptedReply;

/// A request.
#[derive(Clone)]
pub(crate) struct Request {
    method: &'static str,
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// What the recording shows in place of a body that is not text.
    shown_body: Option<String>,
    gateway: Gateway,
}

/// A request by the key that may do everything.
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

    /// Sends another key, by its name, or none.
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

    /// Sends text that may not be JSON, as JSON.
    pub(crate) fn text(self, body: impl Into<String>) -> Self {
        self.header("content-type", "application/json").bytes(body.into())
    }

    /// Sends bytes of no media type.
    pub(crate) fn bytes(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Comes through a REST API, whose events have another form.
    pub(crate) fn by_rest_api(mut self) -> Self {
        self.gateway = Gateway::RestApi;
        self
    }

    /// Shows this in place of the body.
    pub(crate) fn shown(mut self, body: impl Into<String>) -> Self {
        self.shown_body = Some(body.into());
        self
    }
}

/// The exchanges of a scenario so far.
pub(crate) struct Recording {
    /// What answers.
    pub(crate) test: TestApp,
    field: &'static str,
    lines: Vec<String>,
    names: BTreeSet<String>,
    /// What differs from run to run, and what it is called.
    called: Vec<(String, String)>,
    /// Identifiers that came with requests: they are the same in every run.
    given: BTreeSet<String>,
}

impl Recording {
    /// Begins a scenario with nothing stored but a project and a key.
    pub(crate) async fn start(field: &'static str) -> Self {
        let test = TestApp::start().await;
        let project = project(&test.app.store, test.project_id).await;
        let called = [
            (test.key.clone(), "<key>"),
            (KEY.to_owned(), "<scripted key>"),
            (project.id.to_string(), "<project>"),
            (project.ingest_id.to_string(), "<ingest id>"),
            (project.public_key.to_string(), "<public key>"),
        ];
        let called = called.map(|(text, name)| (text, name.to_owned())).into();
        let (lines, names, given) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        Self { test, field, lines, names, called, given }
    }

    /// Makes a key, which requests send by `name`.
    pub(crate) async fn make_key(
        &mut self,
        name: &str,
        adjust: impl FnOnce(ApiKeyRecord) -> ApiKeyRecord,
    ) {
        let key = self.test.key_with(adjust).await;
        self.called.push((key, name.to_owned()));
    }

    /// Sends a request ten seconds after the one before.
    pub(crate) async fn send(&mut self, name: &str, request: Request) -> Reply {
        self.test.pass(PAUSE);
        let reply = self.call_of(&request).send(&self.test.app).await;
        self.record(name, &request, &reply);
        reply
    }

    /// Sends many requests that differ in one thing.
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

    /// Sends a request to a function whose DynamoDB answers from a script.
    pub(crate) async fn send_over(&mut self, script: Script, name: &str, request: Request) {
        let dynamodb = ScriptedDynamoDb::start(script).await;
        let (app, _) = app_over(&dynamodb.endpoint);
        let request = request.key(Some("<scripted key>"));
        let reply = self.call_of(&request).send(&app).await;
        self.record(name, &request, &reply);
    }

    /// Writes the recording if that is asked for, or else compares it with the one that is there.
    /// Panics where they differ.
    pub(crate) fn finish(self) {
        let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/answers/recorded"))
            .join(self.field)
            .with_extension("jsonl");
        let mut text = self.lines.join("\n");
        text.push('\n');
        if std::env::var_os(RECORD).is_some() {
            fs::write(&file, text).expect("a recording can be written");
            return;
        }
        let recorded = fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{} cannot be read: {error}", file.display()));
        if recorded != text {
            let recorded: Vec<&str> = recorded.lines().collect();
            panic!("{}", differences(self.field, &recorded, &self.lines));
        }
    }

    /// The call of the operation that `openapi.yaml` has at the request's method and path.
    fn call_of(&self, request: &Request) -> Call {
        let path = self.sent(&request.path);
        let (operation, path_template, parameters) = operation_at(request.method, &path);
        let body = match std::str::from_utf8(&request.body) {
            Ok(text) => self.sent(text).into_bytes(),
            Err(_) => request.body.clone(),
        };
        let method = request.method.parse().unwrap();
        let call = Call::of(operation).method(method).path(path_template);
        let mut call = call.gateway(request.gateway).bytes(body);
        for (name, value) in parameters {
            call = call.parameter(name, value);
        }
        for (name, value) in &request.query {
            call = call.query(name, self.sent(value));
        }
        for (name, value) in &request.headers {
            call = call.header(name, &self.sent(value));
        }
        call
    }

    fn record(&mut self, name: &str, request: &Request, reply: &Reply) {
        assert!(self.names.insert(name.to_owned()), "two requests are called {name:?}");
        let query: Vec<String> =
            request.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let headers = request.headers.iter().map(|(name, value)| format!("{name}: {value}"));
        let headers: Vec<String> = headers.collect();
        let body = request.shown_body.clone();
        let body = body.unwrap_or_else(|| String::from_utf8_lossy(&request.body).into_owned());
        let given = [&request.path, &body].map(String::as_str);
        for id in given.into_iter().chain(query.iter().map(String::as_str)).flat_map(ids_in) {
            if !self.called.iter().any(|(text, _)| text == id) {
                self.given.insert(id.to_lowercase());
            }
        }
        let query = self.named(&query.join("&"));
        let headers: Vec<String> = headers.iter().map(|header| self.named(header)).collect();
        let gateway = (request.gateway == Gateway::RestApi).then_some("REST API");
        // What an answer brings gets its name before the answer is written down.
        let answer = self.named_anew(reply);
        let answer_headers = reply.headers.iter().map(|(name, value)| {
            (name.as_str(), self.named(value.to_str().expect("a header is text")))
        });
        let answer_headers: BTreeMap<&str, String> = answer_headers.collect();
        let members = [
            ("name", json!(name)),
            ("method", json!(request.method)),
            ("path", json!(self.named(&request.path))),
            ("query", json!(query)),
            ("headers", json!(headers)),
            ("gateway", json!(gateway)),
            ("body", json!(shortened(self.named(&body)))),
            ("status", json!(reply.status)),
            ("answerHeaders", json!(answer_headers)),
            ("answer", json!(answer)),
        ];
        let members = members.into_iter().filter(|(_, value)| !value.is_null());
        let members: Vec<String> =
            members.map(|(name, value)| format!("\"{name}\":{value}")).collect();
        self.lines.push(format!("{{{}}}", members.join(",")));
    }

    /// Names what differs from run to run for the first time in an answer, in the order in which it
    /// stands there.
    fn named_anew(&mut self, reply: &Reply) -> String {
        let etag = reply.headers.get("etag").and_then(|value| value.to_str().ok());
        let tag = etag.map(|etag| etag.trim_start_matches("W/").trim_matches('"'));
        // A version is a number; any other tag is made of the answer, its ids included.
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
        self.named(&reply.text)
    }

    fn name_next(&mut self, kind: &str, text: &str) {
        if !self.called.iter().any(|(called, _)| called == text) {
            let start = format!("<{kind} ");
            let count = self.called.iter().filter(|(_, name)| name.starts_with(&start)).count();
            self.called.push((text.to_owned(), format!("{start}{}>", count + 1)));
        }
    }

    /// Text with names in place of what differs from run to run.
    fn named(&self, text: &str) -> String {
        let called = self.called.iter();
        called.fold(text.to_owned(), |text, (called, name)| text.replace(called, name))
    }

    /// Text with what it is in place of its name.
    fn sent(&self, text: &str) -> String {
        let called = self.called.iter();
        called.fold(text.to_owned(), |text, (called, name)| text.replace(name, called))
    }
}

/// The operation that `openapi.yaml` has at a path, and the parameters of the path. A preflight
/// request goes to any operation of its path.
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
            // One function answers at several paths.
            let found = OPERATIONS.iter().filter(|operation| id.starts_with(operation.name));
            let found = found.max_by_key(|operation| operation.name.len());
            let operation = found.unwrap_or_else(|| panic!("no function answers {id}"));
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

/// The UUIDs of version 7 in a text, with hyphens or without.
fn ids_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !letter.is_ascii_hexdigit() && letter != '-');
    words.filter(|word| Uuid::try_parse(word).is_ok_and(|id| id.get_version_num() == 7))
}

fn shortened(body: String) -> String {
    let shown = body.chars().take(SHOWN_BYTES).collect::<String>();
    if shown == body { body } else { format!("{shown}… {} bytes in all", body.len()) }
}

/// What differs first, for whoever reads it.
fn differences(field: &str, recorded: &[&str], now: &[String]) -> String {
    let pairs = (0..recorded.len().max(now.len())).map(|at| {
        let read = |line: &str| serde_json::from_str(line).expect("a recording is JSON");
        let line: Value = recorded.get(at).map_or(Value::Null, |line| read(line));
        (line, now.get(at).map_or(Value::Null, |line| read(line)))
    });
    let different: Vec<_> = pairs.filter(|(recorded, now)| recorded != now).collect();
    let mut report = format!(
        "{} of {} exchanges differ from recorded/{field}.jsonl, which has {}; if they should, run \
         this with {RECORD}=1. The first:",
        different.len(),
        now.len(),
        recorded.len()
    );
    for (recorded, now) in different.iter().take(SHOWN_DIFFERENCES) {
        let request = if now.is_null() { recorded } else { now };
        let _ =
            write!(report, "\n\n{}: {} {}", request["name"], request["method"], request["path"]);
        let members = request.as_object().into_iter().flatten().map(|(member, _)| member);
        for member in members.filter(|member| recorded[*member] != now[*member]) {
            let (recorded, now) = (&recorded[member], &now[member]);
            let _ = write!(report, "\n  {member}\n    recorded {recorded}\n    now      {now}");
        }
    }
    report
}
