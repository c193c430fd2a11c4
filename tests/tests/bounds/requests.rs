//! Requests that are carried out, and what they need to be there.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use lambda_http::http::Method;
use local::demo;
use serde_json::{Map, Value, json};
use tests::app::TestApp;
use tests::call::{Call, Reply};
use tests::contract::resolve;
use tests::errors::{SentEvent, project};
use tests::insights::upload;
use tests::operation_specs::{OperationSpec, operation_of};

use super::schemas::{Schema, pointer};

/// Whether an operation changes what later requests find.
pub(super) fn changes(described: &OperationSpec) -> bool {
    described.method != Method::GET
        && described.path.contains("{idOrSlug}")
        && !described.path.contains("/ofrep/")
        && !described.path.ends_with("/query")
}

/// A body that an operation takes, where it takes any: text, or JSON.
pub(super) fn example(described: &OperationSpec) -> Option<&'static Value> {
    described.contents.iter().find_map(|(_, content)| examples(content).first().copied())
}

fn examples(content: &'static Value) -> Vec<&'static Value> {
    let examples = content["examples"].as_object().into_iter().flatten();
    examples.map(|(_, example)| &resolve(example)["value"]).collect()
}

/// The schemas and the examples of an operation's body, where that is JSON; one that is the same for two media
/// types once.
pub(super) fn bodies(described: &OperationSpec) -> Vec<(Schema, Vec<&'static Value>)> {
    let mut bodies: Vec<(Schema, Vec<&'static Value>)> = Vec::new();
    let json = described.contents.iter().filter(|(media_type, _)| media_type.ends_with("json"));
    for (_, content) in json {
        let schema = &content["schema"];
        if !bodies.iter().any(|(known, _)| *known == schema) {
            bodies.push((schema, examples(content)));
        }
    }
    bodies
}

/// How many projects were made.
static PROJECTS: AtomicUsize = AtomicUsize::new(0);

/// A project with all that an operation needs to carry out a request.
pub(super) struct Visibility<'t> {
    /// The app that answers.
    pub(super) test: &'t TestApp,
    slug: String,
    call: Call,
    other_insight: Option<String>,
}

impl<'t> Visibility<'t> {
    /// Makes a new project, and in it what the operation looks for with a body of which this place is
    /// tried.
    pub(super) async fn set(
        test: &'t TestApp,
        described: &OperationSpec,
        body: Option<&Value>,
        tried: &[String],
    ) -> Self {
        let body = body.unwrap_or(&Value::Null);
        let slug = format!("shop-{}", PROJECTS.fetch_add(1, Ordering::Relaxed));
        let id = demo::ensure_project(&test.app.store, &slug, "Shop").await.unwrap();
        let path = described.path;
        let call = described.call();
        let mut scene = Self { test, slug, call, other_insight: None };
        if path.contains("{idOrSlug}") {
            scene.call = scene.call.parameter("idOrSlug", &scene.slug);
        }
        if path.contains("{ingestId}") {
            let project = project(&test.app.store, id).await;
            scene.call = scene.call.parameter("ingestId", project.ingest_id);
            scene.call = scene.call.query("sentry_key", project.public_key);
            return scene;
        }
        scene.call = scene.call.key(&test.key);
        if path.contains("/segments/{key}") {
            scene.create_segment("the-segment").await;
            scene.call = scene.call.parameter("key", "the-segment");
        } else if path.contains("{key}") {
            // It names no variant, so that it can have any others.
            let nothing = json!({"variant": null, "rollout": []});
            let members = json!({"offVariant": null, "fallthrough": nothing});
            scene.create_flag("the-flag", &members).await;
            scene.call = scene.call.parameter("key", "the-flag");
        }
        let wanted = body["prerequisites"].as_array().filter(|_| names_prerequisites(tried));
        for wanted in wanted.into_iter().flatten() {
            if let (Some(key), Some(variant)) =
                (wanted["flagKey"].as_str(), wanted["variant"].as_str())
            {
                let variants = json!([{"key": variant, "value": ""}]);
                scene.create_flag(key, &json!({ "variants": variants })).await;
            }
        }
        for key in named_segments(body) {
            scene.create_segment(key).await;
        }
        if path.contains("{insightId}") {
            let insight = scene.create_insight(&body["painPointIds"]).await;
            scene.call = scene.call.parameter("insightId", insight);
        }
        if body.get("into").is_some() {
            let body = json!({"title": "Other", "painPoints": upload(1..2)["painPoints"]});
            let reply = scene.create("create-insight", &[], &body).await;
            scene.other_insight = reply.body["id"].as_str().map(str::to_owned);
        }
        if path.contains("{collectionId}") {
            let name = json!({"name": "Releases"});
            let reply = scene.create("create-event-marker-collection", &[], &name).await;
            scene.call = scene.call.parameter("collectionId", reply.body["id"].as_str().unwrap());
        }
        if path.contains("{errorId}") {
            let project = project(&test.app.store, id).await;
            let delivery = Call::of(operation_of("ingest-error-events").operation);
            let delivery = delivery.parameter("ingestId", project.ingest_id);
            scene.report(delivery.query("sentry_key", project.public_key)).await;
        }
        scene
    }

    /// Sends a call.
    pub(super) async fn send(&self, call: Call) -> Reply {
        call.send(&self.test.app).await
    }

    /// The call, without a body.
    pub(super) fn call(&self) -> Call {
        self.call.clone()
    }

    /// Makes a body one that the operation can carry out here, but for the given place, which is tried.
    pub(super) fn settle(&self, body: &mut Value, path: &[String]) {
        let tried = pointer(path);
        let is_another = |place: &str| tried != place;
        if let Some(id) =
            body.pointer_mut("/projectId").filter(|it| it.is_string() && is_another("/projectId"))
        {
            *id = json!(self.slug);
        }
        let projects = body.pointer_mut("/projectIds").and_then(Value::as_array_mut);
        for (at, id) in projects.into_iter().flatten().enumerate() {
            if id.is_string() && is_another(&format!("/projectIds/{at}")) {
                *id = json!(self.slug);
            }
        }
        if let (Some(into), Some(id)) = (body.pointer_mut("/into"), &self.other_insight)
            && is_another("/into")
        {
            *into = json!(id);
        }
        let Some(members) = body.as_object_mut() else { return };
        match tried.as_str() {
            // Whatever it is, the range goes up to it.
            "/to" => drop(members.remove("from")),
            // Of a category that the request does not name, it may have any operator.
            "/currentFilters/0/operator" => {
                members["currentFilters"][0]["categoryId"] = json!("größe");
            }
            // Another preference may be of the same type.
            "/preferences/0/type" => members["preferences"].as_array_mut().unwrap().truncate(1),
            _ => {}
        }
        if !names_prerequisites(path) {
            members.remove("prerequisites");
        }
        settle_variants(members, &tried);
    }

    async fn create(&self, operation: &str, parameters: &[(&str, &str)], body: &Value) -> Reply {
        let call = Call::of(operation_of(operation).operation)
            .parameter("idOrSlug", &self.slug)
            .key(&self.test.key);
        let call = parameters.iter().fold(call, |call, (name, value)| call.parameter(name, value));
        let reply = self.send(call.json(body)).await;
        assert!(reply.status < 300, "{operation}: {}", reply.text);
        reply
    }

    async fn create_flag(&self, key: &str, members: &Value) {
        let mut flag = json!({"key": key, "name": "Flag", "type": "string"});
        flag.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        self.create("create-feature-flag", &[], &flag).await;
    }

    async fn create_segment(&self, key: &str) {
        let conditions = json!([{"attribute": "plan", "operator": "exists"}]);
        let segment = json!({"key": key, "name": "Segment", "conditions": conditions});
        self.create("create-segment", &[], &segment).await;
    }

    /// An insight that has pain points of these ids, and one more.
    async fn create_insight(&self, ids: &Value) -> String {
        let body = json!({"title": "Insight", "painPoints": upload(0..1)["painPoints"]});
        let reply = self.create("create-insight", &[], &body).await;
        let insight = reply.body["id"].as_str().unwrap().to_owned();
        let ids = ids.as_array().into_iter().flatten().filter_map(Value::as_str);
        let ids: Vec<String> =
            ids.map(str::to_lowercase).collect::<BTreeSet<_>>().into_iter().collect();
        let mut points = upload(2..2 + ids.len());
        let points = points["painPoints"].as_array_mut().unwrap();
        points.iter_mut().zip(&ids).for_each(|(point, id)| point["id"] = json!(id));
        // A hundred at a time are added soon, however busy the machine is.
        for points in points.chunks(100) {
            let of = [("insightId", insight.as_str())];
            let body = json!({ "painPoints": points });
            self.create("add-pain-points", &of, &body).await;
        }
        insight
    }

    /// Reports an event, and names its error in the call.
    async fn report(&mut self, delivery: Call) {
        let event = SentEvent::new(1, self.test.app.clock.now(), "TypeError", "x");
        let reply = self.send(delivery.bytes(event.envelope())).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let list =
            Call::of(operation_of("list-errors").operation).parameter("idOrSlug", &self.slug);
        let reply = self.send(list.key(&self.test.key)).await;
        let id = reply.body["items"][0]["errorId"].as_str().expect("it was just reported");
        self.call = self.call().parameter("errorId", id);
    }
}

/// The segments that the rules of a flag name, each once.
fn named_segments(body: &Value) -> BTreeSet<&str> {
    let rules = body["rules"].as_array().into_iter().flatten();
    let conditions = rules.filter_map(|rule| rule["conditions"].as_array()).flatten();
    let about_segments = conditions.filter(|condition| {
        let operator = condition["operator"].as_str();
        operator.is_some_and(|operator| operator.ends_with("in_segment"))
    });
    let values = about_segments.filter_map(|condition| condition["values"].as_array()).flatten();
    values.filter_map(Value::as_str).collect()
}

/// Whether a place is in the prerequisites of a flag; only then there are any, which takes less time.
fn names_prerequisites(path: &[String]) -> bool {
    path.first().is_some_and(|name| name == "prerequisites")
}

/// Lets a flag name no variants but its own: names that are not tried become another's, one that is
/// tried becomes a variant.
fn settle_variants(members: &mut Map<String, Value>, tried: &str) {
    const NAMING: [&str; 4] = ["offVariant", "fallthrough", "rules", "targets"];
    if tried == "/variants" || tried == "/type" {
        members.retain(|name, _| !NAMING.contains(&name.as_str()));
        if tried == "/type" {
            members.remove("variants");
        }
        return;
    }
    let mut own: Vec<Value> =
        members.get("variants").and_then(Value::as_array).cloned().unwrap_or_default();
    let has = |own: &[Value], key: &str| own.iter().any(|variant| variant["key"] == key);
    let value = match members.get("type").and_then(Value::as_str) {
        Some("boolean") => "true",
        Some("number") => "1",
        Some("json") => "{}",
        _ => "",
    };
    let mut names = Vec::new();
    for (name, part) in members.iter_mut().filter(|(name, _)| NAMING.contains(&name.as_str())) {
        collect_names(part, name == "offVariant", format!("/{name}"), &mut names);
    }
    for (name, place) in names {
        let key = name.as_str().expect("it is text");
        if !has(&own, key) && (place == tried || own.is_empty()) {
            own.push(json!({"key": key, "value": value}));
        } else if !has(&own, key) {
            *name = own[0]["key"].clone();
        }
    }
    if !own.is_empty() && !members.get("variants").is_some_and(|it| !it.is_array() && !it.is_null())
    {
        members.insert("variants".to_owned(), own.into());
    }
}

/// Finds the names of variants in a part of a flag, with their places.
fn collect_names<'b>(
    value: &'b mut Value,
    is_name: bool,
    place: String,
    names: &mut Vec<(&'b mut Value, String)>,
) {
    match value {
        Value::String(name) if is_name && !name.is_empty() => names.push((value, place)),
        Value::Object(members) => {
            for (name, value) in members {
                collect_names(value, name == "variant", format!("{place}/{name}"), names);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                collect_names(item, false, format!("{place}/{at}"), names);
            }
        }
        _ => {}
    }
}
