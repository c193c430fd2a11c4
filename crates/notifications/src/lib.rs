//! Domain events, their outbox, feeds, emails, addresses and preferences (`docs/notifications.md`).

pub mod address;
pub mod delivery_state;
pub mod domain_event;
pub mod feed;
pub mod http;
mod keys;
pub mod mail;
pub mod notification_type;
pub mod preferences;
pub mod store;
pub mod token;

pub use keys::TokenKeyCache;
