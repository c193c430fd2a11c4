//! Replay insights and their pain points: operations, statistics and storage.

pub mod draft;
pub mod evidence;
pub mod http;
mod insight;
pub mod membership;
mod packed;
pub mod recordings;
mod replay_insight;
pub mod signature;
pub mod statistics;
pub mod store;

pub use insight::*;
pub use replay_insight::*;
