//! Trying the bounds of one operation.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};
use tests::app::TestApp;
use tests::call::{Call, Reply};
use tests::operation_specs::OperationSpec;

use super::requests::{Visibility, changes, example};
use super::schemas::{Bound, Schema, Spot, bounds, is_valid, pointer, schemas_at};
use super::values::{Tries, Values};

/// Places that name something by an id of any form that is allowed, and how it is told that there is no
/// such thing: nothing is looked for before the form of all else was found to be right.
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

/// What came of it.
#[derive(Default)]
pub(super) struct Outcome {
    /// How many requests were sent on each side of a bound, by its operation and its place there.
    pub(super) sent: BTreeMap<(&'static str, String, String), [usize; 2]>,
    /// What should not be.
    pub(super) failures: BTreeMap<(&'static str, String, Side), Vec<String>>,
}

impl Outcome {
    /// Takes in what came of other operations.
    pub(super) fn merge(&mut self, other: Self) {
        self.sent.extend(other.sent);
        self.failures.extend(other.failures);
    }
}

/// What is tried of one operation: its body, or one of its parameters.
pub(super) struct Trial<'a> {
    described: &'a OperationSpec,
    values: &'a Values,
    /// What violations call it.
    root: String,
    schema: Schema,
    examples: Vec<&'static Value>,
    /// Where the parameter stands, and its name.
    parameter: Option<(&'static str, &'static str)>,
}

impl<'a> Trial<'a> {
    /// The trial of a body that has examples.
    pub(super) fn of_body(
        described: &'a OperationSpec,
        values: &'a Values,
        schema: Schema,
        examples: Vec<&'static Value>,
    ) -> Self {
        Self { described, values, root: String::new(), schema, examples, parameter: None }
    }

    /// The trial of a parameter.
    pub(super) fn of_parameter(
        described: &'a OperationSpec,
        values: &'a Values,
        parameter: &'static Value,
    ) -> Self {
        let text = |member: &str| parameter[member].as_str().expect("a parameter has it");
        let (place, name) = (text("in"), text("name"));
        let named = if place == "header" { name.to_lowercase() } else { name.to_owned() };
        let root = format!("{place}:{named}");
        let examples = parameter.get("example").into_iter().collect();
        let parameter = (Some((place, name)), &parameter["schema"]);
        Self { described, values, root, schema: parameter.1, examples, parameter: parameter.0 }
    }

    /// Tries every bound.
    pub(super) async fn run(&self, test: &TestApp, outcome: &mut Outcome) {
        let scene = Visibility::set(test, self.described, example(self.described), &[]).await;
        let source = if self.root.is_empty() { "body" } else { &self.root };
        for bound in bounds(self.schema, source) {
            // A parameter is text whatever it is.
            let is_text = bound.keyword == "type" && bound.limit == "string";
            if self.parameter.is_none() || !is_text {
                self.try_bound(&scene, &bound, outcome).await;
            }
        }
    }

