//! A way to the engine that takes longer.

use std::time::Duration;

use super::{Proxy, ProxyResponse, Upstream};
use crate::wire::Request;

/// Answers a while later than the engine does.
pub struct Slow {
    upstream: Upstream,
    slower: Duration,
}

impl Slow {
    /// Before an engine, so much slower.
    pub fn before(engine: &str, slower: Duration) -> Self {
        Self { upstream: Upstream::new(engine), slower }
    }
}

impl Proxy for Slow {
    async fn answer(&self, request: Request) -> ProxyResponse {
        tokio::time::sleep(self.slower).await;
        self.upstream.forward(&request).await
    }
}
