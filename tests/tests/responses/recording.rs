//! Exchanges as lines of a recording, and their replay.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use shared::app::Operation;
use tests::app::{TestApp, app_over};
use tests::call::{Call, Gateway, Reply};
use tests::contract::OPENAPI;
use tests::errors::project;
use tests::operations::OPERATIONS;
use tests::scripted::{KEY, ScriptedDynamoDb};

use crate::steps;

/// Environment variable that requests new recordings.
const RECORD: &str = "RECORD_RESPONSES";
/// Time before each request: longer than flags are cached.
const PAUSE: Duration = Duration::from_secs(10);
/// Maximum number of shown differences.
const SHOWN_DIFFERENCES: usize = 3;

/// A line of a recording.
#[derive(Deserialize, Serialize, PartialEq, Clone)]
#[serde(untagged)]
enum Line {
    Step(Step),
    Text(SharedText),
    Exchange(Exchange),
}

#[derive(Deserialize, Serialize, PartialEq, Clone)]
#[serde(deny_unknown_fields)]
struct Step {
    step: String,
}

/// A text that requests contain by its name.
#[derive(Deserialize, Serialize, PartialEq, Clone)]
#[serde(deny_unknown_fields)]
struct SharedText {
    named: String,
    text: String,
}

/// A request and its response.
#[derive(Deserialize, Serialize, PartialEq, Clone)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Exchange {
    name: String,
    method: String,
    path: String,
    /// `name=value`, decoded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    query: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<String>,
    /// `true` if the request comes through a REST API, whose events have another format.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    rest_api: bool,
    /// The scripted DynamoDB of the function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dynamodb: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    body: String,
    /// A body that is not text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    base64: String,
    #[serde(default)]
    status: u16,
    #[serde(default)]
    response_headers: BTreeMap<String, String>,
    #[serde(default)]
    response: String,
}

/// A scenario during its replay.
struct Replay {
    test: TestApp,
    /// Values that differ between runs, and texts that requests share, with their names.
    names_of_values: Vec<(String, String)>,
    /// Identifiers from requests, which are the same in every run.
    given: BTreeSet<String>,
}

/// Replays a scenario. Panics if a response differs from the recorded one, unless new recordings
/// are requested.
pub(crate) async fn replay(area: &str) {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/responses/recorded"));
    let file = folder.join(area).with_extension("jsonl");
    let text = fs::read_to_string(&file).expect("there is a recording");
    let recorded = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}")));
    let recorded: Vec<Line> = recorded.collect();
    let mut replay = Replay::start().await;
    let (mut now, mut names) = (recorded.clone(), BTreeSet::new());
    for line in &mut now {
        match line {
            Line::Step(Step { step }) => steps::take(&replay.test, step).await,
            Line::Text(SharedText { named, text }) => {
                replay.names_of_values.push((text.clone(), named.clone()));
            }
            Line::Exchange(exchange) => {
                let name = &exchange.name;
                assert!(names.insert(name.clone()), "two requests have the name {name:?}");
                replay.send(exchange).await;
            }
        }
    }
    if std::env::var_os(RECORD).is_some() {
        let lines = now.iter().map(|line| serde_json::to_string(line).unwrap() + "\n");
        fs::write(&file, lines.collect::<String>()).expect("the recording is written");
    } else if recorded != now {
        panic!("{}", differences(area, &recorded, &now));
    }
}

impl Replay {
    /// Starts a scenario with only projects and keys.
    async fn start() -> Self {
        let test = TestApp::start().await;
        let project = project(&test.app.store, test.project_id).await;
        let mut names_of_values = steps::create_keys(&test).await;
        names_of_values.extend([
            (KEY.to_owned(), "<scripted key>"),
            (project.id.to_string(), "<project>"),
            (project.ingest_id.to_string(), "<ingest id>"),
            (project.public_key.to_string(), "<public key>"),
        ]);
        let named = |(value, name): (String, &str)| (value, name.to_owned());
        let names_of_values = names_of_values.into_iter().map(named).collect();
        Self { test, names_of_values, given: BTreeSet::new() }
    }

