//! A proxy that injects DynamoDB faults into a share of requests: throttling, transaction
//! conflicts, failures before or after the write, late responses and partial batches.

use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::{Proxy, ProxyResponse, Upstream, rejection, with_unprocessed};
use crate::wire::Request;

/// Delay of a late response in milliseconds, below the client's timeout.
const LATE: std::ops::Range<u64> = 50..600;

/// A fault that a request encounters.
#[derive(Debug, Clone, Copy)]
pub enum InjectedFault {
    /// The table or an item of a transaction is throttled.
    Throttled,
    /// Another transaction is using the item.
    Conflict,
    /// An internal error before execution.
    FailsBefore,
    /// An internal error after execution.
    FailsAfter,
    /// A late response.
    Late,
    /// Only the first half of a batch is executed.
    Partial,
}

impl InjectedFault {
    /// All kinds.
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
    draws: StdMutex<Draws>,
    met: AtomicUsize,
}

/// Draws of random faults.
struct Draws {
    rng: ChaCha8Rng,
    /// For each of the next requests, `true` if it gets a fault.
    deck: Vec<bool>,
}

impl Faults {
    /// Returns a proxy in front of an engine. It injects faults of the given kinds into `percent` of
    /// each hundred requests, based on a seed.
    pub fn before(engine: &str, percent: u32, kinds: &'static [InjectedFault], seed: u64) -> Self {
        let draws = Draws { rng: ChaCha8Rng::seed_from_u64(seed), deck: Vec::new() };
        let (upstream, draws) = (Upstream::new(engine), StdMutex::new(draws));
        Self { upstream, percent, kinds, draws, met: AtomicUsize::new(0) }
    }

    /// Returns the number of requests with a fault.
    pub fn met(&self) -> usize {
        self.met.load(Ordering::Relaxed)
    }

    /// Draws the next request's fault, and a random number for its details.
    fn draw(&self) -> (Option<InjectedFault>, u64) {
        let mut draws = self.draws.lock().expect("not poisoned");
        let Draws { rng, deck } = &mut *draws;
        if deck.is_empty() {
            deck.extend((0..100).map(|number| number < self.percent));
            deck.shuffle(rng);
        }
        let is_met = deck.pop().expect("the deck was filled");
        let fault = is_met.then(|| self.kinds[rng.random_range(0..self.kinds.len())]);
        (fault, rng.random_range(0..u64::MAX))
    }

    /// Forwards the first half of a batch.
    async fn do_half(&self, request: &Request, mut body: Value) -> ProxyResponse {
        let (inner, field) = match &*request.target {
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
        let (status, response) = self.upstream.forward_as(request, &body).await;
        (status, with_unprocessed(response, field, &unprocessed))
    }
}

impl Proxy for Faults {
    async fn respond(&self, request: Request) -> ProxyResponse {
        let (fault, chance) = self.draw();
        let Some(fault) = fault else { return self.upstream.forward(&request).await };
        self.met.fetch_add(1, Ordering::Relaxed);
        let body: Value = serde_json::from_slice(&request.body).expect("the request is JSON");
        let is_write = matches!(
            &*request.target,
            "PutItem" | "UpdateItem" | "DeleteItem" | "TransactWriteItems"
        );
        let failed = || (500, rejection("InternalServerError", json!({})).1);
        match fault {
            InjectedFault::Throttled => {
                let otherwise = "ProvisionedThroughputExceededException";
                reject(&body, chance, "ThrottlingError", otherwise)
            }
            InjectedFault::Conflict if is_write => {
                let otherwise = "TransactionConflictException";
                reject(&body, chance, "TransactionConflict", otherwise)
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

/// Returns a rejection. For transactions, one random item has the reason.
fn reject(body: &Value, chance: u64, reason: &str, otherwise: &str) -> ProxyResponse {
    let Some(actions) = body["TransactItems"].as_array() else {
        return rejection(otherwise, json!({}));
    };
    let hot = usize::try_from(chance).unwrap_or_default() % actions.len();
    let reasons: Vec<Value> = (0..actions.len())
        .map(|action| json!({"Code": if action == hot { reason } else { "None" }}))
        .collect();
    let fields = json!({"Message": "Transaction cancelled", "CancellationReasons": reasons});
    rejection("TransactionCanceledException", fields)
}
