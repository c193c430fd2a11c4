//! The largest insight, and the requests to DynamoDB for it.

use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use serde_json::{Value, json};
use shared::app::{App, Ids};
use tests::app::{TestApp, app_with};
use tests::insights::{filled, upload};

use super::{
    ADD, MERGE, SPLIT, add, call_for, create, get, id_of, merge, referenced_chunks, split,
    split_of, stored_of,
};

/// DynamoDB's limits.
const MAX_ACTIONS: usize = 100;
const MAX_TRANSACTION_BYTES: usize = 4 * 1024 * 1024;
const MAX_ITEM_BYTES: usize = 400 * 1024;

/// Records the bodies of all transactions.
#[derive(Debug, Clone, Default)]
struct Transactions(Arc<Mutex<Vec<Vec<u8>>>>);

impl Intercept for Transactions {
    fn name(&self) -> &'static str {
        "Transactions"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request();
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        if target.ends_with("TransactWriteItems") {
            let body = request.body().bytes().unwrap_or_default().to_vec();
            self.0.lock().map_err(|error| error.to_string())?.push(body);
        }
        Ok(())
    }
}

impl Transactions {
    /// Returns an app whose transactions are recorded.
    fn of(test: &TestApp) -> (App, Self) {
        let kept = Self::default();
        let config = test.client.config().to_builder().interceptor(kept.clone()).build();
        let mut app = app_with(Client::from_conf(config));
        app.ids = Ids::Random;
        (app, kept)
    }

    /// Checks all transactions since the last check, and returns the number of actions of each.
    fn check(&self) -> Vec<usize> {
        let bodies = std::mem::take(&mut *self.0.lock().unwrap());
        let check = |body: Vec<u8>| {
            // Bytes take a third more space in JSON than in DynamoDB.
            assert!(body.len() < MAX_TRANSACTION_BYTES, "{} bytes", body.len());
            let body: Value = serde_json::from_slice(&body).unwrap();
            let actions = body["TransactItems"].as_array().unwrap();
            assert!(actions.len() <= MAX_ACTIONS, "{} actions", actions.len());
            for action in actions {
                let bytes = action.to_string().len();
                assert!(bytes < MAX_ITEM_BYTES, "{bytes} bytes");
            }
            actions.len()
        };
        bodies.into_iter().map(check).collect()
    }
}

#[tokio::test]
async fn insights_have_at_most_18000_pain_points() {
    let test = TestApp::start().await;
    let (app, transactions) = Transactions::of(&test);
    let id = filled(&test.app.store, test.project_id, 18_000, 36).await.to_string();
    let whole = get(&test, &id).await;
    assert_eq!(whole.body["occurrences"], 18_000);
    let rejected = add(&test, &id, [20_000]).await;
    assert_eq!(rejected.problem(), (409, "insight_full"));
    assert_eq!(add(&test, &id, [17_999, 20_000]).await.problem(), (409, "insight_full"));
    assert_eq!(add(&test, &id, [0, 17_999]).await.status, 200, "the insight already has these");
    let other = create(&test, [20_000]).await;
    assert_eq!(merge(&test, &other, &id).await.problem(), (409, "insight_full"));
    assert_eq!(merge(&test, &id, &other).await.problem(), (409, "insight_full"));

    // Each chunk loses some of its members, which are marked as removed.
    let scattered = split_of((0..18_000).step_by(36));
    let call = call_for(&test, SPLIT, &id).header("idempotency-key", "k").json(&scattered);
    let split_off = call.clone().send(&app).await;
    assert_eq!((split_off.status, &split_off.body["occurrences"]), (201, &json!(500)));
    let actions = transactions.check();
    // Both insights, the split, the new chunks, the announcement, the stored response.
    assert_eq!(actions, [2 + 1 + 2 + 1 + 1]);
    assert_eq!(call.send(&app).await.body, split_off.body);
    transactions.check();
    assert_eq!(get(&test, &id).await.body["occurrences"], 17_500);
    assert_eq!(stored_of(&test, "chunk#").await, referenced_chunks(&test).await);

    // There is capacity again, up to the last pain point.
    let call = call_for(&test, ADD, &id).json(&upload(30_000..30_500));
    let reply = call.header("idempotency-key", "k").send(&app).await;
    assert_eq!((reply.status, &reply.body["occurrences"]), (200, &json!(18_000)));
    assert_eq!(transactions.check().len(), 6);
    assert_eq!(merge(&test, &id_of(&split_off), &id).await.problem(), (409, "insight_full"));
    let added = id_of(&split(&test, &id, 30_000..30_500).await);
    let call = call_for(&test, MERGE, &id_of(&split_off)).json(&json!({"into": id}));
    let merged = call.header("idempotency-key", "k").send(&app).await;
    assert_eq!((merged.status, &merged.body), (200, &whole.body));
    transactions.check();
    assert_eq!(get(&test, &added).await.body["occurrences"], 500);
    assert_eq!(stored_of(&test, "chunk#").await, referenced_chunks(&test).await);
}
