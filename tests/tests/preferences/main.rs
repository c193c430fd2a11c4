//! Notification email preferences against a real engine: what is answered and what is stored.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod get_email_preferences;
mod update_email_preferences;
