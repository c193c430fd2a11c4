//! Tests the bounds of one operation.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use tests::app::TestApp;
use tests::call::{Call, Reply};
use tests::operation_specs::OperationSpec;

use super::requests::{Fixture, changes, example};
use super::schemas::{Bound, Schema, Spot, bounds, is_valid, pointer, schemas_at};
use super::values::{Tries, Values};

/// Places that name a resource by a valid id of any form, and the response if it does not exist.
/// Resources are looked up only after all other input is valid.
const NAMES: [(&str, &str); 6] = [
    ("/code", "invalid_value"),
    ("/projectId", "project_not_found"),
    ("/projectIds/0", "project_not_found"),
    ("path:insightId", "insight_not_found"),
    ("/into", "unknown_insight"),
    ("/restoreVersion", "unknown_version"),
];

/// A side of a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Edge,
    Beyond,
}

/// The results of trials.
#[derive(Default)]
pub(super) struct Outcome {
    /// Number of requests on each side of a bound, by operation, bound and place.
    pub(super) sent: BTreeMap<(&'static str, String, String), [usize; 2]>,
    /// Unexpected results.
    pub(super) failures: BTreeMap<(&'static str, String, Side), Vec<String>>,
}

impl Outcome {
    /// Adds the results of other operations.
    pub(super) fn merge(&mut self, other: Self) {
        self.sent.extend(other.sent);
        self.failures.extend(other.failures);
    }
}

/// The tested part of an operation: its body, or one of its parameters.
pub(super) struct Trial<'a> {
    described: &'a OperationSpec,
    values: &'a Values,
    /// The root pointer in violations.
    root: String,
    schema: Schema,
    examples: Vec<&'static Value>,
    /// Location and name of the parameter.
    parameter: Option<(&'static str, &'static str)>,
}

impl<'a> Trial<'a> {
    /// Returns the trial of a body with examples.
    pub(super) fn of_body(
        described: &'a OperationSpec,
        values: &'a Values,
        schema: Schema,
        examples: Vec<&'static Value>,
    ) -> Self {
        Self { described, values, root: String::new(), schema, examples, parameter: None }
    }

    /// Returns the trial of a parameter.
    pub(super) fn of_parameter(
        described: &'a OperationSpec,
        values: &'a Values,
        parameter: &'static Value,
    ) -> Self {
        let text = |field: &str| parameter[field].as_str().expect("the parameter has the field");
        let (place, name) = (text("in"), text("name"));
        let named = if place == "header" { name.to_lowercase() } else { name.to_owned() };
        let root = format!("{place}:{named}");
        let examples = parameter.get("example").into_iter().collect();
        let parameter = (Some((place, name)), &parameter["schema"]);
        Self { described, values, root, schema: parameter.1, examples, parameter: parameter.0 }
    }

    /// Tests every bound.
    pub(super) async fn run(&self, test: &TestApp, outcome: &mut Outcome) {
        let fixture = Fixture::set(test, self.described, example(self.described), &[]).await;
        let source = if self.root.is_empty() { "body" } else { &self.root };
        for bound in bounds(self.schema, source) {
            // Parameters are always text.
            let is_text = bound.keyword == "type" && bound.limit == "string";
            if self.parameter.is_none() || !is_text {
                self.test_bound(&fixture, &bound, outcome).await;
            }
        }
    }

    async fn test_bound(&self, fixture: &Fixture<'_>, bound: &Bound, outcome: &mut Outcome) {
        let here = pointer(&bound.spot.path);
        let place = format!("{}{here}", self.root);
        let listed = bound.limit.as_array().filter(|_| bound.keyword == "enum");
        let mut tried: [Vec<Value>; 2] = Default::default();
        let id = self.described.id;
        let mut note = |side: Side, result: Result<(), String>| {
            let key = (id, bound.source.clone(), side);
            outcome.failures.entry(key).or_default().extend(result.err());
        };
        for (base, is_chosen) in self.bases(bound) {
            let value = base.pointer(&here).expect("the base has the place");
            let Tries { edge, beyond } = self.tries(bound, &base, value);
            let request = |new: &Value| {
                let mut request = base.clone();
                *request.pointer_mut(&here).expect("the request has the place") = new.clone();
                request
            };
            // All values of a list are tested, each in a base that fits.
            if tried[0].is_empty() || listed.is_some() {
                for new in edge.into_iter().filter(|new| !is_chosen || new == value) {
                    let request = request(&new);
                    if self.is_valid(&request) && !tried[0].contains(&new) {
                        let result = self.check_succeeds(fixture, bound, request).await;
                        note(Side::Edge, result);
                        tried[0].push(new);
                    }
                }
            }
            if tried[1].is_empty() {
                for (new, below) in beyond {
                    let request = request(&new);
                    // Descriptions restrict formats more than their names.
                    let is_beyond = bound.keyword == "format" || !self.is_valid(&request);
                    if self.can_be_sent(&request) && is_beyond {
                        let result = self.check_rejected(fixture, bound, request, below).await;
                        note(Side::Beyond, result);
                        tried[1].push(new);
                    }
                }
            }
            let missing = listed.into_iter().flatten().find(|value| !tried[0].contains(value));
            if !tried.iter().any(Vec::is_empty) && missing.is_none() {
                break;
            }
        }
        for (tried, side) in tried.iter().zip([Side::Edge, Side::Beyond]) {
            if tried.is_empty() {
                note(side, Err(format!("{id}: no value for {place}")));
            }
        }
        for value in listed.into_iter().flatten().filter(|value| !tried[0].contains(value)) {
            note(Side::Edge, Err(format!("{id}: no request has {value} at {place}")));
        }
        // The cases of a condition count as one.
        let sent = outcome.sent.entry((id, bound.source.clone(), place)).or_default();
        *sent = [sent[0] + tried[0].len(), sent[1] + tried[1].len()];
    }

