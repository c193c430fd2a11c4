//! Test support: a real DynamoDB protocol engine of its own for each test, requests as API Gateway
//! sends them, and `openapi.yaml` held against every answer.

#![allow(clippy::missing_panics_doc)] // A test that cannot go on panics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod app;
pub mod call;
pub mod contract;
pub mod errors;
pub mod filling;
pub mod insights;
pub mod latency;
pub mod markers;
pub mod notifications;
pub mod operation_specs;
pub mod operations;
pub mod permissions;
pub mod preferences;
pub mod process;
pub mod proxy;
pub mod scripted;
pub mod stack;
pub mod wire;

use std::env;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    PathBuf::from(root).canonicalize().expect("the workspace exists")
}

/// What Debian, Fedora and Google call Chromium.
const BROWSERS: [&str; 4] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Chromium, if it is on the `PATH`.
pub fn browser() -> Option<String> {
    let path = env::var_os("PATH")?;
    let folders: Vec<_> = env::split_paths(&path).collect();
    let places = BROWSERS.iter().flat_map(|name| folders.iter().map(move |it| it.join(name)));
    places.filter(|place| place.is_file()).find_map(|place| place.to_str().map(str::to_owned))
}

/// The tables of `template.yaml`.
pub fn tables() -> Vec<local::template::Table> {
    local::template::read_tables(&workspace().join("template.yaml")).expect("template.yaml is read")
}

/// The binary of a function, which is built beside the tests' own.
pub fn function_binary(function: &str) -> PathBuf {
    let test = env::current_exe().expect("a test knows its binary");
    let binary = test.ancestors().nth(2).expect("it is in a folder of a folder").join(function);
    assert!(binary.exists(), "{function} is not built; cargo build --workspace --bins");
    binary
}

/// A seed that differs from run to run, unless the variable `SEED` gives one.
pub fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    let nanos = u64::from(now.subsec_nanos());
    env::var("SEED").map_or(now.as_secs() ^ nanos << 32, |seed| seed.parse().expect("a number"))
}
