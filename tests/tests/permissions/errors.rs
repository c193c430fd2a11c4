//! Functions for error tracking.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

use errors::store::ErrorStore;
use shared::app::Operation;
use shared::projects::project::Project;
use tests::app::{PROJECT, TestApp, app_over};
use tests::call::Call;
use tests::errors::{SentEvent, delivery, project};
use tests::replays::Session;
use tests::scripted::{ScriptedDynamoDb, ScriptedReply, cancelled};
use tests::source_maps;

use super::{assert_uses_all, deadline, items, scheduled, send};

pub(super) const FUNCTIONS: [&str; 14] = [
    pack_error_log::JOB.name,
    delete_error::OPERATION.name,
    get_error::OPERATION.name,
    ingest_error_events::OPERATION.name,
    interpret_error_filters::OPERATION.name,
    list_error_events::OPERATION.name,
    list_errors::OPERATION.name,
    query_error_timeseries::OPERATION.name,
    breakdown_errors::OPERATION.name,
    list_error_categories::OPERATION.name,
    query_errors::OPERATION.name,
    update_error::OPERATION.name,
    query_error_events::OPERATION.name,
    summarize_error::OPERATION.name,
];

const TABLE: &str = "errors";
const DAY: Duration = Duration::from_hours(24);

/// Returns an event that occurred this long ago.
fn event(test: &TestApp, number: u64, ago: Duration) -> SentEvent {
    let at = test.app.clock.now().minus(ago);
    SentEvent::new(number, at, "TypeError", "x").with("tags.tenant", "acme")
}

type Item = HashMap<String, AttributeValue>;

fn table() -> String {
    format!("{}{TABLE}", local::environment::table_prefix())
}

/// Returns the items of a partition.
async fn items_of(test: &TestApp, pk: &str) -> Vec<Item> {
    let query = test.client.query().table_name(table()).consistent_read(true);
    let query = query.key_condition_expression("pk = :pk");
    let query = query.expression_attribute_values(":pk", AttributeValue::S(pk.to_owned()));
    query.into_paginator().items().send().try_collect().await.unwrap()
}

/// Removes all errors and their fingerprints, as if ingestion had died before it wrote them.
async fn remove_errors(test: &TestApp, project: &Project) {
    for kind in ["errors", "fingerprints"] {
        for item in items_of(test, &format!("{kind}#{}", project.id)).await {
            let key = ["pk", "sk"].map(|name| (name.to_owned(), item[name].clone()));
            let delete = test.client.delete_item().table_name(table()).set_key(Some(key.into()));
            delete.send().await.unwrap();
        }
    }
}

/// Delivers an event with an age in days and removes its error, so that the packer recreates it.
async fn leave_to_packers(test: &TestApp, project: &Project, number: u64, days: u32) {
    let late = event(test, number, days * DAY);
    send(test, delivery(project, &late), 200).await;
    remove_errors(test, project).await;
}

/// Simulates a packer that died before it finished its step.
async fn interrupt_packing(test: &TestApp, project: &Project) {
    let manifests = items_of(test, &format!("manifest#{}", project.id)).await;
    let runs = manifests.iter().flat_map(|item| {
        let names = item.keys().filter_map(|name| name.strip_prefix("r_"));
        names.take(1).map(|id| AttributeValue::S(format!("{}#{id}", item["sk"].as_s().unwrap())))
    });
    let runs = AttributeValue::L(runs.collect());
    let pk = format!("log-head#{}", project.id);
    let key = [("pk", pk.as_str()), ("sk", "head")];
    test.tamper(TABLE, key, "step", runs).await;
    test.tamper(TABLE, key, "readableSteps", AttributeValue::N("0".to_owned())).await;
}

async fn pack(test: &TestApp) {
    let pack = Box::pin((pack_error_log::JOB.run)(&test.app, deadline()));
    scheduled(pack_error_log::JOB.name, pack).await;
}

