//! A proxy that delays requests.

use std::time::Duration;

use super::{Proxy, ProxyResponse, Upstream};
use crate::wire::Request;

/// Delays each request before it is forwarded.
pub struct Slow {
    upstream: Upstream,
    delay: Duration,
}

impl Slow {
    /// Returns a proxy with the given delay in front of an engine.
    pub fn before(engine: &str, delay: Duration) -> Self {
        Self { upstream: Upstream::new(engine), delay }
    }
}

impl Proxy for Slow {
    async fn respond(&self, request: Request) -> ProxyResponse {
        tokio::time::sleep(self.delay).await;
        self.upstream.forward(&request).await
    }
}
