//! Which error an event belongs to.

mod asset_name;
pub mod fingerprint;
mod frame_identity;
mod message_template;
pub mod occurrence;
