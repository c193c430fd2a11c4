//! A proxy that shows a transaction to readers item by item, as DynamoDB may: a transaction is atomic
//! to other transactions and to writes, but a Query, a `BatchGetItem` or two `GetItem`s may see some of
//! what it writes and not yet the rest.

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

/// The longest time from one item of a transaction to the next, of most transactions and of some.
const LONGEST_DELAY: Duration = Duration::from_millis(2);
const LONGEST_OF_SOME: Duration = Duration::from_millis(30);
/// One in how many transactions is one of these.
const SOME: u32 = 3;
/// The most actions of a transaction.
const MOST_ACTIONS: usize = 100;

/// The proxy.
pub struct ItemByItem {
    upstream: Upstream,
    /// Transactions that were carried out, by their tokens: what they asked for, and the answer.
    done: StdMutex<HashMap<String, (Value, ProxyResponse)>>,
    /// Who writes an item holds its lock, so that writers see transactions as a whole.
    locks: StdMutex<HashMap<String, Arc<Mutex<()>>>>,
    random: StdMutex<ChaCha8Rng>,
}

impl ItemByItem {
    /// A proxy in front of an engine. Of the seed follow the order of items and the delays.
    pub fn before(engine: &str, seed: u64) -> Self {
        let random = StdMutex::new(ChaCha8Rng::seed_from_u64(seed));
        Self {
            upstream: Upstream::new(engine),
            done: StdMutex::default(),
            locks: StdMutex::default(),
            random,
        }
    }

    /// Carries out a transaction, one item after the other in any order.
    async fn transact(&self, request: &Request) -> ProxyResponse {
        let body: Value = serde_json::from_slice(&request.body).expect("a request is JSON");
        let actions = body["TransactItems"].as_array().expect("a transaction has actions").clone();
        let token = body["ClientRequestToken"].as_str().map(str::to_owned);
        let _locks = self.lock(actions.iter().flat_map(writes)).await;
        if let Some((earlier, answer)) = token.as_ref().and_then(|token| self.done(token)) {
            return if earlier == body["TransactItems"] { answer } else { mismatch() };
        }
        if actions.len() == 1 || !self.would_succeed(request, &actions).await {
            return self.upstream.forward(request).await;
        }
        let (mut order, delays) = {
            let mut random = self.random.lock().expect("nobody panicked");
            let mut order: Vec<&Value> = actions.iter().collect();
            order.shuffle(&mut *random);
            let is_slow = random.random_ratio(1, SOME);
            let longest = if is_slow { LONGEST_OF_SOME } else { LONGEST_DELAY };
            let delay = |_| random.random_range(Duration::ZERO..longest);
            let delays: Vec<Duration> = order.iter().map(delay).collect();
            (order, delays)
        };
        // Their conditions hold, and nothing is to be seen of them.
        order.retain(|action| action["ConditionCheck"].is_null());
        let mut consumed = Vec::new();
        for (number, (action, delay)) in order.into_iter().zip(delays).enumerate() {
            if number > 0 {
                tokio::time::sleep(delay).await;
            }
            let mut alone = json!({ "TransactItems": [action] });
            alone["ReturnConsumedCapacity"] = body["ReturnConsumedCapacity"].clone();
            let (status, answer) = self.upstream.forward_as(request, &alone).await;
            let answer: Value = serde_json::from_slice(&answer).expect("an answer is JSON");
            assert_eq!(status, 200, "of a transaction that was to succeed: {answer}");
            consumed.extend(answer["ConsumedCapacity"].as_array().cloned().unwrap_or_default());
        }
        let mut answer = json!({});
        if !consumed.is_empty() {
            answer["ConsumedCapacity"] = json!(consumed);
        }
        let answer = (200, answer.to_string().into_bytes());
        if let Some(token) = token {
            let done = (body["TransactItems"].clone(), answer.clone());
            self.done.lock().expect("nobody panicked").insert(token, done);
        }
        answer
    }

    fn done(&self, token: &str) -> Option<(Value, ProxyResponse)> {
        self.done.lock().expect("nobody panicked").get(token).cloned()
    }

    /// Waits for the locks of the items of some writes.
    async fn lock<'w>(&self, writes: impl Iterator<Item = &'w Value>) -> Vec<OwnedMutexGuard<()>> {
        // All take them in the same order.
        let names: BTreeSet<String> = writes.map(name_of_item).collect();
        let mut held = Vec::with_capacity(names.len());
        for name in names {
            let lock = {
                let mut locks = self.locks.lock().expect("nobody panicked");
                Arc::clone(locks.entry(name).or_default())
            };
            held.push(lock.lock_owned().await);
        }
        held
    }

    /// Whether a transaction would be carried out: it is sent with one action more, which fails.
    async fn would_succeed(&self, request: &Request, actions: &[Value]) -> bool {
        assert!(actions.len() < MOST_ACTIONS, "no room for the action that fails");
        let mut dry_run = actions.to_vec();
        dry_run.push(check_that_fails());
        let dry_run = json!({ "TransactItems": dry_run });
        let (_, answer) = self.upstream.forward_as(request, &dry_run).await;
        let answer: Value = serde_json::from_slice(&answer).expect("an answer is JSON");
        let reasons = answer["CancellationReasons"].as_array();
        let Some([own @ .., failing]) = reasons.map(Vec::as_slice) else { return false };
        assert_eq!(failing["Code"], "ConditionalCheckFailed", "{answer}");
        own.iter().all(|reason| reason["Code"] == "None")
    }
}

impl Proxy for ItemByItem {
    async fn answer(&self, request: Request) -> ProxyResponse {
        match &*request.target {
            "TransactWriteItems" => self.transact(&request).await,
            "DeleteItem" | "PutItem" | "UpdateItem" => {
                let body = serde_json::from_slice(&request.body).expect("a request is JSON");
                let _locks = self.lock(std::iter::once(&body)).await;
                self.upstream.forward(&request).await
            }
            // What reads, and writes of many items: these are of items that no transaction has.
            _ => self.upstream.forward(&request).await,
        }
    }
}

/// What the actions of a transaction have in them, by their kinds: one of them.
fn writes(action: &Value) -> impl Iterator<Item = &Value> {
    action.as_object().into_iter().flat_map(serde_json::Map::values)
}

/// What tells an item from others. Of tables whose items have other keys than `pk` and `sk`, all
/// have one lock.
fn name_of_item(write: &Value) -> String {
    let key = if write["Key"].is_null() { &write["Item"] } else { &write["Key"] };
    format!("{} {} {}", write["TableName"], key["pk"], key["sk"])
}

/// A check of an item that is never there.
fn check_that_fails() -> Value {
    json!({"ConditionCheck": {
        "TableName": format!("{}errors", table_prefix()),
        "Key": {"pk": {"S": "never"}, "sk": {"S": "there"}},
        "ConditionExpression": "attribute_exists(pk)",
    }})
}

/// How DynamoDB refuses a token that came with another transaction.
fn mismatch() -> ProxyResponse {
    let name = "com.amazonaws.dynamodb.v20120810#IdempotentParameterMismatchException";
    let answer = json!({"__type": name, "Message": "the token is of another transaction"});
    (400, answer.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};

    use super::*;
    use crate::app::{TestApp, items};

    #[tokio::test]
    async fn readers_see_a_transaction_item_by_item_and_a_repeat_does_nothing() {
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
        let refused = transaction().client_request_token("another").send().await.unwrap_err();
        let refused = refused.into_service_error();
        assert!(refused.is_transaction_canceled_exception(), "{refused:?}");
    }
}