    /// Sends a request ten seconds after the previous one, and records its response.
    async fn send(&mut self, exchange: &mut Exchange) {
        let call = self.call_of(exchange);
        let reply = if let Some(name) = &exchange.dynamodb {
            let dynamodb = ScriptedDynamoDb::start(steps::script(name)).await;
            call.send(&app_over(&dynamodb.endpoint).0).await
        } else {
            self.test.pass(PAUSE);
            call.send(&self.test.app).await
        };
        let given = exchange.query.iter().cloned();
        let given = given.chain([exchange.path.clone(), repeated(&exchange.body)]);
        self.given.extend(
            given.flat_map(|text| ids_in(&text).map(str::to_lowercase).collect::<Vec<_>>()),
        );
        // Values in a response are named before it is recorded.
        exchange.response = self.name_values(&reply);
        exchange.status = reply.status;
        let headers = reply.headers.iter().map(|(name, value)| {
            let value = value.to_str().expect("the header is text");
            (name.to_string(), self.with_names(value))
        });
        exchange.response_headers = headers.collect();
    }

    /// Returns the call of the operation with the request's method and path in `openapi.yaml`.
    fn call_of(&self, exchange: &Exchange) -> Call {
        let path = self.with_values(&exchange.path);
        let (operation, template, parameters) = operation_at(&exchange.method, &path);
        let body = match &*exchange.base64 {
            "" => self.with_values(&repeated(&exchange.body)).into_bytes(),
            encoded => BASE64.decode(encoded).expect("the body is base64"),
        };
        let gateway = if exchange.rest_api { Gateway::RestApi } else { Gateway::HttpApi };
        let method = exchange.method.parse().unwrap();
        let mut call = Call::of(operation).method(method).path(template).gateway(gateway);
        for (name, value) in parameters {
            call = call.parameter(name, value);
        }
        for parameter in &exchange.query {
            let (name, value) = parameter.split_once('=').expect("a parameter has a value");
            call = call.query(name, self.with_values(value));
        }
        for header in &exchange.headers {
            let (name, value) = header.split_once(": ").expect("a header has a value");
            call = call.header(name, &self.with_values(value));
        }
        call.bytes(body)
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

/// Repeats the texts in `«3×a»`.
fn repeated(body: &str) -> String {
    let mut parts = body.split('«');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (repetition, rest) = part.split_once('»').expect("a repetition ends");
        let (times, unit) = repetition.split_once('×').expect("a repetition has a number");
        let times = times.parse().unwrap();
        if unit.contains('№') {
            let numbers = 0..times;
            text.extend(numbers.map(|number| unit.replace('№', &format!("{number:04}"))));
        } else {
            text.push_str(&unit.repeat(times));
        }
        text.push_str(rest);
    }
    text
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

/// Describes the first differences.
fn differences(area: &str, recorded: &[Line], now: &[Line]) -> String {
    let pairs = recorded.iter().zip(now).filter(|(recorded, now)| recorded != now);
    let value = |line: &Line| serde_json::to_value(line).expect("a line is JSON");
    let different: Vec<(Value, Value)> =
        pairs.map(|(recorded, now)| (value(recorded), value(now))).collect();
    let mut report = format!(
        "{} of {} lines differ from recorded/{area}.jsonl; if they should, run this with \
         {RECORD}=1. The first:",
        different.len(),
        now.len(),
    );
    for (recorded, now) in different.iter().take(SHOWN_DIFFERENCES) {
        let _ = write!(report, "\n\n{}: {} {}", now["name"], now["method"], now["path"]);
        for field in ["status", "responseHeaders", "response"] {
            let (recorded, now) = (&recorded[field], &now[field]);
            if recorded != now {
                let _ = write!(report, "\n  {field}\n    recorded {recorded}\n    now      {now}");
            }
        }
    }
    report
}
