//! Test support: a DynamoDB engine for each test, requests like API Gateway's, and checks of every
//! response against `openapi.yaml`.

#![allow(clippy::missing_panics_doc)] // Tests panic on failure.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod app;
pub mod call;
pub mod contract;
pub mod errors;
pub mod filling;
mod functions;
pub mod insights;
pub mod latency;
pub mod markers;
pub mod notifications;
pub mod operation_specs;
pub mod operations;
pub mod people;
pub mod permissions;
pub mod preferences;
pub mod process;
pub mod proxy;
pub mod replays;
pub mod scripted;
pub mod source_maps;
pub mod stack;
pub mod wire;

use std::env;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the root of the workspace.
pub fn workspace() -> PathBuf {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    PathBuf::from(root).canonicalize().expect("the workspace exists")
}

/// Names of Chromium on Debian, Fedora and in Google's packages. The headless shell has no windows and takes a third
/// less CPU time for a page.
const BROWSERS: [&str; 5] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// Returns the path of Chromium on the `PATH`.
pub fn browser() -> String {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = env::split_paths(&path).collect();
    let mut places = BROWSERS.iter().flat_map(|name| folders.iter().map(move |it| it.join(name)));
    let browser = places.find(|place| place.is_file());
    let browser = browser.and_then(|place| place.to_str().map(str::to_owned));
    browser.expect("Chromium is on the PATH (Debian: apt install chromium-headless-shell)")
}

/// Returns the tables of `template.yaml`.
pub fn tables() -> Vec<local::template::Table> {
    local::template::read_tables(&workspace().join("template.yaml")).expect("template.yaml is read")
}

/// Returns the binary of a function, which is built next to the test binaries.
pub fn function_binary(function: &str) -> PathBuf {
    let test = env::current_exe().expect("the test has a binary");
    let binary = test.ancestors().nth(2).expect("the binary is two folders deep").join(function);
    assert!(binary.exists(), "{function} is not built; cargo build --workspace --bins");
    binary
}

/// Returns a seed: the environment variable `SEED`, or a different one for each run.
pub fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    let nanos = u64::from(now.subsec_nanos());
    env::var("SEED").map_or(now.as_secs() ^ nanos << 32, |seed| seed.parse().expect("a number"))
}
