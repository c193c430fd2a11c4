//! A proxy behind which DynamoDB can be taken away, and given back.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::{Proxy, ProxyResponse, Upstream};
use crate::wire::Request;

/// Not answering at all.
const HANGING: u64 = u64::MAX;
/// Answering that it cannot.
const FAILING: u64 = u64::MAX - 1;

/// The proxy.
pub struct Outage {
    upstream: Upstream,
    /// The milliseconds that each request takes besides, or one of the above.
    delay: AtomicU64,
    asked: AtomicUsize,
}

impl Outage {
    /// A proxy before the engine at an endpoint, which answers.
    pub fn before(engine: &str) -> Self {
        let (upstream, asked) = (Upstream::new(engine), AtomicUsize::default());
        Self { upstream, delay: AtomicU64::new(0), asked }
    }

    /// Lets DynamoDB answer that it cannot, from now on.
    pub fn fail(&self) {
        self.delay.store(FAILING, Ordering::SeqCst);
    }

    /// Lets it answer nothing.
    pub fn hang(&self) {
        self.delay.store(HANGING, Ordering::SeqCst);
    }

    /// Lets it answer after a while.
    pub fn answer_after(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).expect("a test is short");
        self.delay.store(millis, Ordering::SeqCst);
    }

    /// How many requests came since this was last asked.
    pub fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }
}

impl Proxy for std::sync::Arc<Outage> {
    async fn answer(&self, request: Request) -> ProxyResponse {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.delay.load(Ordering::SeqCst) {
            FAILING => {
                let body = r#"{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError"}"#;
                (500, body.into())
            }
            HANGING => {
                // Longer than any caller waits.
                tokio::time::sleep(Duration::from_mins(1)).await;
                (500, Vec::new())
            }
            millis => {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                self.upstream.forward(&request).await
            }
        }
    }
}
