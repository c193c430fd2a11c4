//! Notification email preferences.

mod email_preferences;
mod store;

pub use email_preferences::*;
