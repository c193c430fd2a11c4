//! A proxy that can simulate DynamoDB outages.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::{Proxy, ProxyResponse, Upstream};
use crate::wire::Request;

/// Delay value: no response.
const HANGING: u64 = u64::MAX;
/// Delay value: an error response.
const FAILING: u64 = u64::MAX - 1;

/// The proxy.
pub struct Outage {
    upstream: Upstream,
    /// Additional milliseconds per request, or one of the values above.
    delay: AtomicU64,
    asked: AtomicUsize,
}

impl Outage {
    /// Returns a working proxy in front of the engine at an endpoint.
    pub fn before(engine: &str) -> Self {
        let (upstream, asked) = (Upstream::new(engine), AtomicUsize::default());
        Self { upstream, delay: AtomicU64::new(0), asked }
    }

    /// Returns errors from now on.
    pub fn fail(&self) {
        self.delay.store(FAILING, Ordering::SeqCst);
    }

    /// Does not respond from now on.
    pub fn hang(&self) {
        self.delay.store(HANGING, Ordering::SeqCst);
    }

    /// Responds with a delay from now on.
    pub fn respond_after(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).expect("the delay fits");
        self.delay.store(millis, Ordering::SeqCst);
    }

    /// Returns the number of requests since the last call.
    pub fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }
}

impl Proxy for std::sync::Arc<Outage> {
    async fn respond(&self, request: Request) -> ProxyResponse {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.delay.load(Ordering::SeqCst) {
            FAILING => {
                let body = r#"{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError"}"#;
                (500, body.into())
            }
            HANGING => {
                // Longer than any client's timeout.
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
