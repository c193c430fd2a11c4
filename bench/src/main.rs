//! The benchmark. It compares functions with a minimal one (`hello`), as release binaries under a
//! Lambda Runtime API on loopback, with the embedded DynamoDB in memory.
//!
//! ```text
//! make bench        all figures that a change of the functions can affect
//! make bench-all    also first calls over TLS, and event queries compared with PostgreSQL 15
//! ```
//!
//! create-feature-flag is measured in depth; the other functions, in the points that distinguish
//! them. Both commands build this harness, then the programs that `bench --list` prints. The
//! separate build gives the programs only the features that they are deployed with.
//!
//! Compare figures of one run only, since its programs alternate. Figures of different machines, or
//! of one machine at different times, are not comparable.

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
mod progress;
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
use progress::progress;
use report::{Figures, list_functions};
use stack::Stack;

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// Measure functions and a minimal one, and check the targets.
#[derive(Parser)]
struct Options {
    /// Print the names of the measured functions, and measure nothing.
    #[arg(long)]
    list: bool,
    /// Also measure first calls over TLS, and compare event queries with `PostgreSQL` 15.
    #[arg(long)]
    all: bool,
    /// Number of cold starts of each program.
    #[arg(long, value_name = "N", default_value_t = 30)]
    cold: usize,
    /// Number of warm requests of each program.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    warm: usize,
    /// Exit with 0 even if a target is missed.
    #[arg(long)]
    no_fail: bool,
    /// Also write all figures to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Append the output of the functions to this file.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Folder of the release binaries. Default: the folder of this program.
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
