//! A proxy that has a share of all requests meet what DynamoDB does on a bad day: it throttles, finds
//! transactions that meet, fails before or after the write, answers late, or does a part of a batch.

use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::{Proxy, ProxyResponse, Upstream, refusal, with_unprocessed};
use crate::wire::Request;

/// How late an answer is, in milliseconds: less than is waited for it.
const LATE: std::ops::Range<u64> = 50..600;

/// What a request meets.
#[derive(Debug, Clone, Copy)]
pub enum InjectedFault {
    /// The table, or an item of a transaction, takes no more.
    Throttled,
    /// Another transaction has the item.
    Conflict,
    /// An internal error, and nothing is done.
    FailsBefore,
    /// An internal error, and all is done.
    FailsAfter,
    /// An answer that takes its time.
    Late,
    /// Of a batch the first half is done.
    Partial,
}

impl InjectedFault {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Throttled,
        Self::Conflict,
        Self::FailsBefore,
        Self::FailsAfter,
        Self::Late,
        Self::Partial,
    ];
}

/// The proxy.
pub struct Faults {
    upstream: Upstream,
    percent: u32,
    kinds: &'static [InjectedFault],
    rng: StdMutex<ChaCha8Rng>,
    met: AtomicUsize,
}

impl Faults {
    /// A proxy in front of an engine that has so many requests in a hundred meet a fault of some kinds, by a
    /// seed.
    pub fn before(engine: &str, percent: u32, kinds: &'static [InjectedFault], seed: u64) -> Self {
        let rng = StdMutex::new(ChaCha8Rng::seed_from_u64(seed));
        Self { upstream: Upstream::new(engine), percent, kinds, rng, met: AtomicUsize::new(0) }
    }

    /// How many requests have met a fault.
    pub fn met(&self) -> usize {
        self.met.load(Ordering::Relaxed)
    }

    /// The fault that the next request meets, and a number for what is left to chance in it.
    fn draw(&self) -> (Option<InjectedFault>, u64) {
        let mut rng = self.rng.lock().expect("nobody panicked");
        let is_met = rng.random_range(0..100) < self.percent;
        let fault = is_met.then(|| self.kinds[rng.random_range(0..self.kinds.len())]);
        (fault, rng.random_range(0..u64::MAX))
    }

    /// Has the first half of a batch done.
    async fn do_half(&self, request: &Request, mut body: Value) -> ProxyResponse {
        let (inner, member) = match &*request.target {
            "BatchGetItem" => (Some("Keys"), "UnprocessedKeys"),
            "BatchWriteItem" => (None, "UnprocessedItems"),
            _ => return self.upstream.forward(request).await,
        };
        let mut unprocessed = json!({});
        for (table, wanted) in body["RequestItems"].as_object_mut().into_iter().flatten() {
            let items = match inner {
                Some(inner) => &mut wanted[inner],
                None => wanted,
            };
            let all = items.as_array().cloned().unwrap_or_default();
            let (done, left) = all.split_at(all.len().div_ceil(2));
            if left.is_empty() {
                continue;
            }
            *items = json!(done);
            match inner {
                Some(inner) => {
                    unprocessed[table] = wanted.clone();
                    unprocessed[table][inner] = json!(left);
                }
                None => unprocessed[table] = json!(left),
            }
        }
        let (status, answer) = self.upstream.forward_as(request, &body).await;
        (status, with_unprocessed(answer, member, &unprocessed))
    }
}

impl Proxy for Faults {
    async fn answer(&self, request: Request) -> ProxyResponse {
        let (fault, chance) = self.draw();
        let Some(fault) = fault else { return self.upstream.forward(&request).await };
        self.met.fetch_add(1, Ordering::Relaxed);
        let body: Value = serde_json::from_slice(&request.body).expect("a request is JSON");
        let is_write = matches!(
            &*request.target,
            "PutItem" | "UpdateItem" | "DeleteItem" | "TransactWriteItems"
        );
        let failed = || (500, refusal("InternalServerError", json!({})).1);
        match fault {
            InjectedFault::Throttled => {
                let otherwise = "ProvisionedThroughputExceededException";
                refuse(&body, chance, "ThrottlingError", otherwise)
            }
            InjectedFault::Conflict if is_write => {
                let otherwise = "TransactionConflictException";
                refuse(&body, chance, "TransactionConflict", otherwise)
            }
            InjectedFault::FailsBefore => failed(),
            InjectedFault::FailsAfter => {
                self.upstream.forward(&request).await;
                failed()
            }
            InjectedFault::Late | InjectedFault::Conflict => {
                let late = LATE.start + chance % (LATE.end - LATE.start);
                tokio::time::sleep(Duration::from_millis(late)).await;
                self.upstream.forward(&request).await
            }
            InjectedFault::Partial => self.do_half(&request, body).await,
        }
    }
}

/// A refusal for one reason: of a transaction, that of one of its items.
fn refuse(body: &Value, chance: u64, reason: &str, otherwise: &str) -> ProxyResponse {
    let Some(actions) = body["TransactItems"].as_array() else {
        return refusal(otherwise, json!({}));
    };
    let hot = usize::try_from(chance).unwrap_or_default() % actions.len();
    let reasons: Vec<Value> = (0..actions.len())
        .map(|action| json!({"Code": if action == hot { reason } else { "None" }}))
        .collect();
    let members = json!({"Message": "Transaction cancelled", "CancellationReasons": reasons});
    refusal("TransactionCanceledException", members)
}
