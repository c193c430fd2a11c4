//! One file per resource: types that can only hold what is valid, and no I/O.

pub mod api_key;
pub mod dsn;
pub mod email_preferences;
pub mod error;
pub mod event_marker;
pub mod feature_flag;
pub mod idempotency;
pub mod insight;
pub mod page;
pub mod project;
pub mod text;
pub mod timestamp;
