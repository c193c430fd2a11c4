//! Requests that read and change the recorded items.

use serde_json::{Value, json};
use shared::app::{App, Operation};
use tests::app::PROJECT;
use tests::call::Call;

/// Responses by request, in order.
pub(super) type Responses = Vec<(String, Value)>;

/// Returns the read requests with only a project.
pub(super) fn read_requests(key: &str, session: &str) -> Vec<(&'static str, Call)> {
    let plain: [&'static Operation; 12] = [
        &get_caller::OPERATION,
        &list_projects::OPERATION,
        &list_feature_flags::OPERATION,
        &list_segments::OPERATION,
        &get_flagd_configuration::OPERATION,
        &list_insights::OPERATION,
        &list_event_marker_collections::OPERATION,
        &list_errors::OPERATION,
        &list_error_categories::OPERATION,
        &list_members::OPERATION,
        &list_invitations::OPERATION,
        &list_audit_entries::OPERATION,
    ];
    let call = |operation: &'static Operation| {
        let call = Call::of(operation).key(key);
        let names_project = operation.path.contains("{idOrSlug}");
        let call = if names_project { call.parameter("idOrSlug", PROJECT) } else { call };
        (operation.name, call)
    };
    let preferences = Call::of(&get_email_preferences::OPERATION).key(key);
    let session = Call::of(&get_caller::OPERATION).session(session);
    let others = [("preferences", preferences), ("session", session)];
    plain.into_iter().map(call).chain(others).collect()
}

/// Reads all resources.
pub(super) async fn read_all(app: &App, key: &str, session: &str) -> Responses {
    let mut responses = Vec::new();
    for (name, call) in read_requests(key, session) {
        send(app, name, call, &mut responses).await;
    }
    let call =
        |operation: &'static Operation| Call::of(operation).parameter("idOrSlug", PROJECT).key(key);
    for field in ["key"] {
        for flag in listed(&responses, "list-feature-flags", field) {
            let of = |operation| call(operation).parameter("key", &flag);
            send(app, "flag", of(&get_feature_flag::OPERATION), &mut responses).await;
            send(app, "changes", of(&list_flag_changes::OPERATION), &mut responses).await;
            let context = json!({"context": {"targetingKey": "u", "email": "a@example.com"}});
            let evaluate = of(&evaluate_feature_flag::OPERATION).json(&context);
            send(app, "evaluation", evaluate, &mut responses).await;
        }
        for segment in listed(&responses, "list-segments", field) {
            let get = call(&get_segment::OPERATION).parameter("key", &segment);
            send(app, "segment", get, &mut responses).await;
        }
    }
    for insight in listed(&responses, "list-insights", "id") {
        let of = |operation| call(operation).parameter("insightId", &insight);
        send(app, "insight", of(&get_insight::OPERATION), &mut responses).await;
        send(
            app,
            "pain points",
            of(&list_pain_points::OPERATION).query("limit", 40),
            &mut responses,
        )
        .await;
    }
    for collection in listed(&responses, "list-event-marker-collections", "id") {
        let of = |operation| call(operation).parameter("collectionId", &collection);
        send(app, "collection", of(&get_event_marker_collection::OPERATION), &mut responses).await;
        send(app, "markers", of(&list_event_markers::OPERATION), &mut responses).await;
    }
    for error in listed(&responses, "list-errors", "errorId") {
        let of = |operation| call(operation).parameter("errorId", &error);
        send(app, "error", of(&get_error::OPERATION), &mut responses).await;
        send(app, "events", of(&list_error_events::OPERATION).query("limit", 5), &mut responses)
            .await;
    }
    let to = app.clock.now().as_millis();
    let range = json!({"from": to - 20 * 86_400_000, "to": to});
    let with = |more: Value| {
        let mut body = range.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let chrome = json!([{"categoryId": "browser", "operator": "is", "value": "Chrome"}]);
    for (name, operation, body) in [
        (
            "errors found",
            &::query_errors::OPERATION,
            with(json!({"filters": chrome, "sort": "users"})),
        ),
        (
            "timeseries",
            &::query_error_timeseries::OPERATION,
            with(json!({"projectIds": [PROJECT], "limit": 20, "filters": chrome})),
        ),
        (
            "breakdown",
            &::breakdown_errors::OPERATION,
            with(json!({"projectIds": [PROJECT], "by": "browser"})),
        ),
    ] {
        send(app, name, call(operation).json(&body), &mut responses).await;
    }
    responses
}

async fn send(app: &App, name: &str, call: Call, responses: &mut Responses) {
    let reply = call.send(app).await;
    assert_eq!(reply.status, 200, "{name}: {}", reply.text);
    let mut body = reply.body;
    // Cursors are sealed again each time, and only mark the end of a page.
    if let Some(cursor) = body.get_mut("nextCursor").filter(|it| it.is_string()) {
        *cursor = json!("…");
    }
    responses.push((name.to_owned(), body));
}

/// Returns a field of each item in a list response.
fn listed(responses: &Responses, name: &str, field: &str) -> Vec<String> {
    let (_, list) = responses.iter().find(|(requested, _)| requested == name).unwrap();
    let items = list["items"].as_array().unwrap().iter();
    let found: Vec<String> = items.map(|it| it[field].as_str().unwrap().to_owned()).collect();
    assert!(!found.is_empty(), "{name} has items");
    found
}

/// Panics at the first response that differs.
pub(super) fn compare(recorded: &Responses, now: &Responses) {
    for ((name, recorded), (requested, now)) in recorded.iter().zip(now) {
        assert_eq!((name, recorded), (requested, now));
    }
    assert_eq!(recorded.len(), now.len());
}

/// Returns a change of each resource.
pub(super) fn changes(responses: &Responses, key: &str) -> Vec<(&'static str, Call)> {
    let call =
        |operation: &'static Operation| Call::of(operation).parameter("idOrSlug", PROJECT).key(key);
    let first = |name: &str, field: &str| listed(responses, name, field).remove(0);
    let flag = first("list-feature-flags", "key");
    let segment = first("list-segments", "key");
    let insight = first("list-insights", "id");
    let collection = first("list-event-marker-collections", "id");
    let error = first("list-errors", "errorId");
    let name = json!({"name": "Changed"});
    let events = json!({"events": [{"name": "v2", "occurredAt": "2026-11-21T04:16:00Z"}]});
    let preferences = json!({"preferences": [{"type": "billing", "emailEnabled": true}]});
    let points = tests::insights::upload(900..905);
    vec![
        ("flag", call(&update_feature_flag::OPERATION).parameter("key", flag).json(&name)),
        ("segment", call(&update_segment::OPERATION).parameter("key", segment).json(&name)),
        (
            "insight",
            call(&update_insight::OPERATION)
                .parameter("insightId", &insight)
                .json(&json!({"title": "Changed"})),
        ),
        (
            "pain points",
            call(&add_pain_points::OPERATION).parameter("insightId", insight).json(&points),
        ),
        (
            "markers",
            call(&add_event_markers::OPERATION).parameter("collectionId", collection).json(&events),
        ),
        (
            "error",
            call(&update_error::OPERATION)
                .parameter("errorId", &error)
                .json(&json!({"status": "resolved"})),
        ),
        ("preferences", Call::of(&update_email_preferences::OPERATION).key(key).json(&preferences)),
    ]
}
