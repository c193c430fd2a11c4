//! Code that every Waymark function uses.
//!
//! [`app`] and [`auth`] serve and authenticate requests. [`projects`] models organizations,
//! projects, users and keys. [`http`], [`dynamodb`] and [`json`] are independent of the product.
//! The feature areas are separate crates in `crates/`, which use this one.

pub mod app;
pub mod audit;
pub mod auth;
pub mod cache;
pub mod dynamodb;
pub mod entity_tag;
pub mod http;
pub mod id;
pub mod idempotency;
pub mod json;
pub mod json_number;
mod named_enum;
pub mod page;
pub mod projects;
pub mod quotas;
pub mod telemetry;
pub mod text;
mod text_type;
pub mod timestamp;
pub mod usage;
