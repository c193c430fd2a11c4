//! Over HTTP, through `cargo lambda watch`, into the function binaries and a DynamoDB engine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod api_reference;
mod create_feature_flag;
mod email_preferences;
mod errors;
mod event_markers;
mod feature_flags;
mod insights;
mod interpret;
mod openfeature_sdks;
mod privacy;
mod recording_proxy;
mod sentry_sdks;
