//! Evaluations while DynamoDB is unreachable or slow, and the number of reads otherwise.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::app::Operation;
use shared::usage::counted;
use tests::app::{TestApp, app_over};
use tests::call::{Call, Reply};
use tests::proxy::Outage;

use super::{
    EVALUATE, EVALUATE_ALL, GET, TABLE, call_for, change, copy, create, create_dependent, evaluate,
    evaluate_all,
};

const GET_CONFIGURATION: &Operation = &get_flagd_configuration::OPERATION;

/// Returns the evaluations that a page or server can request: the flag `f`, all flags, and the
/// configuration for flagd.
fn calls(test: &TestApp) -> [Call; 3] {
    let context = json!({"context": {"targetingKey": "u"}});
    [
        call_for(test, EVALUATE, "f").json(&context),
        test.call(EVALUATE_ALL).json(&context),
        test.call(GET_CONFIGURATION),
    ]
}

/// Returns whether the flag `f` is on in a response.
fn is_on(reply: &Reply) -> bool {
    assert_eq!(reply.status, 200, "{}", reply.text);
    let body = &reply.body;
    if body["flags"].is_array() {
        body["flags"][0]["value"] == true
    } else if body["flags"].is_object() {
        body["flags"]["f"]["state"] == "ENABLED"
    } else {
        body["value"] == true
    }
}

async fn assert_all(test: &TestApp, expected: bool) {
    for call in calls(test) {
        assert_eq!(is_on(&call.send(&test.app).await), expected);
    }
}

/// Returns an app behind a proxy, with the flag `f` turned on.
async fn behind_an_outage() -> (TestApp, Arc<Outage>) {
    let mut test = TestApp::start().await;
    create(&test, "f", &json!({})).await;
    let outage = Arc::new(Outage::before(&test.engine.endpoint()));
    test.put_behind(Arc::clone(&outage)).await;
    (test, outage)
}

