//! The grouping of events into errors.

mod asset_name;
mod built_code;
pub mod fingerprint;
mod frame_identity;
mod message_template;
pub mod occurrence;
pub mod url_path;

pub use fingerprint::Fingerprint;