/// Delivers an event to a throttled partition.
async fn deliver_under_throttling(project: &Project, event: &SentEvent) {
    let dynamodb = ScriptedDynamoDb::start(|target, before| match (target, before) {
        ("GetItem", 0) => ScriptedReply::Response(json!({"Item": {
            "idOrSlug": {"S": "ingest#1"},
            "projectId": {"S": "00000000-0000-7000-8000-000000000001"},
            "publicKey": {"S": "0123456789abcdef0123456789abcdef"},
        }})),
        // The number of attempts.
        ("TransactWriteItems", 0..=2) => cancelled(&["None", "ThrottlingError", "None"]),
        _ => ScriptedReply::Response(json!({})),
    })
    .await;
    let (app, _) = app_over(&dynamodb.endpoint);
    let call = Call::of(&ingest_error_events::OPERATION).parameter("ingestId", project.ingest_id);
    let call = call.query("sentry_key", "0123456789abcdef0123456789abcdef");
    let reply = call.bytes(event.envelope()).send(&app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(dynamodb.single_writes("Update").len(), 1);
}

/// Delivers a replay with an error after a click, whose late verdict replaces the pain point.
async fn deliver_replay(test: &TestApp, project: &Project) {
    let session = Session::new(1, test.app.clock.now().minus(Duration::from_mins(5)));
    for body in [
        session.segment(0, &[session.click(0, 4)]),
        session.error(1, 400),
        session.segment(1, &[session.dead(0, 4)]),
    ] {
        let call = Call::of(&ingest_error_events::OPERATION).path("/api/{ingestId}/envelope/");
        let call = call.parameter("ingestId", project.ingest_id);
        let call = call.query("sentry_key", project.public_key).bytes(body).base64();
        send(test, call, 200).await;
    }
}

/// Lists errors over several pages, and returns one.
async fn list_all(test: &TestApp) -> Value {
    let list = test.call(&list_errors::OPERATION).query("limit", 1);
    let page = send(test, list.clone(), 200).await;
    let next = page.body["nextCursor"].as_str().unwrap();
    send(test, list.clone().query("cursor", next), 200).await;
    send(test, list.query("status", "open"), 200).await;
    items(&page)[0].clone()
}

#[tokio::test]
async fn error_functions_use_exactly_their_permissions() {
    let mut test = TestApp::start().await;
    // No cache, so that each function reads the data itself.
    test.app.store = test.app.store.clone().remembering(0);
    let project = project(&test.app.store, test.project_id).await;
    let query = |body: Value| test.call(&query_error_timeseries::OPERATION).json(&body);
    let scenario = Box::pin(async {
        let now = event(&test, 1, Duration::ZERO);
        send(&test, delivery(&project, &now), 200).await;
        send(&test, delivery(&project, &now), 200).await;
        // A new release is marked in a collection.
        let releases = json!({"name": "Releases", "source": "releases"});
        let create = test.call(&create_event_marker_collection::OPERATION).json(&releases);
        send(&test, create, 201).await;
        let other = SentEvent::new(2, test.app.clock.now(), "ValueError", "y");
        let other = other.with("release", "shop@1");
        send(&test, delivery(&project, &other), 200).await;
        // Without tags, whose registration is a transaction, too.
        let plain = SentEvent::new(1, test.app.clock.now(), "TypeError", "x");
        deliver_under_throttling(&project, &plain).await;
        deliver_replay(&test, &project).await;

        let error = list_all(&test).await;
        let of = |operation: &'static Operation| {
            test.call(operation).parameter("errorId", error["errorId"].as_str().unwrap())
        };
        send(&test, of(&list_error_events::OPERATION), 200).await;
        // First with rows only, then with runs.
        for status in ["resolved", "open"] {
            let list = test.call(&list_errors::OPERATION);
            send(&test, list, 200).await;
            send(&test, of(&get_error::OPERATION), 200).await;
            let filters = json!([{"categoryId": "os", "operator": "is_not_set", "value": ""}]);
            let events = of(&query_error_events::OPERATION).json(&json!({ "filters": filters }));
            send(&test, events, 200).await;
            let summary = of(&summarize_error::OPERATION).json(&json!({"by": ["browser"]}));
            send(&test, summary, 200).await;
            let update = of(&update_error::OPERATION).json(&json!({ "status": status }));
            send(&test, update, 200).await;
            test.pass(DAY);
            pack(&test).await;
        }
        // The error's events are removed after some minutes, and its tombstone hours later.
        send(&test, of(&delete_error::OPERATION), 204).await;
        for again in [&now, &other] {
            send(&test, delivery(&project, again), 200).await;
        }
        for wait in [Duration::from_mins(3), Duration::from_hours(2)] {
            test.pass(wait);
            pack(&test).await;
        }
        let question = json!({"projectId": PROJECT, "query": "firefox", "currentFilters": [],
            "categories": [{"id": "browser", "label": "Browser", "values": ["Firefox"]}]});
        send(
            &test,
            Call::of(&interpret_error_filters::OPERATION).key(&test.key).json(&question),
            200,
        )
        .await;

        // Four pack steps with events of one day each. The second step finishes the first one.
        // Their runs are then compacted.
        for number in 10..14 {
            let days = u32::try_from(number).unwrap() - 7;
            leave_to_packers(&test, &project, number, days).await;
            test.pass(DAY);
            pack(&test).await;
            if number == 10 {
                interrupt_packing(&test, &project).await;
            }
        }
        leave_to_packers(&test, &project, 14, 6).await;
        test.pass(DAY);
        pack(&test).await;
        test.pass(2 * DAY);
        pack(&test).await;
        assert!(ErrorStore::new(&test.app.store).list_packing_queue().await.unwrap().is_empty());

        // Source maps: one that is used a day after its upload, and a missing one.
        let projects = json!({"projects": [PROJECT]});
        let bundle = source_maps::bundle_of(source_maps::MAP, source_maps::DEBUG_ID);
        source_maps::upload(&test.app, &test.key, &bundle, &projects).await;
        test.pass(2 * DAY);
        for id in [source_maps::DEBUG_ID, "d0c3f1b2-7a44-4f0e-9a3b-000000000000"] {
            let event =
                source_maps::event(u128::from(id.ends_with('0')) + 900, Some(id), "", &[11], "t");
            let store = delivery(&project, &now).path("/api/{ingestId}/store/").bytes(event);
            send(&test, store, 200).await;
            let error = list_all(&test).await;
            let events = test.call(&list_error_events::OPERATION);
            let events = events.parameter("errorId", error["errorId"].as_str().unwrap());
            send(&test, events, 200).await;
        }

        let from = test.app.clock.now().minus(9 * DAY).as_millis();
        let all = json!({"projectIds": [PROJECT], "from": from});
        let by_browser = json!({"projectIds": [PROJECT], "by": "browser", "from": from});
        let of_project = |operation: &'static Operation| test.call(operation);
        let counting = [
            query(all.clone()),
            test.call(&breakdown_errors::OPERATION).json(&by_browser),
            of_project(&query_errors::OPERATION).json(&json!({ "from": from })),
            of_project(&list_error_categories::OPERATION),
        ];
        // An unpacked row in addition to the runs.
        leave_to_packers(&test, &project, 15, 6).await;
        for counting in counting {
            send(&test, counting, 200).await;
        }
        let mut filtered = all;
        filtered["searchQuery"] = json!("environment:production TypeError");
        send(&test, query(filtered), 200).await;
    });
    assert_uses_all(&FUNCTIONS, scenario).await;
}
