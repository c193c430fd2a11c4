//! Feature flags.

use serde_json::{Value, json};
use tests::app::TestApp;

use super::{answered, assert_uses_all, call, operation};

pub(super) const FUNCTIONS: [&str; 7] = [
    create_feature_flag::OPERATION,
    list_feature_flags::OPERATION,
    get_feature_flag::OPERATION,
    update_feature_flag::OPERATION,
    delete_feature_flag::OPERATION,
    evaluate_feature_flag::OPERATION,
    evaluate_feature_flags::OPERATION,
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
        let create = call(&test, operation!(create_feature_flag));
        let first = create.clone().header("idempotency-key", "k").json(&flag("first", None));
        answered(&test, first.clone(), 201).await;
        answered(&test, first, 201).await;
        // A prerequisite is checked; one that has prerequisites itself is read.
        answered(&test, create.clone().json(&flag("second", Some("first"))), 201).await;
        answered(&test, create.json(&flag("third", Some("second"))), 201).await;

        let update = call(&test, operation!(update_feature_flag)).parameter("key", "third");
        let change = async |body: Value| answered(&test, update.clone().json(&body), 200).await;
        change(json!({"enabled": true})).await;
        change(json!({"prerequisites": prerequisites(Some("first"))})).await;
        change(json!({"archived": true})).await;
        change(json!({"archived": false})).await;
        change(json!({"prerequisites": null})).await;
        change(json!({"prerequisites": prerequisites(Some("second"))})).await;

        let of_third = |call: tests::call::Call| call.parameter("key", "third");
        answered(&test, of_third(call(&test, operation!(get_feature_flag))), 200).await;
        answered(&test, call(&test, operation!(list_feature_flags)), 200).await;
        let context = json!({"context": {"targetingKey": "ann"}});
        let one = of_third(call(&test, operation!(evaluate_feature_flag))).json(&context);
        answered(&test, one, 200).await;
        let all = call(&test, operation!(evaluate_feature_flags)).json(&context);
        answered(&test, all, 200).await;

        let delete = of_third(call(&test, operation!(delete_feature_flag)));
        answered(&test, delete.clone(), 409).await;
        change(json!({"archived": true})).await;
        answered(&test, delete, 204).await;
    });
    assert_uses_all(&FUNCTIONS, scenario).await;
}
