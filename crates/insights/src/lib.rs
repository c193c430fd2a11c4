//! Replay insights and their pain points: operations, statistics and storage.

pub mod draft;
pub mod http;
mod insight;
pub mod membership;
mod replay_insight;
pub mod statistics;
pub mod store;

pub use insight::*;
pub use replay_insight::*;
