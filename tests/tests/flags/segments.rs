//! Segments: operations, uses by flags, and evaluations.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::app::Operation;
use tests::app::{TestApp, left_out};
use tests::call::{Call, Reply};

use super::{
    CREATE, TABLE, archive, call_for, change, create, creation, damage, delete, etag, evaluate,
    evaluate_all, keys, on, stored, update,
};

const CREATE_SEGMENT: &Operation = &create_segment::OPERATION;
const LIST_SEGMENTS: &Operation = &list_segments::OPERATION;
const GET_SEGMENT: &Operation = &get_segment::OPERATION;
const UPDATE_SEGMENT: &Operation = &update_segment::OPERATION;
const DELETE_SEGMENT: &Operation = &delete_segment::OPERATION;
/// The operations with a segment's key in the path.
const OPERATIONS_ON_A_SEGMENT: [&Operation; 3] = [GET_SEGMENT, UPDATE_SEGMENT, DELETE_SEGMENT];

/// Returns the body of a segment for these plans.
fn of_plans(key: &str, plans: &[&str]) -> Value {
    json!({"key": key, "name": key, "conditions": plan_in(plans)})
}

fn plan_in(plans: &[&str]) -> Value {
    json!([{"attribute": "plan", "operator": "in", "values": plans}])
}

/// Returns a change or deletion for the segment with this entity tag.
fn meant_for(test: &TestApp, operation: &'static Operation, tag: &str) -> Call {
    let call = call_for(test, operation, "beta").header("if-match", tag);
    if operation.name == UPDATE_SEGMENT.name { call.json(&json!({"name": "Beta"})) } else { call }
}

async fn create_segment(test: &TestApp, body: &Value) -> Reply {
    let reply = test.call(CREATE_SEGMENT).json(body).send(&test.app).await;
    assert_eq!(reply.status, 201, "{}", reply.body);
    reply
}

async fn get_segment(test: &TestApp, key: &str) -> Reply {
    call_for(test, GET_SEGMENT, key).send(&test.app).await
}

async fn update_segment(test: &TestApp, key: &str, patch: Value) -> Reply {
    call_for(test, UPDATE_SEGMENT, key).json(&patch).send(&test.app).await
}

async fn delete_segment(test: &TestApp, key: &str) -> Reply {
    call_for(test, DELETE_SEGMENT, key).send(&test.app).await
}

/// Returns the fields of a flag that is on in any of these segments, else off.
fn for_segments(segments: &[&str]) -> Value {
    let condition = json!({"operator": "in_segment", "values": segments});
    json!({
        "rules": [{"id": "r", "conditions": [condition], "serve": {"variant": "on"}}],
        "fallthrough": {"variant": "off"},
    })
}

/// Returns the number of flags that a segment counts as its users.
async fn users(test: &TestApp, segment: &str) -> i64 {
    let items = stored(test).await;
    let users = items[&format!("/{segment}")].get("users");
    users.map_or(0, |users| users.as_n().unwrap().parse().unwrap())
}

