//! Replay insights.

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use tests::app::TestApp;
use tests::call::Call;
use tests::insights::{self, upload};

use super::{answered, assert_uses_all, call, id, items};

pub(super) const FUNCTIONS: [&str; 8] = [
    add_pain_points::OPERATION.name,
    create_insight::OPERATION.name,
    get_insight::OPERATION.name,
    list_insights::OPERATION.name,
    list_pain_points::OPERATION.name,
    merge_insights::OPERATION.name,
    split_insight::OPERATION.name,
    update_insight::OPERATION.name,
];

const TABLE: &str = "replay-insights";

fn creation(test: &TestApp, numbers: std::ops::Range<usize>) -> Call {
    let mut body = upload(numbers);
    body["title"] = json!("Checkout");
    call(test, &create_insight::OPERATION).json(&body)
}

fn split_of(numbers: std::ops::Range<usize>) -> Value {
    json!({ "painPointIds": numbers.map(insights::id).collect::<Vec<_>>() })
}

/// The call under an idempotency key, which makes refusals look for their own earlier success.
fn once(call: Call) -> Call {
    call.header("idempotency-key", "k")
}

/// Sets the revision of all chunks, as if they were just being written.
pub(super) async fn set_revision(test: &TestApp, revision: u32) {
    for item in test.items(TABLE).await {
        let (pk, sk) = (item["pk"].as_s().unwrap(), item["sk"].as_s().unwrap());
        if pk.starts_with("chunk#") {
            let revision = AttributeValue::N(revision.to_string());
            test.tamper(TABLE, [("pk", pk), ("sk", sk)], "revision", revision).await;
        }
    }
}

/// Lists insights by each index, from page to page, and while one of them is being changed.
async fn list_all(test: &TestApp) {
    let list = call(test, &list_insights::OPERATION);
    for list in [list.clone(), list.clone().query("status", "open")] {
        let page = answered(test, list.clone().query("limit", 1), 200).await;
        assert_eq!(items(&page).len(), 1);
        let next = page.body["nextCursor"].as_str().unwrap();
        answered(test, list.query("limit", 1).query("cursor", next), 200).await;
    }
    set_revision(test, 99).await;
    let left_out = answered(test, list, 200).await;
    assert!(items(&left_out).iter().all(|insight| insight["status"] == "merged"));
}

#[tokio::test]
async fn functions_of_insights_may_do_what_they_do_and_no_more() {
    let test = TestApp::start().await;
    let scenario = Box::pin(async {
        let of = |operation, id: &str| call(&test, operation).parameter("insightId", id);

        // Pain points that another insight has are refused, after a look at who has them.
        let first = id(&answered(&test, once(creation(&test, 0..500)), 201).await);
        answered(&test, once(creation(&test, 0..500)), 201).await;
        let second = id(&answered(&test, creation(&test, 500..510), 201).await);
        let add = of(&add_pain_points::OPERATION, &second);
        answered(&test, once(add.clone()).json(&upload(510..512)), 200).await;
        answered(&test, add.header("idempotency-key", "other").json(&upload(0..1)), 409).await;

        answered(&test, of(&get_insight::OPERATION, &first), 200).await;
        answered(&test, of(&list_pain_points::OPERATION, &first), 200).await;
        let update = of(&update_insight::OPERATION, &first).json(&json!({"viewed": true}));
        answered(&test, update, 200).await;

        // What is left of the first chunk finds room in the second one.
        let split = of(&split_insight::OPERATION, &first);
        answered(&test, once(split.clone()).json(&split_of(0..300)), 201).await;
        answered(&test, once(split.clone()).json(&split_of(0..300)), 201).await;
        answered(&test, split.json(&split_of(0..300)), 201).await;

        // So do the members of the merged insight in the chunk of the receiving one.
        let third = id(&answered(&test, creation(&test, 600..602), 201).await);
        let merge = once(of(&merge_insights::OPERATION, &second));
        answered(&test, merge.clone().json(&json!({"into": third})), 200).await;
        answered(&test, merge.json(&json!({"into": first})), 409).await;

        list_all(&test).await;
    });
    assert_uses_all(&FUNCTIONS, scenario).await;
}
