//! Successful requests, and the resources that they need.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lambda_http::http::Method;
use local::demo;
use serde_json::{Map, Value, json};
use shared::projects::role::Role;
use tests::app::TestApp;
use tests::call::{Call, Reply};
use tests::contract::resolve;
use tests::errors::{SentEvent, project};
use tests::insights::upload;
use tests::operation_specs::{OperationSpec, operation_of};
use tests::people::{add_member, signed_in};

use super::schemas::{Schema, pointer};

/// `true` if an operation changes the results of later requests.
pub(super) fn changes(described: &OperationSpec) -> bool {
    let parts = ["{idOrSlug}", "{memberId}", "{invitationId}", "{keyId}"];
    let creates = ["/v0/invitations", "/v0/projects"].contains(&described.path);
    described.method != Method::GET
        && (creates || parts.iter().any(|part| described.path.contains(part)))
        && !described.path.contains("/ofrep/")
        && !described.path.ends_with("/query")
}

/// Returns an example body of an operation, text or JSON, if it has one.
pub(super) fn example(described: &OperationSpec) -> Option<&'static Value> {
    described.contents.iter().find_map(|(_, content)| examples(content).first().copied())
}

fn examples(content: &'static Value) -> Vec<&'static Value> {
    let examples = content["examples"].as_object().into_iter().flatten();
    examples.map(|(_, example)| &resolve(example)["value"]).collect()
}

/// Returns the schemas of an operation's JSON bodies with their examples, without duplicates.
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

/// Returns an address that no other request has.
fn unique_email() -> String {
    format!("a{}@example.com", PROJECTS.fetch_add(1, Ordering::Relaxed))
}

/// Number of created projects.
static PROJECTS: AtomicUsize = AtomicUsize::new(0);

/// `true` if only a session can call the operation.
fn needs_session(described: &OperationSpec) -> bool {
    ["sign-out", "update-session", "accept-invitation"].contains(&described.id)
}

/// A project with all resources that an operation needs to succeed.
pub(super) struct Fixture<'t> {
    /// The app under test.
    pub(super) test: &'t TestApp,
    slug: String,
    call: Call,
    other_insight: Option<String>,
}

