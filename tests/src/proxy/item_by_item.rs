//! A proxy that shows transactions to readers item by item, as DynamoDB can. A transaction is
//! atomic for other transactions and writes. A Query, a `BatchGetItem` or two `GetItem`s can see
//! only some of its writes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex as StdMutex};
use std::time::Duration;

use local::environment::table_prefix;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{Proxy, ProxyResponse, Upstream};
use crate::wire::Request;

/// Maximum delay between two items of a transaction: for most transactions, and for slow ones.
const MAX_DELAY: Duration = Duration::from_millis(2);
const MAX_SLOW_DELAY: Duration = Duration::from_millis(30);
/// One of this many transactions is slow.
const SLOW_RATIO: u32 = 3;
/// Maximum actions of a transaction.
const MAX_ACTIONS: usize = 100;

/// The proxy.
pub struct ItemByItem {
    upstream: Upstream,
    /// Executed transactions by token: their actions and the response.
    done: StdMutex<HashMap<String, (Value, ProxyResponse)>>,
    /// Writers hold a lock per item, so that they see transactions as a whole.
    locks: StdMutex<HashMap<String, Arc<Mutex<()>>>>,
    random: StdMutex<ChaCha8Rng>,
}

impl ItemByItem {
    /// Returns a proxy in front of an engine. The seed determines the order of items and the
    /// delays.
    pub fn before(engine: &str, seed: u64) -> Self {
        let random = StdMutex::new(ChaCha8Rng::seed_from_u64(seed));
        Self {
            upstream: Upstream::new(engine),
            done: StdMutex::default(),
            locks: StdMutex::default(),
            random,
        }
    }

    /// Executes a transaction one item at a time, in random order.
    async fn transact(&self, request: &Request) -> ProxyResponse {
        let body: Value = serde_json::from_slice(&request.body).expect("the request is JSON");
        let actions =
            body["TransactItems"].as_array().expect("the transaction has actions").clone();
        let token = body["ClientRequestToken"].as_str().map(str::to_owned);
        let _locks = self.lock(actions.iter().flat_map(writes)).await;
        if let Some((earlier, response)) = token.as_ref().and_then(|token| self.done(token)) {
            return if earlier == body["TransactItems"] { response } else { mismatch() };
        }
        if actions.len() == 1 || !self.would_succeed(request, &actions).await {
            return self.upstream.forward(request).await;
        }
        let (mut order, delays) = {
            let mut random = self.random.lock().expect("not poisoned");
            let mut order: Vec<&Value> = actions.iter().collect();
            order.shuffle(&mut *random);
            let is_slow = random.random_ratio(1, SLOW_RATIO);
            let longest = if is_slow { MAX_SLOW_DELAY } else { MAX_DELAY };
            let delay = |_| random.random_range(Duration::ZERO..longest);
            let delays: Vec<Duration> = order.iter().map(delay).collect();
            (order, delays)
        };
        // Condition checks hold and write nothing.
        order.retain(|action| action["ConditionCheck"].is_null());
        let mut consumed = Vec::new();
        for (number, (action, delay)) in order.into_iter().zip(delays).enumerate() {
            if number > 0 {
                tokio::time::sleep(delay).await;
            }
            let mut alone = json!({ "TransactItems": [action] });
            alone["ReturnConsumedCapacity"] = body["ReturnConsumedCapacity"].clone();
            let (status, response) = self.upstream.forward_as(request, &alone).await;
            let response: Value = serde_json::from_slice(&response).expect("the response is JSON");
            assert_eq!(status, 200, "part of a valid transaction failed: {response}");
            consumed.extend(response["ConsumedCapacity"].as_array().cloned().unwrap_or_default());
        }
        let mut response = json!({});
        if !consumed.is_empty() {
            response["ConsumedCapacity"] = json!(consumed);
        }
        let response = (200, response.to_string().into_bytes());
        if let Some(token) = token {
            let done = (body["TransactItems"].clone(), response.clone());
            self.done.lock().expect("not poisoned").insert(token, done);
        }
        response
    }

    fn done(&self, token: &str) -> Option<(Value, ProxyResponse)> {
        self.done.lock().expect("not poisoned").get(token).cloned()
    }

