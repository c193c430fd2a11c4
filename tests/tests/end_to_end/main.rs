//! Over HTTP, through `cargo lambda watch`, into the function binaries and a DynamoDB engine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod api_reference;
mod error_tracking;
mod flags;
mod insights;
mod markers;
mod preferences;
mod privacy;
mod recording_proxy;
