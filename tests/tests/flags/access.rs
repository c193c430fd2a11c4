//! Permissions, flag keys, and the order of checks.

use serde_json::{Value, json};
use tests::app::{PROJECT, TestApp};
use tests::call::{Call, Gateway};

use super::{
    CREATE, DELETE, EVALUATE, GET, LIST, OPERATIONS_ON_A_FLAG, UPDATE, archive, call, call_for,
    create, creation, other_project, stored, update, valid,
};

/// Creates a flag that is valid for all operations except evaluations.
async fn archived(test: &TestApp) {
    create(test, "f", &json!({})).await;
    assert_eq!(archive(test, "f").await.status, 200);
}

#[tokio::test]
async fn flags_are_found_only_in_their_own_project() {
    let test = TestApp::start().await;
    other_project(&test).await;
    archived(&test).await;
    let before = stored(&test).await;
    for operation in OPERATIONS_ON_A_FLAG {
        for (project, key) in [("other", "f"), (PROJECT, "g"), (PROJECT, "F")] {
            let reply = valid(operation, project, key).key(&test.key).send(&test.app).await;
            assert_eq!(reply.problem(), (404, "flag_not_found"), "{}", operation.name);
        }
        // The project's own item and other texts are not flags.
        for key in ["#", "%23", "-f", "f/", "..", "é", "%C3%28", " f", &"f".repeat(129)] {
            let reply = valid(operation, PROJECT, key).key(&test.key).send(&test.app).await;
            assert_eq!(reply.problem(), (404, "flag_not_found"), "{} {key}", operation.name);
        }
    }
    assert_eq!(stored(&test).await, before);
}

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
async fn checks_run_from_body_to_flag() {
    let test = TestApp::start().await;
    let bad = |body: &Value| call_for(&test, UPDATE, "no").json(body);
    let reply = bad(&json!({"enabled": 1, "surprise": 1})).send(&test.app).await;
    let expected = [("/surprise", "unknown_field"), ("/enabled", "invalid_type")];
    assert_eq!(reply.violations(), expected);
    let reply = bad(&json!({})).header("if-match", "\"7\"").send(&test.app).await;
    assert_eq!(reply.problem(), (404, "flag_not_found"));

    // The version is checked before the fields of the body that concern the flag and its state.
    archived(&test).await;
    let stale = call_for(&test, UPDATE, "f").header("if-match", "\"7\"");
    let reply = stale.json(&json!({"offVariant": "gone"})).send(&test.app).await;
    assert_eq!(reply.problem(), (412, "version_mismatch"));
    let reply = update(&test, "f", json!({"offVariant": "gone"})).await;
    assert_eq!(reply.violations(), [("/offVariant", "unknown_variant")]);
    let reply = call_for(&test, DELETE, "f").header("if-match", "\"7\"").send(&test.app).await;
    assert_eq!(reply.problem(), (412, "version_mismatch"));
}

#[tokio::test]
async fn evaluations_check_project_body_and_flag_in_order() {
    let test = TestApp::start().await;
    let code = async |project: &str, body: &str| {
        let call = Call::of(EVALUATE).parameter("idOrSlug", project).parameter("key", "no");
        let reply = call.key(&test.key).bytes(body).send(&test.app).await;
        (reply.status, reply.body["errorCode"].as_str().unwrap().to_owned())
    };
    assert_eq!(code("missing", "{").await, (404, "FLAG_NOT_FOUND".to_owned()));
    assert_eq!(code(PROJECT, "{").await, (400, "PARSE_ERROR".to_owned()));
    assert_eq!(code(PROJECT, "{}").await, (404, "FLAG_NOT_FOUND".to_owned()));
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
    assert_eq!(trips(call(&test, LIST)).await, 1);
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
    assert_eq!(trips(call(&test, CREATE).json(&creation("g", &super::on(&["f"])))).await, 1);
    assert_eq!(trips(patch("g", json!({"archived": true}))).await, 4);
    // The flag, the revision, all dependencies, the prerequisites, and the transaction.
    assert_eq!(trips(patch("g", json!({"archived": false}))).await, 5);
    assert_eq!(trips(patch("g", json!({"prerequisites": []}))).await, 2);
    assert_eq!(trips(patch("g", json!({"archived": true}))).await, 4);
    assert_eq!(trips(call_for(&test, DELETE, "g")).await, 2);
}