impl<'t> Fixture<'t> {
    /// Creates a new project with the resources for a body in which the place `path` is tested.
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
        let mut fixture = Self { test, slug, call, other_insight: None };
        if path.contains("{idOrSlug}") {
            fixture.call = fixture.call.parameter("idOrSlug", &fixture.slug);
        }
        if path.contains("{ingestId}") {
            let project = project(&test.app.store, id).await;
            fixture.call = fixture.call.parameter("ingestId", project.ingest_id);
            fixture.call = fixture.call.query("sentry_key", project.public_key);
            return fixture;
        }
        fixture.call = if needs_session(described) {
            let (_, session) = signed_in(test, &unique_email(), Role::Owner).await;
            fixture.call.session(&session)
        } else if path.starts_with("/v0/sign-in") {
            fixture.call.from_console()
        } else {
            fixture.call.key(&test.key)
        };
        if path.contains("/segments/{key}") {
            fixture.create_segment("the-segment").await;
            fixture.call = fixture.call.parameter("key", "the-segment");
        } else if path.contains("{key}") {
            // The flag names no variant, so it can have any variants.
            let nothing = json!({"variant": null, "rollout": []});
            let fields = json!({"offVariant": null, "fallthrough": nothing});
            fixture.create_flag("the-flag", &fields).await;
            fixture.call = fixture.call.parameter("key", "the-flag");
        }
        let wanted = body["prerequisites"].as_array().filter(|_| names_prerequisites(tried));
        for wanted in wanted.into_iter().flatten() {
            if let (Some(key), Some(variant)) =
                (wanted["flagKey"].as_str(), wanted["variant"].as_str())
            {
                let variants = json!([{"key": variant, "value": ""}]);
                fixture.create_flag(key, &json!({ "variants": variants })).await;
            }
        }
        for key in named_segments(body) {
            fixture.create_segment(key).await;
        }
        if path.contains("{insightId}") {
            let insight = fixture.create_insight(&body["painPointIds"]).await;
            fixture.call = fixture.call.parameter("insightId", insight);
        }
        if body.get("into").is_some() {
            let body = json!({"title": "Other", "painPoints": upload(1..2)["painPoints"]});
            let reply = fixture.create("create-insight", &[], &body).await;
            fixture.other_insight = reply.body["id"].as_str().map(str::to_owned);
        }
        if path.contains("{collectionId}") {
            let name = json!({"name": "Releases"});
            let reply = fixture.create("create-event-marker-collection", &[], &name).await;
            fixture.call =
                fixture.call.parameter("collectionId", reply.body["id"].as_str().unwrap());
        }
        if path.contains("{memberId}") {
            let email = unique_email();
            let member = add_member(test, &email, "default", Role::Viewer, None).await;
            fixture.call = fixture.call.parameter("memberId", member.id);
        }
        if path.contains("{keyId}") {
            let key = json!({"name": "CI", "scopes": ["flags:read"]});
            let reply = fixture.create("create-api-key", &[], &key).await;
            fixture.call = fixture.call.parameter("keyId", reply.body["keyId"].as_str().unwrap());
        }
        let creates = path.starts_with("/v0/invitations") && !needs_session(described);
        if creates && described.method != Method::GET {
            // An organization creates few invitations per day.
            test.pass(Duration::from_hours(24));
        }
        if path.contains("{invitationId}") && !path.ends_with("/accept") {
            let invitation = json!({"email": unique_email(), "role": "viewer"});
            let reply = fixture.create("create-invitation", &[], &invitation).await;
            let id = reply.body["id"].as_str().unwrap();
            fixture.call = fixture.call.parameter("invitationId", id);
        }
        if path.contains("{errorId}") {
            let project = project(&test.app.store, id).await;
            let delivery = Call::of(operation_of("ingest-error-events").operation);
            let delivery = delivery.parameter("ingestId", project.ingest_id);
            fixture.report(delivery.query("sentry_key", project.public_key)).await;
        }
        fixture
    }

    /// Sends a call.
    pub(super) async fn send(&self, call: Call) -> Reply {
        call.send(&self.test.app).await
    }

    /// Returns the call without a body.
    pub(super) fn call(&self) -> Call {
        self.call.clone()
    }

    /// Adapts a body so that the operation can succeed here, except for the tested place.
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
        let Some(fields) = body.as_object_mut() else { return };
        self.settle_people(fields, &tried);
        match tried.as_str() {
            // The range ends at the tested value.
            "/to" => drop(fields.remove("from")),
            // Categories that the request does not name allow any operator.
            "/currentFilters/0/operator" => {
                fields["currentFilters"][0]["categoryId"] = json!("größe");
            }
            // Another preference could have the same type.
            "/preferences/0/type" => fields["preferences"].as_array_mut().unwrap().truncate(1),
            _ => {}
        }
        if !names_prerequisites(path) {
            fields.remove("prerequisites");
        }
        settle_variants(fields, &tried);
    }

    /// Adapts the body of an operation about people or projects.
    fn settle_people(&self, fields: &mut Map<String, Value>, tried: &str) {
        if tried == "/role" {
            // Admins and owners see all projects.
            fields.remove("projects");
        }
        let projects = fields.get_mut("projects").and_then(Value::as_array_mut);
        for (at, id) in projects.into_iter().flatten().enumerate() {
            if id.is_string() && tried != format!("/projects/{at}") {
                *id = json!(self.slug);
            }
        }
        let is_invitation = fields.contains_key("role");
        let mut set = |name: &str, value: String| {
            if let Some(field) = fields.get_mut(name)
                && field.is_string()
                && tried != format!("/{name}")
            {
                *field = json!(value);
            }
        };
        if is_invitation {
            set("email", unique_email());
        }
        set("slug", format!("new-{}", PROJECTS.fetch_add(1, Ordering::Relaxed)));
        set("confirm", self.slug.clone());
        set("expiresAt", "2027-12-31T00:00:00Z".to_owned());
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

    async fn create_flag(&self, key: &str, fields: &Value) {
        let mut flag = json!({"key": key, "name": "Flag", "type": "string"});
        flag.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.create("create-feature-flag", &[], &flag).await;
    }

    async fn create_segment(&self, key: &str) {
        let conditions = json!([{"attribute": "plan", "operator": "exists"}]);
        let segment = json!({"key": key, "name": "Segment", "conditions": conditions});
        self.create("create-segment", &[], &segment).await;
    }

    /// Creates an insight with pain points with these ids, and one more.
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
        // Batches of a hundred are added quickly, even on a busy machine.
        for points in points.chunks(100) {
            let of = [("insightId", insight.as_str())];
            let body = json!({ "painPoints": points });
            self.create("add-pain-points", &of, &body).await;
        }
        insight
    }

    /// Reports an event, and adds its error to the call.
    async fn report(&mut self, delivery: Call) {
        let event = SentEvent::new(1, self.test.app.clock.now(), "TypeError", "x");
        let reply = self.send(delivery.bytes(event.envelope())).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let list =
            Call::of(operation_of("list-errors").operation).parameter("idOrSlug", &self.slug);
        let reply = self.send(list.key(&self.test.key)).await;
        let id = reply.body["items"][0]["errorId"].as_str().expect("the error was just reported");
        self.call = self.call().parameter("errorId", id);
    }
}

