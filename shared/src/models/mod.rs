//! One file per resource: types that can only hold what is valid, and no I/O.

pub mod api_key;
pub mod feature_flag;
pub mod idempotency;
pub mod project;
pub mod timestamp;
