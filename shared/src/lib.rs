//! What every Waymark function uses.
//!
//! Dependencies point one way: functions use [`http`], [`auth`] and [`store`], which use
//! [`models`], [`errors`], [`flags`], [`insights`] and [`json`]. The latter know neither AWS nor HTTP.

pub mod app;
pub mod auth;
pub mod errors;
pub mod flags;
pub mod http;
pub mod insights;
pub mod json;
pub mod models;
mod remembered_flags;
pub mod store;
pub mod telemetry;
pub mod usage;

pub use remembered_flags::Freshness;
