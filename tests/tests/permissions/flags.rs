//! Functions for feature flags.

use std::time::Duration;

use serde_json::{Value, json};
use tests::app::TestApp;

use super::{assert_uses_all, send};

pub(super) const FUNCTIONS: [&str; 15] = [
    create_feature_flag::OPERATION.name,
    list_feature_flags::OPERATION.name,
    get_feature_flag::OPERATION.name,
    list_flag_changes::OPERATION.name,
    update_feature_flag::OPERATION.name,
    delete_feature_flag::OPERATION.name,
    evaluate_feature_flag::OPERATION.name,
    evaluate_feature_flags::OPERATION.name,
    create_segment::OPERATION.name,
    list_segments::OPERATION.name,
    get_segment::OPERATION.name,
    update_segment::OPERATION.name,
    delete_segment::OPERATION.name,
    get_flagd_configuration::OPERATION.name,
    test_feature_flag::OPERATION.name,
];

fn flag(key: &str, prerequisite: Option<&str>) -> Value {
    json!({
        "key": key,
        "name": "A flag",
        "type": "boolean",
        "prerequisites": prerequisites(prerequisite),
    })
}

fn prerequisites(key: Option<&str>) -> Vec<Value> {
    key.iter().map(|key| json!({"flagKey": key, "variant": "on"})).collect()
}

#[tokio::test]
async fn flag_functions_use_exactly_their_permissions() {
    let test = TestApp::start().await;
    let scenario = Box::pin(async {
        let create = test.call(&create_feature_flag::OPERATION);
        let first = create.clone().header("idempotency-key", "k").json(&flag("first", None));
        send(&test, first.clone(), 201).await;
        send(&test, first, 201).await;
        // A prerequisite is only checked; one with its own prerequisites is read.
        send(&test, create.clone().json(&flag("second", Some("first"))), 201).await;
        send(&test, create.json(&flag("third", Some("second"))), 201).await;

        let update = test.call(&update_feature_flag::OPERATION).parameter("key", "third");
        let change = async |body: Value| send(&test, update.clone().json(&body), 200).await;
        change(json!({"enabled": true})).await;
        change(json!({"prerequisites": prerequisites(Some("first"))})).await;
        change(json!({"archived": true})).await;
        change(json!({"archived": false})).await;
        change(json!({"prerequisites": null})).await;
        change(json!({"prerequisites": prerequisites(Some("second"))})).await;

        // A segment and a flag that uses it.
        let conditions = json!([{"attribute": "plan", "operator": "equals", "values": ["pro"]}]);
        let segment = json!({"key": "beta", "name": "Beta", "conditions": conditions});
        let create = test.call(&create_segment::OPERATION).header("idempotency-key", "s");
        send(&test, create.json(&segment), 201).await;
        let of_segment = |call: tests::call::Call| call.parameter("key", "beta");
        send(&test, of_segment(test.call(&get_segment::OPERATION)), 200).await;
        send(&test, test.call(&list_segments::OPERATION), 200).await;
        let rename = of_segment(test.call(&update_segment::OPERATION));
        send(&test, rename.json(&json!({"name": "Testers"})), 200).await;
        let uses = json!([{"operator": "in_segment", "values": ["beta"]}]);
        let rules = json!([{"id": "r", "conditions": uses, "serve": {"variant": "on"}}]);
        change(json!({"rules": rules})).await;
        let delete = of_segment(test.call(&delete_segment::OPERATION));
        send(&test, delete.clone(), 409).await;
        change(json!({"rules": null})).await;
        send(&test, delete, 204).await;

        let of_third = |call: tests::call::Call| call.parameter("key", "third");
        send(&test, of_third(test.call(&get_feature_flag::OPERATION)), 200).await;
        send(&test, test.call(&list_feature_flags::OPERATION), 200).await;
        let context = json!({"context": {"targetingKey": "ann"}});
        // The flags are read twice, then only their revision.
        for _ in 0..3 {
            let one = of_third(test.call(&evaluate_feature_flag::OPERATION)).json(&context);
            send(&test, one, 200).await;
            let all = test.call(&evaluate_feature_flags::OPERATION).json(&context);
            send(&test, all, 200).await;
            send(&test, test.call(&get_flagd_configuration::OPERATION), 200).await;
            test.pass(Duration::from_secs(5));
        }

        // The flag has a prerequisite.
        let tested = of_third(test.call(&test_feature_flag::OPERATION)).json(&json!({}));
        send(&test, tested, 200).await;
        change(json!({"restoreVersion": 1})).await;
        send(&test, of_third(test.call(&list_flag_changes::OPERATION)), 200).await;

        let delete = of_third(test.call(&delete_feature_flag::OPERATION));
        send(&test, delete.clone(), 409).await;
        change(json!({"archived": true})).await;
        send(&test, delete, 204).await;
    });
    assert_uses_all(&FUNCTIONS, scenario).await;
}
