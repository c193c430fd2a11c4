//! Functions for replay insights.

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use tests::app::TestApp;
use tests::call::Call;
use tests::insights::{self, upload};

use super::{assert_uses_all, id, items, send};

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
    test.call(&create_insight::OPERATION).json(&body)
}

fn split_of(numbers: std::ops::Range<usize>) -> Value {
    json!({ "painPointIds": numbers.map(insights::id).collect::<Vec<_>>() })
}

/// Adds an idempotency key. A rejected request then looks for its earlier success.
fn once(call: Call) -> Call {
    call.header("idempotency-key", "k")
}

/// Sets the revision of all chunks, as if they were being written.
pub(super) async fn set_revision(test: &TestApp, revision: u32) {
    for item in test.items(TABLE).await {
        let (pk, sk) = (item["pk"].as_s().unwrap(), item["sk"].as_s().unwrap());
        if pk.starts_with("chunk#") {
            let revision = AttributeValue::N(revision.to_string());
            test.tamper(TABLE, [("pk", pk), ("sk", sk)], "revision", revision).await;
        }
    }
}

/// Lists insights by each index, over several pages, and while one of them is being changed.
async fn list_all(test: &TestApp) {
    let list = test.call(&list_insights::OPERATION);
    for list in [list.clone(), list.clone().query("status", "open")] {
        let page = send(test, list.clone().query("limit", 1), 200).await;
        assert_eq!(items(&page).len(), 1);
        let next = page.body["nextCursor"].as_str().unwrap();
        send(test, list.query("limit", 1).query("cursor", next), 200).await;
    }
    set_revision(test, 99).await;
    let left_out = send(test, list, 200).await;
    assert!(items(&left_out).iter().all(|insight| insight["status"] == "merged"));
}

#[tokio::test]
async fn insight_functions_use_exactly_their_permissions() {
    let test = TestApp::start().await;
    let scenario = Box::pin(async {
        let of = |operation, id: &str| test.call(operation).parameter("insightId", id);

        // Pain points of another insight are rejected, after a read of their owner.
        let first = id(&send(&test, once(creation(&test, 0..500)), 201).await);
        send(&test, once(creation(&test, 0..500)), 201).await;
        let second = id(&send(&test, creation(&test, 500..510), 201).await);
        let add = of(&add_pain_points::OPERATION, &second);
        send(&test, once(add.clone()).json(&upload(510..512)), 200).await;
        send(&test, add.header("idempotency-key", "other").json(&upload(0..1)), 409).await;

        send(&test, of(&get_insight::OPERATION, &first), 200).await;
        send(&test, of(&list_pain_points::OPERATION, &first), 200).await;
        let update = of(&update_insight::OPERATION, &first).json(&json!({"viewed": true}));
        send(&test, update, 200).await;

        // The rest of the first chunk fits into the second one.
        let split = of(&split_insight::OPERATION, &first);
        send(&test, once(split.clone()).json(&split_of(0..300)), 201).await;
        send(&test, once(split.clone()).json(&split_of(0..300)), 201).await;
        send(&test, split.json(&split_of(0..300)), 201).await;

        // The members of the merged insight also fit into the target's chunk.
        let third = id(&send(&test, creation(&test, 600..602), 201).await);
        let merge = once(of(&merge_insights::OPERATION, &second));
        send(&test, merge.clone().json(&json!({"into": third})), 200).await;
        send(&test, merge.json(&json!({"into": first})), 409).await;
        let undo = of(&update_insight::OPERATION, &second).json(&json!({"status": "open"}));
        send(&test, undo, 200).await;
        let merge = of(&merge_insights::OPERATION, &second);
        send(&test, merge.json(&json!({"into": third})), 200).await;

        list_all(&test).await;
    });
    assert_uses_all(&FUNCTIONS, scenario).await;
}
