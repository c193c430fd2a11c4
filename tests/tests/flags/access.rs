//! Flag keys in paths, and the number of round trips.

use serde_json::{Value, json};
use tests::app::{PROJECT, TestApp};
use tests::call::Gateway;

use super::{CREATE, DELETE, EVALUATE, GET, LIST, UPDATE, call_for, create, creation, valid};

#[tokio::test]
async fn projects_have_slugs_and_keys_can_be_encoded() {
    let test = TestApp::start().await;
    create(&test, "a.b_c-1", &json!({})).await;
    for project in [PROJECT.to_owned(), test.project_id.to_string().to_uppercase()] {
        for gateway in [Gateway::HttpApi, Gateway::RestApi] {
            for key in ["a.b_c-1", "a%2Eb%5Fc-1"] {
                for operation in [GET, EVALUATE] {
                    let call = valid(operation, &project, key).gateway(gateway).key(&test.key);
                    let reply = call.send(&test.app).await;
                    assert_eq!((reply.status, &reply.body["key"]), (200, &json!("a.b_c-1")));
                }
            }
        }
    }
}

#[tokio::test]
async fn warm_functions_make_few_round_trips() {
    let test = TestApp::start().await;
    create(&test, "f", &json!({})).await;
    let trips = async |call: tests::call::Call| {
        test.round_trips();
        let reply = call.send(&test.app).await;
        assert!(reply.status < 300, "{}", reply.body);
        test.round_trips()
    };
    let patch = |key: &str, patch: Value| call_for(&test, UPDATE, key).json(&patch);
    assert_eq!(trips(test.call(LIST)).await, 1);
    assert_eq!(trips(call_for(&test, GET, "f")).await, 1);
    assert_eq!(trips(patch("f", json!({"enabled": false}))).await, 2);
    assert_eq!(
        trips(patch("f", json!({"enabled": false}))).await,
        1,
        "an equal patch writes nothing"
    );
    // A change that can affect dependents, in a project without dependencies.
    assert_eq!(trips(patch("f", json!({"archived": true}))).await, 3);
    assert_eq!(trips(patch("f", json!({"archived": false}))).await, 2);
    assert_eq!(trips(test.call(CREATE).json(&creation("g", &super::on(&["f"])))).await, 1);
    assert_eq!(trips(patch("g", json!({"archived": true}))).await, 4);
    // The flag, the revision, all dependencies, the prerequisites, and the transaction.
    assert_eq!(trips(patch("g", json!({"archived": false}))).await, 5);
    assert_eq!(trips(patch("g", json!({"prerequisites": []}))).await, 2);
    assert_eq!(trips(patch("g", json!({"archived": true}))).await, 4);
    assert_eq!(trips(call_for(&test, DELETE, "g")).await, 2);
}
