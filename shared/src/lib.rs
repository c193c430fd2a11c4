//! What every Waymark function uses.
//!
//! Functions use the fields of the product ([`flags`], [`insights`], [`markers`], [`preferences`],
//! [`error_tracking`]); each has its models, rules and store in a folder of its own, and does not reach
//! into another's. The fields stand on the platform: whose request it is ([`app`], [`auth`],
//! [`projects`]), and below it [`http`], [`dynamodb`] and [`json`], which know nothing of the product.
//! `tests/tests/architecture.rs` holds the `use` lines to these directions.

pub mod app;
pub mod auth;
mod cache;
pub mod dynamodb;
pub mod entity_tag;
pub mod error_tracking;
pub mod flags;
pub mod http;
mod id;
pub mod idempotency;
pub mod insights;
pub mod json;
pub mod json_number;
pub mod markers;
pub mod notifications;
pub mod page;
pub mod preferences;
pub mod projects;
pub mod quotas;
pub mod telemetry;
pub mod text;
pub mod timestamp;
pub mod usage;
pub mod user_agent;
