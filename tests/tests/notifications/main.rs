//! Notifications with a real engine, and the local stack's fake SES and EventBridge.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod actions;
mod addresses;
mod audience;
mod damage;
mod deadlines;
mod delays;
mod fairness;
mod get_email_preferences;
mod gone;
mod kills;
mod moto;
mod outbox;
mod rejected_emails;
mod rejected_events;
mod sending;
mod storm;
mod trends;
mod update_email_preferences;
