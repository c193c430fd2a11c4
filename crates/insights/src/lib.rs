//! Replay insights and their pain points: what can be done with them, their numbers, and where they
//! are stored.

pub mod draft;
pub mod http;
mod insight;
pub mod membership;
mod replay_insight;
pub mod statistics;
pub mod store;

pub use insight::*;
pub use replay_insight::*;
