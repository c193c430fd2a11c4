//! Tests over HTTP through the local gateway, the function binaries and a DynamoDB engine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod api_description;
mod api_reference;
mod console;
mod errors;
mod flags;
mod gateway;
mod notifications;
mod privacy;
mod recording_proxy;
mod soak;
mod unauthenticated;
mod watch;