/// Changes the flag through another app, which is not behind the proxy.
async fn elsewhere(test: &TestApp, patch: &Value) {
    let (app, _) = app_over(&test.engine.endpoint());
    let reply = call_for(test, super::UPDATE, "f").json(patch).send(&app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
}

#[tokio::test]
async fn warm_functions_evaluate_during_dynamodb_outages() {
    for hangs in [false, true] {
        let (test, outage) = behind_an_outage().await;
        assert_all(&test, true).await;
        if hangs {
            outage.hang();
        } else {
            outage.fail();
        }
        elsewhere(&test, &json!({"enabled": false})).await;
        // Nine minutes of load, partly with no-cache. Concurrent requests wait together.
        for seconds in [1, 4, 1, 30, 100, 200, 203] {
            test.pass(Duration::from_secs(seconds));
            let requests = |_| {
                calls(&test).map(|call| [call.clone(), call.header("cache-control", "no-cache")])
            };
            let load = (0..4).flat_map(requests).flatten();
            let replies = join_all(load.map(|call| async { call.send(&test.app).await })).await;
            assert!(replies.iter().all(is_on), "cached flags are served");
        }
        // Requests that manage flags fail.
        let reply = call_for(&test, GET, "f").send(&test.app).await;
        assert_eq!(reply.problem(), (503, "unavailable"));

        outage.respond_after(Duration::ZERO);
        test.pass(Duration::from_secs(5));
        assert_all(&test, false).await;
        test.pass(Duration::from_secs(5));
        assert_all(&test, false).await;
        elsewhere(&test, &json!({"enabled": true})).await;
        test.pass(Duration::from_secs(5));
        assert_all(&test, true).await;
    }
}

#[tokio::test]
async fn flags_older_than_ten_minutes_are_not_served() {
    let (test, outage) = behind_an_outage().await;
    assert_all(&test, true).await;
    outage.fail();
    test.pass(Duration::from_millis(599_999));
    assert_all(&test, true).await;
    test.pass(Duration::from_millis(1));
    for call in calls(&test) {
        assert_eq!(call.send(&test.app).await.status, 503);
    }
    outage.respond_after(Duration::ZERO);
    assert_all(&test, true).await;
}

#[tokio::test]
async fn evaluations_do_not_wait_for_silent_dynamodb() {
    let (test, outage) = behind_an_outage().await;
    let others: Vec<String> = (0..10).map(|number| format!("g{number}")).collect();
    for key in &others {
        create(&test, key, &json!({})).await;
        assert!(is_on(&evaluate(&test, key, json!({})).await));
    }
    assert_all(&test, true).await;
    outage.hang();
    test.pass(Duration::from_secs(5));
    outage.asked();
    let started = Instant::now();
    assert_all(&test, true).await;
    for key in &others {
        assert!(is_on(&evaluate(&test, key, json!({})).await));
    }
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    let tried = outage.asked();
    let started = Instant::now();
    for _ in 0..20 {
        assert_all(&test, true).await;
    }
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    // One read for all evaluations, and one for flagd.
    assert_eq!((tried, outage.asked()), (2, 0), "no request reads again within a second");
}

#[tokio::test]
async fn slow_reads_continue_for_the_next_request() {
    let (test, outage) = behind_an_outage().await;
    assert_all(&test, true).await;
    elsewhere(&test, &json!({"enabled": false})).await;
    outage.respond_after(Duration::from_millis(700));
    test.pass(Duration::from_secs(5));
    assert!(is_on(&evaluate(&test, "f", json!({})).await), "the read takes too long");
    outage.asked();
    tokio::time::sleep(Duration::from_millis(600)).await;
    test.pass(Duration::from_secs(1));
    assert!(!is_on(&evaluate(&test, "f", json!({})).await));
    assert_eq!(outage.asked(), 0, "the pending read continued");
}

#[tokio::test]
async fn flags_read_during_a_write_are_read_again() {
    let test = TestApp::start().await;
    create(&test, "f", &json!({})).await;
    assert_all(&test, true).await;
    test.pass(Duration::from_secs(5));
    assert_all(&test, true).await;
    // The new revision is visible, the changed flag is not.
    let project = test.project_id.to_string();
    let state = [("projectId", project.as_str()), ("key", "#")];
    test.tamper(TABLE, state, "flagsState", AttributeValue::N("2".to_owned())).await;
    test.pass(Duration::from_secs(5));
    assert_all(&test, true).await;
    let flag = [("projectId", project.as_str()), ("key", "f")];
    test.tamper(TABLE, flag, "enabled", AttributeValue::Bool(false)).await;
    test.tamper(TABLE, flag, "version", AttributeValue::N("2".to_owned())).await;
    test.pass(Duration::from_secs(5));
    assert_all(&test, false).await;
}

#[tokio::test]
async fn large_reads_are_awaited() {
    let (test, outage) = behind_an_outage().await;
    // One call per level: together much longer than the stall timeout.
    let levels: Vec<String> = (1..9).map(|level| format!("level{level}")).collect();
    let mut below = "f";
    for level in &levels {
        create_dependent(&test, level, &[below]).await;
        below = level;
    }
    assert!(is_on(&evaluate(&test, below, json!({})).await));
    outage.respond_after(Duration::from_millis(70));
    for (directive, is_to_be_on, seconds) in [("max-age=9", false, 5), ("no-cache", true, 1)] {
        elsewhere(&test, &json!({"enabled": is_to_be_on})).await;
        test.pass(Duration::from_secs(seconds));
        let call = call_for(&test, EVALUATE, below).header("cache-control", directive);
        let started = Instant::now();
        let reply = call.json(&json!({"context": {}})).send(&test.app).await;
        assert_eq!(is_on(&reply), is_to_be_on, "{directive}: the current value");
        assert!(started.elapsed() > Duration::from_millis(500), "{:?}", started.elapsed());
    }
}

#[tokio::test]
async fn unchanged_flags_cost_twelve_units_a_minute() {
    for flags in [10, 100, 2_000] {
        let mut test = TestApp::start().await;
        create(&test, "f", &json!({})).await;
        copy(&test, "f", flags - 1).await;
        // An app with an empty cache.
        (test.app, _) = app_over(&test.engine.endpoint());
        // New flags are read twice, and in several attempts on a busy machine.
        for _ in 0..8 {
            while evaluate_all(&test, json!({})).await.status != 200 {}
            test.pass(Duration::from_secs(5));
        }
        let minute = async {
            for _ in 0..12 {
                test.pass(Duration::from_secs(5));
                let reply = evaluate_all(&test, json!({})).await;
                assert_eq!(reply.body["flags"].as_array().unwrap().len(), flags);
            }
        };
        let ((), usage) = counted(minute).await;
        // Key, project and the limits of all projects are read once a minute.
        let units = usage.read_units - 3.0;
        assert!((units - 12.0).abs() < 0.01, "{flags} flags: {units}");
    }
}

#[tokio::test]
async fn single_evaluations_share_the_revision_read() {
    let test = TestApp::start().await;
    let keys: Vec<String> = (0..10).map(|number| format!("f{number}")).collect();
    for key in &keys {
        create(&test, key, &json!({})).await;
    }
    for _ in 0..2 {
        for key in &keys {
            assert_eq!(evaluate(&test, key, json!({})).await.body["value"], true);
        }
        test.pass(Duration::from_secs(5));
    }
    test.round_trips();
    for key in &keys {
        assert_eq!(evaluate(&test, key, json!({})).await.body["value"], true);
    }
    assert_eq!(test.round_trips(), 1);
    change(&test, "f3", json!({"enabled": false})).await;
    test.pass(Duration::from_secs(5));
    for key in &keys {
        let value = evaluate(&test, key, json!({})).await.body["value"].clone();
        assert_eq!(value, key != "f3", "{key}");
    }
}
