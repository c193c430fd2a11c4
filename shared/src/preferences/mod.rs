//! Notification email preferences.

mod email_preferences;
mod store;

pub use crate::projects::notification_type::NotificationType;
pub use email_preferences::*;
