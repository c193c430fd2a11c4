//! The size limit for a project's flags and segments.

use futures_util::future::join_all;
use serde_json::{Value, json};

use flags::MAX_PROJECT_BYTES;
use tests::app::TestApp;
use tests::call::Reply;

use super::{
    CREATE, archive, call_for, change, create, creation, delete, project_number,
    set_project_number, stored, update,
};

const FULL: (u16, &str) = (409, "flag_bytes_limit_reached");

/// Returns the fields of a flag that lists this number of values.
fn listing(values: u32) -> Value {
    let values: Vec<String> = (0..values).map(|value| format!("customer-{value}")).collect();
    let conditions = json!([{"attribute": "customer", "operator": "in", "values": values}]);
    json!({"rules": [{"conditions": conditions, "serve": {"variant": "on"}}]})
}

fn segment(values: u32) -> Value {
    let conditions = &listing(values)["rules"][0]["conditions"];
    json!({"key": "customers", "name": "Customers", "conditions": conditions})
}

async fn post_segment(test: &TestApp, values: u32) -> Reply {
    test.call(&create_segment::OPERATION).json(&segment(values)).send(&test.app).await
}

async fn change_segment(test: &TestApp, values: u32) -> Reply {
    let conditions = json!({"conditions": segment(values)["conditions"]});
    let call = call_for(test, &update_segment::OPERATION, "customers");
    call.json(&conditions).send(&test.app).await
}

async fn flag_bytes(test: &TestApp) -> usize {
    project_number(test, "flagBytes").await
}

#[tokio::test]
async fn writes_count_added_and_removed_bytes() {
    let test = TestApp::start().await;
    create(&test, "one", &listing(1)).await;
    let of_one = flag_bytes(&test).await;
    assert!((1_000..2_000).contains(&of_one), "{of_one}");
    create(&test, "other", &listing(1)).await;
    assert_eq!(flag_bytes(&test).await, 2 * of_one);
    change(&test, "other", listing(101)).await;
    let of_other = flag_bytes(&test).await - of_one;
    assert!(of_other > of_one + 100 * (48 + 10), "{of_other}");
    change(&test, "other", json!({"enabled": false})).await;
    assert_eq!(archive(&test, "other").await.status, 200);
    assert_eq!(flag_bytes(&test).await, of_one + of_other);
    assert_eq!(update(&test, "one", json!({"restoreVersion": 1})).await.status, 200);
    assert_eq!(post_segment(&test, 101).await.status, 201);
    let with_segment = flag_bytes(&test).await;
    assert!(with_segment > of_one + of_other + 100 * (48 + 10));
    assert_eq!(change_segment(&test, 1).await.status, 200);
    assert!(flag_bytes(&test).await < with_segment - 100 * (48 + 10));
    assert_eq!(delete(&test, "other").await.status, 204);
    let call = call_for(&test, &delete_segment::OPERATION, "customers");
    assert_eq!(call.send(&test.app).await.status, 204);
    assert_eq!(flag_bytes(&test).await, of_one);
}

#[tokio::test]
async fn concurrent_writes_are_counted_once() {
    let test = TestApp::start().await;
    let keys: Vec<String> = (0..12).map(|number| format!("flag-{number}")).collect();
    let settled = async |call: tests::call::Call| {
        loop {
            let reply = call.clone().send(&test.app).await;
            // All requests update the project's item, so some give up.
            if reply.problem() != (409, "conflict") {
                return reply.status;
            }
        }
    };
    let lives = keys.iter().enumerate().map(async |(number, key)| {
        let more = listing(1 + 7 * u32::try_from(number).unwrap());
        let created = test.call(CREATE).json(&creation(key, &json!({})));
        assert_eq!(settled(created).await, 201);
        let change = |body: Value| call_for(&test, super::UPDATE, key).json(&body);
        assert_eq!(settled(change(more)).await, 200);
        assert_eq!(settled(change(json!({"archived": true}))).await, 200);
        assert_eq!(settled(call_for(&test, super::DELETE, key)).await, 204);
    });
    create(&test, "stays", &listing(3)).await;
    let before = flag_bytes(&test).await;
    join_all(lives).await;
    assert_eq!(flag_bytes(&test).await, before);
}

#[tokio::test]
async fn full_projects_reject_growth() {
    let test = TestApp::start().await;
    create(&test, "flag", &listing(50)).await;
    change(&test, "flag", listing(20)).await;
    create(&test, "old", &listing(50)).await;
    assert_eq!(archive(&test, "old").await.status, 200);
    assert_eq!(post_segment(&test, 10).await.status, 201);
    let most = u32::try_from(MAX_PROJECT_BYTES).unwrap();
    set_project_number(&test, "flagBytes", most).await;

    let before = stored(&test).await;
    let created = test.call(CREATE).json(&creation("more", &json!({}))).send(&test.app).await;
    assert_eq!(created.problem(), FULL);
    assert!(created.text.contains("the limit of 16000000 bytes"), "{}", created.text);
    let dependent = json!({"prerequisites": [{"flagKey": "flag", "variant": "on"}]});
    let created = test.call(CREATE).json(&creation("more", &dependent)).send(&test.app).await;
    assert_eq!(created.problem(), FULL);
    assert_eq!(update(&test, "flag", listing(21)).await.problem(), FULL);
    assert_eq!(update(&test, "flag", json!({"restoreVersion": 1})).await.problem(), FULL);
    let another = json!({"key": "more", "name": "More", "conditions": segment(1)["conditions"]});
    let created = test.call(&create_segment::OPERATION).json(&another).send(&test.app).await;
    assert_eq!(created.problem(), FULL);
    assert_eq!(change_segment(&test, 11).await.problem(), FULL);
    assert_eq!(stored(&test).await, before);

    // Changes without growth are accepted.
    change(&test, "flag", json!({"enabled": false})).await;
    change(&test, "old", json!({"archived": false})).await;
    assert_eq!(archive(&test, "old").await.status, 200);
    assert_eq!(flag_bytes(&test).await, MAX_PROJECT_BYTES);
    assert_eq!(change_segment(&test, 9).await.status, 200);
    // A deletion releases capacity.
    assert_eq!(delete(&test, "old").await.status, 204);
    change(&test, "flag", json!({"restoreVersion": 1})).await;
}

#[tokio::test]
async fn exactly_fitting_writes_are_accepted() {
    let test = TestApp::start().await;
    create(&test, "first", &listing(50)).await;
    let bytes = u32::try_from(flag_bytes(&test).await).unwrap();
    let room_for = u32::try_from(MAX_PROJECT_BYTES).unwrap() - bytes;
    let second = test.call(CREATE).json(&creation("second", &listing(50)));
    set_project_number(&test, "flagBytes", room_for + 1).await;
    assert_eq!(second.clone().send(&test.app).await.problem(), FULL);
    set_project_number(&test, "flagBytes", room_for).await;
    assert_eq!(second.send(&test.app).await.status, 201);
    assert_eq!(flag_bytes(&test).await, MAX_PROJECT_BYTES);
}
