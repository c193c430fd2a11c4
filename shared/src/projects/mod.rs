//! Projects, the API keys that may see them, and the DSNs that errors are sent to.

pub mod api_key;
pub mod console_code;
pub mod dsn;
pub mod erasure;
pub mod named_project;
pub mod project;
mod randomness;
pub mod store;

pub use randomness::NoRandomness;
