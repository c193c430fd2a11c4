//! Projects, the API keys that can see them, and the DSNs to which SDKs send errors.

pub mod api_key;
pub mod console_code;
pub mod dsn;
pub mod erasure;
pub mod limits;
pub mod member;
pub mod named_project;
pub mod project;
mod randomness;
pub mod role;
pub mod secret;
pub mod session;
pub mod store;

pub use randomness::NoRandomness;
