//! The workspace's own commands.
//!
//! `cargo xtask generate` writes what must stand in several places because tools demand it, from the
//! one place where it is said: `openapi.yaml` for routes and access, `functions/*/Cargo.toml` for what
//! is particular to a function ([`function::Metadata`]), ua-parser's rules for User-Agents. `cargo xtask generate --check` writes nothing
//! and fails if anything would change.

mod alarms;
mod function;
mod generate;
mod names;
mod openapi;
mod readme;
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

const USAGE: &str = "usage: cargo xtask generate [--check]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let check = match arguments[..] {
        ["generate"] => false,
        ["generate", "--check"] => true,
        _ => return fail(USAGE),
    };
    // Cargo sets the variable to the folder of this crate when it builds it.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match generate::run(&root, check) {
        Ok(written) => {
            for file in written {
                tell(&format!("{file}: written"));
            }
            ExitCode::SUCCESS
        }
        Err(error) => fail(&format!("error: {error}")),
    }
}

fn fail(message: &str) -> ExitCode {
    tell(message);
    ExitCode::FAILURE
}

#[allow(clippy::print_stderr)] // A command's messages are for its terminal.
fn tell(message: &str) {
    eprintln!("{message}");
}
