//! The benchmark: functions beside one that says hello, as release binaries under a Lambda Runtime
//! API on loopback, with the embedded DynamoDB in memory.
//!
//! ```text
//! make bench        what a change of the functions can change
//! make bench-all    first calls over TLS, and PostgreSQL 15 beside queries of errors, too
//! ```
//!
//! create-feature-flag is measured in depth; of the others, what sets them apart. Both commands build
//! this harness, and then the programs that `bench --list` names: apart from it, so that they have no
//! more features than they are deployed with. Figures of different machines, or of one machine at
//! different times, are not comparable; those of one run are, since all programs take turns.

mod cold;
mod counter;
mod errors;
mod evaluation;
mod event_markers;
mod events;
mod generator;
mod insights;
mod interpretation;
mod job;
mod measure;
mod process;
mod program;
mod report;
mod stack;
mod statistics;
mod tls;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs};

use clap::Parser;

use measure::Bench;
use program::{Program, Programs};
use report::{Figures, list_functions, progress};
use stack::Stack;

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// Measures functions beside one that says hello, and checks the targets.
#[derive(Parser)]
struct Options {
    /// Name the functions that are measured, and measure nothing.
    #[arg(long)]
    list: bool,
    /// Also measure first calls over TLS, and hold queries of errors against `PostgreSQL` 15.
    #[arg(long)]
    all: bool,
    /// How many fresh processes of each kind are started.
    #[arg(long, value_name = "N", default_value_t = 30)]
    cold: usize,
    /// How many requests each program answers while warm.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    warm: usize,
    /// Exit with 0 even if a target is missed.
    #[arg(long)]
    no_fail: bool,
    /// Also write all figures into a file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Append what the functions print to a file.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Where the release binaries are; beside this program by default.
    #[arg(long, value_name = "FOLDER")]
    binaries: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match Box::pin(run(Options::parse())).await {
        Ok(code) => code,
        Err(error) => {
            progress(&format!("failed: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<ExitCode> {
    if options.list {
        list_functions();
        return Ok(ExitCode::SUCCESS);
    }
    if cfg!(debug_assertions) {
        return Err("this is a debug build; use `make bench`".into());
    }
    let binaries = match options.binaries {
        Some(folder) => folder,
        None => env::current_exe()?.with_file_name(""),
    };
    let programs = Programs::new(binaries, options.log)?;
    let sizes = Program::all().map(|it| Ok((it, programs.size(it)?))).collect::<Result<_>>()?;
    let folder = tempfile::tempdir()?;
    let (stack, job_stack) = (Stack::start().await?, Stack::start().await?);
    let bench = Bench { stack: &stack, job_stack: &job_stack, programs, folder: folder.path() };
    let round_trips = bench.round_trips().await?;
    let cold = bench.cold(options.cold.max(1)).await?;
    let warm = bench.warm(options.warm, &round_trips).await?;
    let tls = if options.all { Some(bench.tls().await?) } else { None };
    let event_markers = bench.event_markers().await?;
    let insights = bench.insights().await?;
    let errors = Box::pin(bench.errors(options.all)).await?;
    let evaluations = bench.evaluations().await?;
    let interpretations = bench.interpretations().await?;
    let figures = Figures {
        round_trips,
        cold,
        warm,
        tls,
        event_markers,
        insights,
        errors,
        evaluations,
        interpretations,
        sizes,
    };

    let met = figures.print();
    if let Some(file) = options.json {
        fs::write(file, format!("{:#}\n", figures.json()))?;
    }
    Ok(if met || options.no_fail { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
