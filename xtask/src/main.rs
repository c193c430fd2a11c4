//! Commands for the workspace.
//!
//! `cargo xtask generate` writes the files that repeat data from a single source: routes and access
//! from `openapi.yaml`, function settings from `functions/*/Cargo.toml` ([`function::Metadata`]),
//! and User-Agent rules from ua-parser. `cargo xtask generate --check` writes nothing and fails if
//! a file would change.
//!
//! `cargo xtask prose` checks the prose of files that differ from the main line, `--all` of all files.

mod api;
mod function;
mod generate;
mod names;
mod openapi;
mod prose;
mod region;
mod required_texts;
mod routes;
mod schedule;
mod tables;
mod template;
mod test_lists;
mod user_agents;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask generate [--check] | cargo xtask prose [--all]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // Cargo sets the variable to this crate's folder at build time.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let generated = |check| {
        let files = generate::run(&root, check).map_err(|error| format!("error: {error}"))?;
        Ok(files.into_iter().map(|file| format!("{file}: written")).collect())
    };
    let lines: Result<Vec<String>, String> = match arguments[..] {
        ["generate"] => generated(false),
        ["generate", "--check"] => generated(true),
        ["prose"] => prose::run(&root, false),
        ["prose", "--all"] => prose::run(&root, true),
        _ => Err(USAGE.to_owned()),
    };
    match lines {
        Ok(lines) => {
            for line in &lines {
                report(line);
            }
            ExitCode::SUCCESS
        }
        Err(message) => {
            report(&message);
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stderr)] // Commands print messages to the terminal.
fn report(message: &str) {
    eprintln!("{message}");
}
