//! The benchmark: functions beside one that says hello, as release binaries under a Lambda Runtime
//! API on loopback, with the embedded DynamoDB in memory.
//!
//! ```text
//! cargo build --release --locked --package compact-error-segments \
//!     --package create-feature-flag --package delete-event-marker-collection \
//!     --package evaluate-feature-flag --package evaluate-feature-flags \
//!     --package ingest-error-events --package interpret-error-filters \
//!     --package purge-event-markers --package query-error-timeseries \
//!     --package split-insight --package update-email-preferences \
//!     --package bench --no-default-features
//! cargo build --release --locked --package bench --bin bench
//! target/release/bench
//! ```
//!
//! create-feature-flag is measured in depth; of the others, what sets them apart. Queries of errors
//! are held against `PostgreSQL` 15, where Debian's package is installed.
//!
//! The first command builds what is measured, with no more features than it is deployed with; the
//! second builds only this harness. Figures of different machines, or of one machine at different
//! times, are not comparable; those of one run are, since all programs take turns.

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
mod report;
mod stack;
mod statistics;
mod tls;

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use measure::Bench;
use process::Program;
use report::{Figures, progress};
use stack::Stack;

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// Measures functions beside one that says hello, and checks the targets.
#[derive(Parser)]
struct Options {
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
    if cfg!(debug_assertions) {
        return Err("this is a debug build; use `make bench`".into());
    }
    let binaries = match options.binaries {
        Some(folder) => folder,
        None => env::current_exe()?.with_file_name(""),
    };
    let program = |name: &'static str| Program {
        name,
        binary: binaries.join(name),
        log: options.log.clone(),
    };
    let folder = tempfile::tempdir()?;
    let (stack, job_stack) = (Stack::start().await?, Stack::start().await?);
    let bench = Bench {
        stack: &stack,
        job_stack: &job_stack,
        hello: program("hello"),
        sdk: program("hello-dynamodb"),
        create: program("create-feature-flag"),
        evaluate: program("evaluate-feature-flag"),
        evaluate_all: program("evaluate-feature-flags"),
        delete: program("delete-event-marker-collection"),
        purge: program("purge-event-markers"),
        update: program("update-email-preferences"),
        split: program("split-insight"),
        ingest: program("ingest-error-events"),
        interpret: program("interpret-error-filters"),
        query: program("query-error-timeseries"),
        compact: program("compact-error-segments"),
        folder: folder.path(),
    };
    let round_trips = bench.round_trips().await?;
    let cold = bench.cold(options.cold.max(1)).await?;
    let warm = bench.warm(options.warm, &round_trips).await?;
    let tls = bench.tls().await?;
    let event_markers = bench.event_markers().await?;
    let insights = bench.insights().await?;
    let errors = bench.errors().await?;
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
        sizes: sizes([&bench.hello, &bench.sdk, &bench.create])?,
        evaluation_sizes: sizes([&bench.evaluate, &bench.evaluate_all])?,
        other_sizes: sizes([&bench.delete, &bench.purge, &bench.update, &bench.split])?,
        error_sizes: sizes([&bench.ingest, &bench.query, &bench.compact, &bench.interpret])?,
    };

    let met = figures.print();
    if let Some(file) = options.json {
        fs::write(file, format!("{:#}\n", figures.json()))?;
    }
    Ok(if met || options.no_fail { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn sizes<const N: usize>(programs: [&Program; N]) -> Result<[u64; N]> {
    let mut sizes = [0; N];
    for (size, program) in sizes.iter_mut().zip(programs) {
        *size = program.size()?;
    }
    Ok(sizes)
}