    /// Returns requests with the place of a bound that meet its conditions: an example, and
    /// examples with generated parts. Bases that fit one of the listed values come first.
    fn bases(&self, bound: &Bound) -> impl Iterator<Item = (Value, bool)> + use<'a> {
        let spot = bound.spot.clone();
        let here = pointer(&spot.path);
        let has = |example: &&&Value| example.pointer(&here).is_some_and(|it| !it.is_null());
        let example = self.examples.iter().find(has).filter(|_| spot.conditions.is_empty());
        let example = example.map(|example| (*example).clone());
        let listed = bound.limit.as_array().filter(|_| bound.keyword == "enum");
        let chosen = listed.into_iter().flatten().filter_map(|value| {
            let (name, above) = spot.path.split_last()?;
            let condition = json!({"properties": {name: {"const": value}}});
            Some(spot.when((above.len(), Box::leak(Box::new(condition)))))
        });
        let chosen: Vec<Spot> = chosen.collect();
        let alternatives: Vec<Spot> = spot.alternatives.iter().map(|it| spot.when(*it)).collect();

        let (schema, like, values) = (self.schema, self.examples.last().copied(), self.values);
        let make = move |spot: Spot| {
            let generated = values.make(&[schema], &spot);
            let from = spot.conditions.iter().map(|it| it.0).min();
            let grafted = generated
                .as_ref()
                .zip(like)
                .map(|(generated, like)| graft(like, generated, &spot.path, from));
            grafted.filter(|it| is_valid(&[schema], it)).into_iter().chain(generated)
        };
        let chosen = chosen.into_iter().flat_map(make).map(|base| (base, true));
        let others = [spot].into_iter().chain(alternatives).flat_map(make);
        chosen.chain(example.into_iter().chain(others).map(|base| (base, false)))
    }

    /// Returns the values to test at the place of a bound that has a value.
    fn tries(&self, bound: &Bound, base: &Value, value: &Value) -> Tries {
        if !bound.spot.of_names {
            let flat = schemas_at(self.schema, base, &bound.spot.path);
            return self.values.tries(bound, &flat, value);
        }
        let schema: Schema = Box::leak(Box::new(json!({ bound.keyword: bound.limit })));
        let tries = self.values.tries(bound, &[schema], &Value::Null);
        let named = |name: &Value| json!({ name.as_str().expect("the name is text"): "" });
        let below = |name: &Value| name.as_str().map(str::to_owned);
        Tries {
            edge: tries.edge.iter().map(named).collect(),
            beyond: tries.beyond.iter().map(|(name, _)| (named(name), below(name))).collect(),
        }
    }

