//! Which error an event belongs to.

mod asset_name;
mod built_code;
pub mod fingerprint;
mod frame_identity;
mod message_template;
pub mod occurrence;
pub mod url_path;

pub use fingerprint::Fingerprint;