    /// Locks the items of some writes.
    async fn lock<'w>(&self, writes: impl Iterator<Item = &'w Value>) -> Vec<OwnedMutexGuard<()>> {
        // A fixed order prevents deadlocks.
        let names: BTreeSet<String> = writes.map(name_of_item).collect();
        let mut held = Vec::with_capacity(names.len());
        for name in names {
            let lock = {
                let mut locks = self.locks.lock().expect("not poisoned");
                Arc::clone(locks.entry(name).or_default())
            };
            held.push(lock.lock_owned().await);
        }
        held
    }

    /// `true` if the transaction would succeed. It is sent with an additional action that fails.
    async fn would_succeed(&self, request: &Request, actions: &[Value]) -> bool {
        assert!(actions.len() < MAX_ACTIONS, "no space for the failing action");
        let mut dry_run = actions.to_vec();
        dry_run.push(failing_check());
        let dry_run = json!({ "TransactItems": dry_run });
        let (_, response) = self.upstream.forward_as(request, &dry_run).await;
        let response: Value = serde_json::from_slice(&response).expect("the response is JSON");
        let reasons = response["CancellationReasons"].as_array();
        let Some([own @ .., failing]) = reasons.map(Vec::as_slice) else { return false };
        assert_eq!(failing["Code"], "ConditionalCheckFailed", "{response}");
        own.iter().all(|reason| reason["Code"] == "None")
    }
}

impl Proxy for ItemByItem {
    async fn respond(&self, request: Request) -> ProxyResponse {
        match &*request.target {
            "TransactWriteItems" => self.transact(&request).await,
            "DeleteItem" | "PutItem" | "UpdateItem" => {
                let body = serde_json::from_slice(&request.body).expect("the request is JSON");
                let _locks = self.lock(std::iter::once(&body)).await;
                self.upstream.forward(&request).await
            }
            // Reads, and batches of writes, whose items are never part of a transaction.
            _ => self.upstream.forward(&request).await,
        }
    }
}

/// Returns the write of an action, without its kind.
fn writes(action: &Value) -> impl Iterator<Item = &Value> {
    action.as_object().into_iter().flat_map(serde_json::Map::values)
}

/// Returns the name of an item's lock. Tables with keys other than `pk` and `sk` have one lock for
/// all items.
fn name_of_item(write: &Value) -> String {
    let key = if write["Key"].is_null() { &write["Item"] } else { &write["Key"] };
    format!("{} {} {}", write["TableName"], key["pk"], key["sk"])
}

/// Returns a check of an item that never exists.
fn failing_check() -> Value {
    json!({"ConditionCheck": {
        "TableName": format!("{}errors", table_prefix()),
        "Key": {"pk": {"S": "never"}, "sk": {"S": "there"}},
        "ConditionExpression": "attribute_exists(pk)",
    }})
}

/// Returns DynamoDB's error for a token that was used for another transaction.
fn mismatch() -> ProxyResponse {
    let name = "com.amazonaws.dynamodb.v20120810#IdempotentParameterMismatchException";
    let response = json!({"__type": name, "Message": "the token is of another transaction"});
    (400, response.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};

    use super::*;
    use crate::app::{TestApp, items};

    #[tokio::test]
    async fn transactions_are_visible_item_by_item() {
        const ITEMS: usize = 30;
        let test = TestApp::start().await;
        let proxy = ItemByItem::before(&test.engine.endpoint(), 1);
        let endpoint = crate::proxy::serve(Arc::new(proxy)).await;
        let client = shared::dynamodb::client::for_endpoint(&endpoint).unwrap();
        let put = |number: usize| {
            let string = |value: String| AttributeValue::S(value);
            let put = Put::builder().table_name(format!("{}errors", table_prefix()));
            let put = put.item("pk", string("x".to_owned())).item("sk", string(number.to_string()));
            let put = put.condition_expression("attribute_not_exists(pk)");
            TransactWriteItem::builder().put(put.build().unwrap()).build()
        };
        let transaction = || {
            let transaction = client.transact_write_items().client_request_token("token");
            transaction.set_transact_items(Some((0..ITEMS).map(put).collect()))
        };
        let watch = async {
            let mut seen = BTreeSet::new();
            while !seen.contains(&ITEMS) {
                seen.insert(items(&test.client, "errors").await.len());
            }
            seen
        };
        let (written, seen) = tokio::join!(transaction().send(), watch);
        written.unwrap();
        assert!(seen.len() > 3, "{seen:?}");
        transaction().send().await.unwrap();
        let rejected = transaction().client_request_token("another").send().await.unwrap_err();
        let rejected = rejected.into_service_error();
        assert!(rejected.is_transaction_canceled_exception(), "{rejected:?}");
    }
}
