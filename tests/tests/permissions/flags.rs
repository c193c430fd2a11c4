//! Feature flags.

use std::time::Duration;

use serde_json::{Value, json};
use tests::app::TestApp;

use super::{answered, assert_uses_all, call};

pub(super) const FUNCTIONS: [&str; 14] = [
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
async fn functions_of_feature_flags_may_do_what_they_do_and_no_more() {
    let test = TestApp::start().await;
    let scenario = Box::pin(async {
        let create = call(&test, &create_feature_flag::OPERATION);
        let first = create.clone().header("idempotency-key", "k").json(&flag("first", None));
        answered(&test, first.clone(), 201).await;
        answered(&test, first, 201).await;
        // A prerequisite is checked; one that has prerequisites itself is read.
        answered(&test, create.clone().json(&flag("second", Some("first"))), 201).await;
        answered(&test, create.json(&flag("third", Some("second"))), 201).await;

        let update = call(&test, &update_feature_flag::OPERATION).parameter("key", "third");
        let change = async |body: Value| answered(&test, update.clone().json(&body), 200).await;
        change(json!({"enabled": true})).await;
        change(json!({"prerequisites": prerequisites(Some("first"))})).await;
        change(json!({"archived": true})).await;
        change(json!({"archived": false})).await;
        change(json!({"prerequisites": null})).await;
        change(json!({"prerequisites": prerequisites(Some("second"))})).await;

        // A segment, and the flag that uses it.
        let conditions = json!([{"attribute": "plan", "operator": "equals", "values": ["pro"]}]);
        let segment = json!({"key": "beta", "name": "Beta", "conditions": conditions});
        let create = call(&test, &create_segment::OPERATION).header("idempotency-key", "s");
        answered(&test, create.json(&segment), 201).await;
        let of_segment = |call: tests::call::Call| call.parameter("key", "beta");
        answered(&test, of_segment(call(&test, &get_segment::OPERATION)), 200).await;
        answered(&test, call(&test, &list_segments::OPERATION), 200).await;
        let rename = of_segment(call(&test, &update_segment::OPERATION));
        answered(&test, rename.json(&json!({"name": "Testers"})), 200).await;
        let uses = json!([{"operator": "in_segment", "values": ["beta"]}]);
        let rules = json!([{"id": "r", "conditions": uses, "serve": {"variant": "on"}}]);
        change(json!({"rules": rules})).await;
        let delete = of_segment(call(&test, &delete_segment::OPERATION));
        answered(&test, delete.clone(), 409).await;
        change(json!({"rules": null})).await;
        answered(&test, delete, 204).await;

        let of_third = |call: tests::call::Call| call.parameter("key", "third");
        answered(&test, of_third(call(&test, &get_feature_flag::OPERATION)), 200).await;
        answered(&test, call(&test, &list_feature_flags::OPERATION), 200).await;
        let context = json!({"context": {"targetingKey": "ann"}});
        // The flags are read twice, then only their state.
        for _ in 0..3 {
            let one = of_third(call(&test, &evaluate_feature_flag::OPERATION)).json(&context);
            answered(&test, one, 200).await;
            let all = call(&test, &evaluate_feature_flags::OPERATION).json(&context);
            answered(&test, all, 200).await;
            answered(&test, call(&test, &get_flagd_configuration::OPERATION), 200).await;
            test.pass(Duration::from_secs(5));
        }

        change(json!({"restoreVersion": 1})).await;
        answered(&test, of_third(call(&test, &list_flag_changes::OPERATION)), 200).await;

        let delete = of_third(call(&test, &delete_feature_flag::OPERATION));
        answered(&test, delete.clone(), 409).await;
        change(json!({"archived": true})).await;
        answered(&test, delete, 204).await;
    });
    assert_uses_all(&FUNCTIONS, scenario).await;
}