async fn variant(test: &TestApp, key: &str, context: Value) -> String {
    let reply = evaluate(test, key, context).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.body["variant"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn segments_are_created_read_changed_and_deleted() {
    let test = TestApp::start().await;
    let created = create_segment(&test, &of_plans("beta", &["pro"])).await;
    let location = format!("/v0/project/{}/segments/beta", test.project_id);
    assert_eq!(
        (created.headers["location"].to_str().unwrap(), etag(&created)),
        (&*location, "\"1\"")
    );
    assert_eq!(created.body["projectId"], json!(test.project_id));
    assert_eq!(created.body["conditions"], plan_in(&["pro"]));
    assert_eq!(get_segment(&test, "beta").await.body, created.body);

    test.pass(Duration::from_secs(1));
    let same = update_segment(&test, "beta", json!({"name": "beta"})).await;
    assert_eq!((same.status, &same.body), (200, &created.body));
    let changed = update_segment(&test, "beta", json!({"conditions": plan_in(&["team"])})).await;
    assert_eq!(
        (changed.status, &changed.body["version"], etag(&changed)),
        (200, &json!(2), "\"2\"")
    );
    assert_ne!(changed.body["updatedAt"], created.body["updatedAt"]);
    assert_eq!(get_segment(&test, "beta").await.body, changed.body);
    let rejected = update_segment(&test, "beta", json!({"name": null})).await;
    assert_eq!(rejected.violations(), [("/name", "required")]);

    for operation in [UPDATE_SEGMENT, DELETE_SEGMENT] {
        let reply = meant_for(&test, operation, "\"1\"").send(&test.app).await;
        assert_eq!(reply.problem(), (412, "version_mismatch"), "{}", operation.name);
    }
    assert_eq!(meant_for(&test, UPDATE_SEGMENT, "\"2\"").send(&test.app).await.status, 200);
    assert_eq!(meant_for(&test, DELETE_SEGMENT, "\"3\"").send(&test.app).await.status, 204);
    for operation in OPERATIONS_ON_A_SEGMENT {
        let call = call_for(&test, operation, "beta").json(&json!({"name": "Beta"}));
        assert_eq!(call.send(&test.app).await.problem(), (404, "segment_not_found"));
    }
    create_segment(&test, &of_plans("beta", &["pro"])).await;
}

#[tokio::test]
async fn reused_keys_have_distinct_entity_tags() {
    let test = TestApp::start().await;
    let first = create_segment(&test, &of_plans("beta", &["pro"])).await;
    // A flag's key is independent of a segment's key.
    assert_eq!(etag(&create(&test, "beta", &json!({})).await), "\"1\"");
    archive(&test, "beta").await;
    assert_eq!(delete(&test, "beta").await.status, 204);
    assert_eq!(delete_segment(&test, "beta").await.status, 204);
    test.round_trips();
    let again = test.call(CREATE_SEGMENT).header("idempotency-key", "k");
    let again = again.json(&of_plans("beta", &["free"]));
    let second = again.clone().send(&test.app).await;
    assert_eq!((second.status, &second.body["version"]), (201, &json!(1)), "{}", second.body);
    assert_eq!(test.round_trips(), 2, "only a reused key takes a second transaction");
    let tag = |version: u64, segment: &Reply| {
        format!("\"{version}-{}\"", segment.body["id"].as_str().unwrap())
    };
    assert_eq!(etag(&second), tag(1, &second));
    let replayed = again.send(&test.app).await;
    assert_eq!((&replayed.body, etag(&replayed)), (&second.body, etag(&second)));
    assert_eq!(etag(&get_segment(&test, "beta").await), etag(&second));

    for other in [etag(&first), &tag(1, &first), &tag(2, &second)] {
        for operation in [UPDATE_SEGMENT, DELETE_SEGMENT] {
            let reply = meant_for(&test, operation, other).send(&test.app).await;
            assert_eq!(reply.problem(), (412, "version_mismatch"), "{} {other}", operation.name);
        }
    }
    let both = format!("\"1\", {}", tag(1, &second));
    let changed = meant_for(&test, UPDATE_SEGMENT, &both).send(&test.app).await;
    assert_eq!((changed.status, etag(&changed)), (200, &*tag(2, &second)));
    assert_eq!(
        meant_for(&test, DELETE_SEGMENT, &tag(2, &second)).send(&test.app).await.status,
        204
    );
    // The key also stays marked after a second deletion; other keys are not marked.
    let third = create_segment(&test, &of_plans("beta", &["pro"])).await;
    assert_eq!(etag(&third), tag(1, &third));
    test.round_trips();
    assert_eq!(etag(&create_segment(&test, &of_plans("new", &["pro"])).await), "\"1\"");
    assert_eq!(test.round_trips(), 1);
    // Lists and evaluations do not read the marks.
    let listed = test.call(LIST_SEGMENTS).send(&test.app).await;
    assert_eq!(keys(&listed.body["items"]), ["beta", "new"]);
    assert_eq!(evaluate_all(&test, json!({})).await.body["flags"], json!([]));
}

#[tokio::test]
async fn keys_are_unique_and_creations_idempotent() {
    let test = TestApp::start().await;
    let call = test.call(CREATE_SEGMENT).json(&of_plans("beta", &["pro"]));
    let once = call.clone().header("idempotency-key", "k");
    let first = once.clone().send(&test.app).await;
    assert_eq!(first.status, 201);
    assert_eq!(call.send(&test.app).await.problem(), (409, "segment_exists"));
    let again = once.send(&test.app).await;
    assert_eq!((again.status, &again.body), (201, &first.body));
    assert_eq!(again.headers["idempotency-replayed"], "true");
}

#[tokio::test]
async fn projects_have_at_most_a_hundred_segments() {
    let test = TestApp::start().await;
    let numbers: Vec<usize> = (0..100).collect();
    for numbers in numbers.chunks(10) {
        let bodies: Vec<Value> =
            numbers.iter().map(|it| of_plans(&format!("s{it:02}"), &["pro"])).collect();
        // All requests update the project's item, so some give up and are sent again.
        join_all(bodies.iter().map(|body| async {
            let call = test.call(CREATE_SEGMENT).json(body);
            while call.clone().send(&test.app).await.problem() == (409, "conflict") {}
        }))
        .await;
    }
    let full = test.call(CREATE_SEGMENT).json(&of_plans("more", &["pro"]));
    assert_eq!(full.clone().send(&test.app).await.problem(), (409, "segment_limit_reached"));
    create(&test, "a-flag", &json!({})).await;
    let pages = test.pages(&test.call(LIST_SEGMENTS), 40).await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [40, 40, 20]);
    let listed = pages.concat();
    let expected: Vec<String> = numbers.iter().map(|it| format!("s{it:02}")).collect();
    assert_eq!(keys(&Value::from(listed)), expected);
    assert_eq!(delete_segment(&test, "s07").await.status, 204);
    assert_eq!(full.send(&test.app).await.status, 201);
}

#[tokio::test]
async fn evaluations_use_segments() {
    let test = TestApp::start().await;
    create_segment(&test, &of_plans("beta", &["pro", "team"])).await;
    create_segment(&test, &of_plans("free", &["free"])).await;
    create(&test, "new", &for_segments(&["beta"])).await;
    let mut none = for_segments(&["beta", "free"]);
    none["rules"][0]["conditions"][0]["operator"] = json!("not_in_segment");
    create(&test, "others", &none).await;
    let mut dependent = for_segments(&["free"]);
    dependent["prerequisites"] = on(&["new"])["prerequisites"].clone();
    create(&test, "dependent", &dependent).await;

    for (plan, expected) in [
        (json!("pro"), ["off", "on", "off"]),
        (json!("free"), ["off", "off", "off"]),
        (json!("other"), ["off", "off", "on"]),
        (Value::Null, ["off", "off", "on"]),
    ] {
        let context = json!({"plan": plan});
        let all = evaluate_all(&test, context.clone()).await;
        let together: Vec<&str> = all.body["flags"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["variant"].as_str().unwrap())
            .collect();
        assert_eq!(together, expected, "{plan}");
        for (key, expected) in ["dependent", "new", "others"].into_iter().zip(expected) {
            assert_eq!(variant(&test, key, context.clone()).await, expected, "{key} for {plan}");
        }
    }
    let reply = evaluate(&test, "new", json!({"plan": "team"})).await;
    assert_eq!(
        (&reply.body["reason"], &reply.body["metadata"]["ruleId"]),
        (&json!("TARGETING_MATCH"), &json!("r"))
    );
    // A rule is returned as it was sent, and without an attribute.
    let condition = json!({"attribute": null, "operator": "in_segment", "values": ["beta"]});
    assert_eq!(super::get(&test, "new").await.body["rules"][0]["conditions"][0], condition);
}

#[tokio::test]
async fn segment_changes_take_effect_within_five_seconds() {
    let test = TestApp::start().await;
    create_segment(&test, &of_plans("beta", &["pro"])).await;
    create(&test, "new", &for_segments(&["beta"])).await;
    let free = json!({"plan": "free"});
    assert_eq!(variant(&test, "new", free.clone()).await, "off");
    assert_eq!(evaluate_all(&test, free.clone()).await.body["flags"][0]["variant"], "off");
    let widened = json!({"conditions": plan_in(&["pro", "free"])});
    assert_eq!(update_segment(&test, "beta", widened).await.status, 200);
    test.pass(Duration::from_millis(4_900));
    assert_eq!(variant(&test, "new", free.clone()).await, "off");
    test.pass(Duration::from_millis(100));
    assert_eq!(variant(&test, "new", free.clone()).await, "on");
    assert_eq!(evaluate_all(&test, free).await.body["flags"][0]["variant"], "on");
}

#[tokio::test]
async fn unknown_segments_are_violations_at_their_values() {
    let test = TestApp::start().await;
    create_segment(&test, &of_plans("beta", &["pro"])).await;
    let mut members = for_segments(&["beta", "gone"]);
    let twice = json!([
        {"attribute": "a", "operator": "exists"},
        {"operator": "not_in_segment", "values": ["lost", "gone"]},
    ]);
    let second = json!({"id": "s", "conditions": twice, "serve": {"variant": "off"}});
    members["rules"].as_array_mut().unwrap().push(second);
    let unknown = [
        ("/rules/0/conditions/0/values/1", "unknown_segment"),
        ("/rules/1/conditions/1/values/0", "unknown_segment"),
        ("/rules/1/conditions/1/values/1", "unknown_segment"),
    ];
    let reply = test.call(CREATE).json(&creation("new", &members)).send(&test.app).await;
    assert_eq!(reply.problem(), (400, "validation_failed"));
    assert_eq!(reply.violations(), unknown);
    members["prerequisites"] = on(&["missing"])["prerequisites"].clone();
    let reply = test.call(CREATE).json(&creation("new", &members)).send(&test.app).await;
    assert_eq!(reply.violations()[..3], unknown);
    assert_eq!(reply.violations()[3..], [("/prerequisites/0/flagKey", "unknown_flag")]);
    assert_eq!(users(&test, "beta").await, 0);

    create(&test, "new", &json!({})).await;
    let reply = update(&test, "new", json!({"rules": members["rules"]})).await;
    assert_eq!(reply.violations(), unknown);
    assert_eq!(super::get(&test, "new").await.body["version"], 1);
}

#[tokio::test]
async fn segment_conditions_have_no_attribute() {
    let test = TestApp::start().await;
    let rejected = async |conditions: Value| {
        let rule = json!({"conditions": conditions, "serve": {"variant": "on"}});
        let body = creation("new", &json!({"rules": [rule]}));
        let reply = test.call(CREATE).json(&body).send(&test.app).await;
        assert_eq!(reply.problem(), (400, "validation_failed"), "{}", reply.text);
        let violations =
            reply.violations().into_iter().map(|(place, code)| (place.to_owned(), code.to_owned()));
        violations.collect::<Vec<_>>()
    };
    let at = |place: &str, code: &str| (format!("/rules/0{place}"), code.to_owned());
    let about = json!({"attribute": "plan", "operator": "in_segment", "values": ["beta"]});
    assert_eq!(rejected(json!([about])).await, [at("/conditions/0/attribute", "invalid_value")]);
    let without = json!({"operator": "equals", "values": ["beta"]});
    assert_eq!(rejected(json!([without])).await, [at("/conditions/0/attribute", "required")]);
    let invalid = json!({"operator": "in_segment", "values": ["no key", "/beta"]});
    let expected = [0, 1].map(|it| at(&format!("/conditions/0/values/{it}"), "invalid_format"));
    assert_eq!(rejected(json!([invalid])).await, expected);
    let none = json!({"operator": "not_in_segment"});
    assert_eq!(rejected(json!([none])).await, [at("/conditions/0/values", "too_few_items")]);
    let several = |from: usize, to: usize| {
        let keys: Vec<String> = (from..to).map(|number| format!("s{number}")).collect();
        json!({"operator": "in_segment", "values": keys})
    };
    let too_many = ("/rules".to_owned(), "too_many_items".to_owned());
    assert_eq!(rejected(json!([several(0, 20), several(10, 31)])).await, [too_many]);
}

#[tokio::test]
async fn used_segments_cannot_be_deleted() {
    let test = TestApp::start().await;
    create_segment(&test, &of_plans("beta", &["pro"])).await;
    create_segment(&test, &of_plans("free", &["free"])).await;
    create(&test, "one", &for_segments(&["beta"])).await;
    create(&test, "two", &for_segments(&["beta", "free", "beta"])).await;
    assert_eq!((users(&test, "beta").await, users(&test, "free").await), (2, 1));
    // An archived flag still uses its segments.
    assert_eq!(archive(&test, "two").await.status, 200);
    let reply = delete_segment(&test, "beta").await;
    assert_eq!(reply.problem(), (409, "segment_in_use"));
    let detail =
        "2 flags use this segment, archived flags included: one, two. Change or delete them first.";
    assert_eq!(reply.body["detail"], detail);
    let reply = delete_segment(&test, "free").await;
    let detail =
        "1 flag uses this segment, archived flags included: two. Change or delete them first.";
    assert_eq!(reply.body["detail"], detail);

    // Changes outside the rules do not count again.
    change(&test, "one", json!({"enabled": false})).await;
    change(&test, "one", for_segments(&["beta"])).await;
    assert_eq!(users(&test, "beta").await, 2);
    change(&test, "one", for_segments(&["free"])).await;
    assert_eq!((users(&test, "beta").await, users(&test, "free").await), (1, 2));
    assert_eq!(delete(&test, "two").await.status, 204);
    assert_eq!(delete_segment(&test, "beta").await.status, 204);
    change(&test, "one", json!({"rules": []})).await;
    assert_eq!(delete_segment(&test, "free").await.status, 204);
    assert_eq!(update(&test, "one", for_segments(&["beta"])).await.status, 400);
}

#[tokio::test]
async fn segments_need_no_additional_round_trips() {
    let test = TestApp::start().await;
    create_segment(&test, &of_plans("beta", &["pro"])).await;
    create(&test, "warm", &json!({})).await;
    test.round_trips();
    create(&test, "new", &for_segments(&["beta"])).await;
    assert_eq!(test.round_trips(), 1);
    change(&test, "new", json!({"rules": []})).await;
    assert_eq!(test.round_trips(), 2, "one round trip reads the flag");
    assert_eq!(update_segment(&test, "beta", json!({"name": "B"})).await.status, 200);
    assert_eq!(test.round_trips(), 2, "one round trip reads the segment");
    assert_eq!(delete_segment(&test, "beta").await.status, 204);
    assert_eq!(test.round_trips(), 2, "one round trip reads the segment");
}

#[tokio::test]
async fn concurrent_use_and_deletion_never_both_succeed() {
    let test = TestApp::start().await;
    for round in 0..12 {
        let (segment, flag) = (format!("s{round}"), format!("f{round}"));
        create_segment(&test, &of_plans(&segment, &["pro"])).await;
        create(&test, &flag, &json!({})).await;
        let uses = for_segments(&[&segment]);
        let (put, other, deleted) = tokio::join!(
            update(&test, &flag, uses.clone()),
            async {
                let body = creation(&format!("g{round}"), &uses);
                test.call(CREATE).json(&body).send(&test.app).await
            },
            delete_segment(&test, &segment),
        );
        let in_use = [put.status == 200, other.status == 201].iter().filter(|it| **it).count();
        if deleted.status == 204 {
            assert_eq!((in_use, get_segment(&test, &segment).await.status), (0, 404));
        } else {
            assert!(in_use > 0 || deleted.problem() == (409, "conflict"), "{}", deleted.text);
            assert_eq!(users(&test, &segment).await, i64::try_from(in_use).unwrap());
        }
    }
    // Each readable flag can be evaluated.
    for flag in evaluate_all(&test, json!({})).await.body["flags"].as_array().unwrap() {
        assert!(flag.get("errorCode").is_none(), "{flag}");
    }
}

#[tokio::test]
async fn unreadable_segments_fail_only_their_flags() {
    let test = TestApp::start().await;
    create_segment(&test, &of_plans("beta", &["pro"])).await;
    create(&test, "new", &for_segments(&["beta"])).await;
    create(&test, "other", &json!({})).await;
    damage(&test, "/beta", "conditions", AttributeValue::S("[{}]".to_owned())).await;
    let reply = evaluate_all(&test, json!({})).await;
    let damaged = left_out(&format!("{}, key /beta", test.project_id));
    assert_eq!(damaged, [(TABLE, "conditions")].into());
    let flags = &reply.body["flags"];
    assert_eq!(
        (&flags[0]["errorCode"], &flags[1]["variant"]),
        (&json!("PARSE_ERROR"), &json!("on"))
    );
    assert_eq!(get_segment(&test, "beta").await.problem(), (500, "internal"));
}
