//! Checks the examples of `openapi.yaml`: every body has one, and every example fits its schema.
//! The example events next to the functions are tested, too.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use local::demo;
use serde_json::{Value, json};
use shared::app::Operation;
use shared::http::ProblemCode;
use tests::app::TestApp;
use tests::call::{Call, send_event};
use tests::contract::{self, OPENAPI, assert_valid, resolve};
use tests::operations::OPERATIONS;

/// A documented body: its place, media type, schema and examples.
struct Body {
    place: String,
    media_type: &'static str,
    content: &'static Value,
}

fn bodies_of(place: &str, described: &'static Value) -> Vec<Body> {
    let content = resolve(described)["content"].as_object();
    let bodies = content.into_iter().flatten().map(|(media_type, content)| Body {
        place: format!("{place} {media_type}"),
        media_type,
        content,
    });
    bodies.collect()
}

/// Returns the bodies of all requests and responses.
fn bodies() -> Vec<Body> {
    let mut bodies = Vec::new();
    let paths = OPENAPI["paths"].as_object().unwrap().values();
    for operation in paths.flat_map(|path| path.as_object().unwrap().values()) {
        let Some(id) = operation["operationId"].as_str() else { continue };
        bodies.extend(bodies_of(id, &operation["requestBody"]));
        for (status, response) in operation["responses"].as_object().unwrap() {
            bodies.extend(bodies_of(&format!("{id} {status}"), response));
        }
    }
    bodies
}

fn examples(body: &Body) -> Vec<&'static Value> {
    let examples = body.content["examples"].as_object().into_iter().flatten();
    let named = examples.map(|(_, example)| &resolve(example)["value"]);
    named.chain(body.content.get("example")).collect()
}

#[test]
fn bodies_have_examples() {
    // A placeholder type describes no body of its own, and pages and their files need no examples.
    let is_of_a_page = |it: &Body| {
        ["text/html", "text/css", "text/javascript", "image/svg+xml"].contains(&it.media_type)
    };
    let is_described = |it: &Body| it.media_type != "*/*" && !is_of_a_page(it);
    let described: Vec<Body> = bodies().into_iter().filter(is_described).collect();
    assert!(described.len() > 100, "{}", described.len());
    let without = described.iter().filter(|body| examples(body).is_empty());
    let without: Vec<&str> = without.map(|body| body.place.as_str()).collect();
    assert!(without.is_empty(), "bodies without an example: {without:#?}");
}

#[test]
fn examples_fit_their_schemas() {
    for body in bodies() {
        for example in examples(&body) {
            let checked = std::panic::catch_unwind(|| {
                assert_valid(&body.content["schema"], example);
            });
            assert!(checked.is_ok(), "an example of {} does not fit its schema", body.place);
        }
    }
}

#[test]
fn errors_have_examples() {
    let shown: BTreeSet<&str> =
        bodies().iter().flat_map(examples).filter_map(|example| example["code"].as_str()).collect();
    let missing: Vec<&str> = ProblemCode::ALL
        .iter()
        .map(|code| code.as_str())
        .filter(|it| !shown.contains(it))
        .collect();
    // Sentry's bodies have no codes; another test checks that they have examples.
    let without_code = ["invalid_dsn_key", "malformed_envelope", "source_map_limit_reached"];
    let missing: Vec<&str> = missing.into_iter().filter(|it| !without_code.contains(it)).collect();
    assert!(missing.is_empty(), "errors without an example: {missing:?}");
}

fn operation(name: &str) -> &'static Operation {
    OPERATIONS.into_iter().find(|it| it.name == name).unwrap()
}

#[tokio::test]
async fn example_events_succeed() {
    let test = TestApp::start().await;
    demo::ensure_project(&test.app.store, demo::SLUG, "Demo").await.unwrap();
    let create = async |name: &str, body: Value| {
        let call = Call::of(operation(name)).parameter("idOrSlug", demo::SLUG).key(&test.key);
        let reply = call.json(&body).send(&test.app).await;
        reply.body["id"].as_str().unwrap_or_else(|| panic!("{}", reply.text)).to_owned()
    };
    let pain_point = |id| {
        let at = "2026-11-21T04:00:00Z";
        json!({"id": id, "sessionId": "s", "occurredAt": at, "title": "Left the page"})
    };
    let moved = "6f1c2a9e-4b7d-4e83-9a15-c0d2e8f73b46";
    let kept = "0b9d7c52-83e4-4f1a-b6c7-5e2a914d08f3";
    let pain_points = [moved, kept].map(pain_point);
    let insight = json!({"title": "Checkout button does nothing", "painPoints": pain_points});
    let insight = create("create-insight", insight).await;
    let collection = json!({"name": "Releases"});
    let collection = create("create-event-marker-collection", collection).await;

    for (name, status) in [
        ("create-feature-flag", 201),
        ("split-insight", 201),
        ("delete-event-marker-collection", 204),
        ("update-email-preferences", 200),
        ("interpret-error-filters", 200),
        ("query-error-timeseries", 200),
    ] {
        let file = tests::workspace().join("functions").join(name).join("event.json");
        let event = std::fs::read_to_string(file).unwrap();
        let filled_in =
            [("API_KEY", &test.key), ("INSIGHT_ID", &insight), ("COLLECTION_ID", &collection)];
        let event = filled_in.iter().fold(event, |it, (word, value)| it.replace(word, value));
        let reply = send_event(&test.app, operation(name), &event).await;
        assert_eq!(reply.status, status, "{name}: {}", reply.text);
        contract::check(name, &reply);
    }
}