/// Returns the unique segments that a flag's rules name.
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

/// `true` if the place is in a flag's prerequisites. Other flags have none, which is faster.
fn names_prerequisites(path: &[String]) -> bool {
    path.first().is_some_and(|name| name == "prerequisites")
}

/// Limits a flag to its own variants: untested names are replaced, and a tested name becomes
/// a variant.
fn settle_variants(fields: &mut Map<String, Value>, tried: &str) {
    const NAMING: [&str; 4] = ["offVariant", "fallthrough", "rules", "targets"];
    if tried == "/variants" || tried == "/type" {
        fields.retain(|name, _| !NAMING.contains(&name.as_str()));
        if tried == "/type" {
            fields.remove("variants");
        }
        return;
    }
    let mut own: Vec<Value> =
        fields.get("variants").and_then(Value::as_array).cloned().unwrap_or_default();
    let has = |own: &[Value], key: &str| own.iter().any(|variant| variant["key"] == key);
    let value = match fields.get("type").and_then(Value::as_str) {
        Some("boolean") => "true",
        Some("number") => "1",
        Some("json") => "{}",
        _ => "",
    };
    let mut names = Vec::new();
    for (name, part) in fields.iter_mut().filter(|(name, _)| NAMING.contains(&name.as_str())) {
        collect_names(part, name == "offVariant", format!("/{name}"), &mut names);
    }
    for (name, place) in names {
        let key = name.as_str().expect("the name is text");
        if !has(&own, key) && (place == tried || own.is_empty()) {
            own.push(json!({"key": key, "value": value}));
        } else if !has(&own, key) {
            *name = own[0]["key"].clone();
        }
    }
    if !own.is_empty() && !fields.get("variants").is_some_and(|it| !it.is_array() && !it.is_null())
    {
        fields.insert("variants".to_owned(), own.into());
    }
}

/// Collects the names of variants in a part of a flag, with their places.
fn collect_names<'b>(
    value: &'b mut Value,
    is_name: bool,
    place: String,
    names: &mut Vec<(&'b mut Value, String)>,
) {
    match value {
        Value::String(name) if is_name && !name.is_empty() => names.push((value, place)),
        Value::Object(fields) => {
            for (name, value) in fields {
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
