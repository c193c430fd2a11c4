//! Test support: a real DynamoDB protocol engine of its own for each test, requests as API Gateway
//! sends them, and `openapi.yaml` held against every answer.

#![allow(clippy::missing_panics_doc)] // A test that cannot go on panics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod app;
pub mod call;
pub mod contract;
pub mod email_preferences;
pub mod errors;
pub mod event_markers;
pub mod gateway;
pub mod insights;
pub mod permissions;
pub mod random;
pub mod scripted;
pub mod stack;

use std::path::PathBuf;

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    PathBuf::from(root).canonicalize().expect("the workspace exists")
}

/// The tables of `template.yaml`.
pub fn tables() -> Vec<local::template::Table> {
    local::template::read_tables(&workspace().join("template.yaml")).expect("template.yaml is read")
}