    async fn try_bound(&self, scene: &Visibility<'_>, bound: &Bound, outcome: &mut Outcome) {
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
            let value = base.pointer(&here).expect("it was made to have it");
            let Tries { edge, beyond } = self.tries(bound, &base, value);
            let request = |new: &Value| {
                let mut request = base.clone();
                *request.pointer_mut(&here).expect("it has the place") = new.clone();
                request
            };
            // Of what is listed every value is tried, each where it fits.
            if tried[0].is_empty() || listed.is_some() {
                for new in edge.into_iter().filter(|new| !is_chosen || new == value) {
                    let request = request(&new);
                    if self.is_valid(&request) && !tried[0].contains(&new) {
                        let result = self.is_carried_out(scene, bound, request).await;
                        note(Side::Edge, result);
                        tried[0].push(new);
                    }
                }
            }
            if tried[1].is_empty() {
                for (new, below) in beyond {
                    let request = request(&new);
                    // The description says more of formats than their names do.
                    let is_beyond = bound.keyword == "format" || !self.is_valid(&request);
                    if self.can_be_sent(&request) && is_beyond {
                        let result = self.is_refused(scene, bound, request, below).await;
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

    /// Requests that have the place of a bound, and meet its conditions: an example, and examples with
    /// parts that are made. First come those whose other members go with one of the listed values.
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
            let made = values.make(&[schema], &spot);
            let from = spot.conditions.iter().map(|it| it.0).min();
            let grafted =
                made.as_ref().zip(like).map(|(made, like)| graft(like, made, &spot.path, from));
            grafted.filter(|it| is_valid(&[schema], it)).into_iter().chain(made)
        };
        let chosen = chosen.into_iter().flat_map(make).map(|base| (base, true));
        let others = [spot].into_iter().chain(alternatives).flat_map(make);
        chosen.chain(example.into_iter().chain(others).map(|base| (base, false)))
    }

    /// What to try at the place of a bound, where a request has a value.
    fn tries(&self, bound: &Bound, base: &Value, value: &Value) -> Tries {
        if !bound.spot.of_names {
            let flat = schemas_at(self.schema, base, &bound.spot.path);
            return self.values.tries(bound, &flat, value);
        }
        let schema: Schema = Box::leak(Box::new(json!({ bound.keyword: bound.limit })));
        let tries = self.values.tries(bound, &[schema], &Value::Null);
        let named = |name: &Value| json!({ name.as_str().expect("a name is text"): "" });
        let below = |name: &Value| name.as_str().map(str::to_owned);
        Tries {
            edge: tries.edge.iter().map(named).collect(),
            beyond: tries.beyond.iter().map(|(name, _)| (named(name), below(name))).collect(),
        }
    }

    async fn is_carried_out(
        &self,
        scene: &Visibility<'_>,
        bound: &Bound,
        mut request: Value,
    ) -> Result<(), String> {
        let path = &bound.spot.path;
        let mut attempts = 0;
        let reply = loop {
            let reply = if changes(self.described) {
                let body =
                    if self.parameter.is_none() { Some(&request) } else { example(self.described) };
                let scene = Visibility::set(scene.test, self.described, body, path).await;
                self.send(&scene, &mut request, path).await
            } else {
                self.send(scene, &mut request, path).await
            };
            attempts += 1;
            if reply.status != 503 || attempts == 10 {
                break reply;
            }
            // A busy machine may have no time for the largest requests.
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        let here = format!("{}{}", self.root, pointer(path));
        let is_missing = |(place, code): &(&str, &str)| {
            here == *place && (reply.code() == *code || reply.violations() == [(*place, *code)])
        };
        let is_carried_out = reply.status < 300 || NAMES.iter().any(is_missing);
        if is_carried_out { Ok(()) } else { Err(self.told("refused", &request, path, &reply)) }
    }

    async fn is_refused(
        &self,
        scene: &Visibility<'_>,
        bound: &Bound,
        mut request: Value,
        below: Option<String>,
    ) -> Result<(), String> {
        let reply = self.send(scene, &mut request, &bound.spot.path).await;
        let path: Vec<String> = bound.spot.path.iter().cloned().chain(below).collect();
        // A rule of several members is told where they are.
        let conditions = bound.spot.conditions.iter().map(|it| pointer(&path[..it.0]));
        let here = format!("{}{}", self.root, pointer(&path));
        let places: BTreeSet<String> = conditions.chain([here]).collect();
        let is_refused = match self.described.operation.protocol.name {
            "Waymark" => {
                reply.problem() == (400, "validation_failed")
                    && reply.violations().iter().any(|(place, _)| places.contains(*place))
            }
            "OFREP" => reply.status == 400 && reply.body["errorCode"].is_string(),
            _ => reply.status == 400 && reply.body["detail"].is_string(),
        };
        if is_refused { Ok(()) } else { Err(self.told("not refused", &request, &path, &reply)) }
    }

    async fn send(&self, scene: &Visibility<'_>, request: &mut Value, path: &[String]) -> Reply {
        let call = match self.parameter {
            None => {
                scene.settle(request, path);
                scene.call().json(request)
            }
            Some((place, name)) => {
                let call = self.with_example(scene);
                match place {
                    "path" => call.parameter(name, text(request)),
                    "query" => call.query(name, text(request)),
                    _ => call.header(&name.to_lowercase(), &text(request)),
                }
            }
        };
        scene.send(call).await
    }

    /// A call with a body, where there is to be one.
    fn with_example(&self, scene: &Visibility<'_>) -> Call {
        match example(self.described) {
            None => scene.call(),
            Some(Value::String(text)) => scene.call().bytes(text.as_str()),
            Some(example) => {
                let mut body = example.clone();
                scene.settle(&mut body, &[]);
                scene.call().json(&body)
            }
        }
    }

    fn told(&self, what: &str, request: &Value, path: &[String], reply: &Reply) -> String {
        let value = request.pointer(&pointer(path)).map(Value::to_string).unwrap_or_default();
        let short = |text: &str| text.chars().take(500).collect::<String>();
        let (id, root, here) = (self.described.id, &self.root, pointer(path));
        format!("{id}: {root}{here} is {what}: {}\n      {}", short(&value), short(&reply.text))
    }

    /// Whether a request can be sent, and is as the schema says.
    fn is_valid(&self, request: &Value) -> bool {
        let said = match self.parameter {
            Some(_) if self.schema["type"] != "string" => {
                // In a parameter numbers and the like are written as text.
                serde_json::from_str(&text(request)).unwrap_or_else(|_| request.clone())
            }
            Some(_) => json!(text(request)),
            None => request.clone(),
        };
        self.can_be_sent(request) && is_valid(&[self.schema], &said)
    }

    /// Whether HTTP can carry the request.
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

/// An example with a part of what was made: the first on the way to a place that the example lacks, or
/// the one after so many names.
fn graft(example: &Value, made: &Value, path: &[String], from: Option<usize>) -> Value {
    let (Some((name, rest)), false) = (path.split_first(), from == Some(0)) else {
        return made.clone();
    };
    let step = pointer(std::slice::from_ref(name));
    let part = made.pointer(&step).cloned().unwrap_or_default();
    let mut whole = example.clone();
    if let Some(known) = whole.pointer_mut(&step).filter(|known| !known.is_null()) {
        *known = graft(known, &part, rest, from.map(|depth| depth - 1));
        return whole;
    }
    match &mut whole {
        Value::Array(items) => items.push(part),
        Value::Object(members) => drop(members.insert(name.clone(), part)),
        _ => return made.clone(),
    }
    whole
}

/// A value as a parameter has it.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