    async fn check_succeeds(
        &self,
        fixture: &Fixture<'_>,
        bound: &Bound,
        mut request: Value,
    ) -> Result<(), String> {
        let path = &bound.spot.path;
        let mut attempts = 0;
        let reply = loop {
            let reply = if changes(self.described) {
                let body =
                    if self.parameter.is_none() { Some(&request) } else { example(self.described) };
                let fixture = Fixture::set(fixture.test, self.described, body, path).await;
                self.send(&fixture, &mut request, path).await
            } else {
                self.send(fixture, &mut request, path).await
            };
            attempts += 1;
            if reply.status != 503 || attempts == 10 {
                break reply;
            }
            // A busy machine can be too slow for the largest requests.
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        let here = format!("{}{}", self.root, pointer(path));
        let is_missing = |(place, code): &(&str, &str)| {
            here == *place && (reply.code() == *code || reply.violations() == [(*place, *code)])
        };
        let is_success = reply.status < 300 || NAMES.iter().any(is_missing);
        if is_success { Ok(()) } else { Err(self.describe("rejected", &request, path, &reply)) }
    }

    async fn check_rejected(
        &self,
        fixture: &Fixture<'_>,
        bound: &Bound,
        mut request: Value,
        below: Option<String>,
    ) -> Result<(), String> {
        let reply = self.send(fixture, &mut request, &bound.spot.path).await;
        let path: Vec<String> = bound.spot.path.iter().cloned().chain(below).collect();
        // A rule about several fields is reported at their places.
        let conditions = bound.spot.conditions.iter().map(|it| pointer(&path[..it.0]));
        let here = format!("{}{}", self.root, pointer(&path));
        let places: BTreeSet<String> = conditions.chain([here]).collect();
        let is_rejected = match self.described.operation.protocol.name {
            "Waymark" => {
                reply.problem() == (400, "validation_failed")
                    && reply.violations().iter().any(|(place, _)| places.contains(*place))
            }
            "OFREP" => reply.status == 400 && reply.body["errorCode"].is_string(),
            _ => reply.status == 400 && reply.body["detail"].is_string(),
        };
        if is_rejected {
            Ok(())
        } else {
            Err(self.describe("not rejected", &request, &path, &reply))
        }
    }

    async fn send(&self, fixture: &Fixture<'_>, request: &mut Value, path: &[String]) -> Reply {
        let call = match self.parameter {
            None => {
                fixture.settle(request, path);
                fixture.call().json(request)
            }
            Some((place, name)) => {
                let call = self.with_example(fixture);
                match place {
                    "path" => call.parameter(name, text(request)),
                    "query" => call.query(name, text(request)),
                    _ => call.header(&name.to_lowercase(), &text(request)),
                }
            }
        };
        fixture.send(call).await
    }

    /// Returns a call with an example body, if the operation has one.
    fn with_example(&self, fixture: &Fixture<'_>) -> Call {
        match example(self.described) {
            None => fixture.call(),
            Some(Value::String(text)) => fixture.call().bytes(text.as_str()),
            Some(example) => {
                let mut body = example.clone();
                fixture.settle(&mut body, &[]);
                fixture.call().json(&body)
            }
        }
    }

    fn describe(&self, what: &str, request: &Value, path: &[String], reply: &Reply) -> String {
        let value = request.pointer(&pointer(path)).map(Value::to_string).unwrap_or_default();
        let short = |text: &str| text.chars().take(500).collect::<String>();
        let (id, root, here) = (self.described.id, &self.root, pointer(path));
        format!("{id}: {root}{here} is {what}: {}\n      {}", short(&value), short(&reply.text))
    }

    /// `true` if a request can be sent and fits the schema.
    fn is_valid(&self, request: &Value) -> bool {
        let parsed = match self.parameter {
            Some(_) if self.schema["type"] != "string" => {
                // Parameters contain numbers and similar values as text.
                serde_json::from_str(&text(request)).unwrap_or_else(|_| request.clone())
            }
            Some(_) => json!(text(request)),
            None => request.clone(),
        };
        self.can_be_sent(request) && is_valid(&[self.schema], &parsed)
    }

    /// `true` if HTTP can transport the request.
    fn can_be_sent(&self, request: &Value) -> bool {
        let is_text = !matches!(request, Value::Null | Value::Array(_) | Value::Object(_));
        let text = text(request);
        match self.parameter {
            None => true,
            Some(("header", _)) => is_text && !text.contains(char::is_control),
            Some(("path", _)) => is_text && !text.is_empty() && !text.contains('/'),
            Some(_) => is_text,
        }
    }
}

/// Replaces a part of an example with a generated one: the first part on the path that the example
/// lacks, or the part at depth `from`.
fn graft(example: &Value, generated: &Value, path: &[String], from: Option<usize>) -> Value {
    let (Some((name, rest)), false) = (path.split_first(), from == Some(0)) else {
        return generated.clone();
    };
    let step = pointer(std::slice::from_ref(name));
    let part = generated.pointer(&step).cloned().unwrap_or_default();
    let mut whole = example.clone();
    if let Some(known) = whole.pointer_mut(&step).filter(|known| !known.is_null()) {
        *known = graft(known, &part, rest, from.map(|depth| depth - 1));
        return whole;
    }
    match &mut whole {
        Value::Array(items) => items.push(part),
        Value::Object(fields) => drop(fields.insert(name.clone(), part)),
        _ => return generated.clone(),
    }
    whole
}

/// Returns a value in the form of a parameter.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
