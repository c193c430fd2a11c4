//! The benchmark. It compares functions with a minimal one (`hello`), as release binaries under a
//! Lambda Runtime API on loopback, with the embedded DynamoDB in memory.
//!
//! ```text
//! make bench        all figures that a change of the functions can affect
//! make bench-all    also a large project, a large load, and a comparison with PostgreSQL 15
//! ```
//!
//! Each phase adds its figures to one report, with their targets. Both commands build this harness,
//! then the programs that `bench --list` prints. The separate build gives the programs only the
//! features that they are deployed with.
//!
//! Compare figures of one run only, since its programs alternate. Figures of different machines, or
//! of one machine at different times, are not comparable.

mod cold;
mod counter;
mod errors;
mod evaluation;
mod event_markers;
mod flags;
mod insights;
mod interpretation;
mod process;
mod program;
mod progress;
mod report;
mod request;
mod sign_in;
mod stack;
mod statistics;
mod tls;
mod warm;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs};

use clap::{Parser, ValueEnum};

use program::Programs;
use progress::progress;
use report::{Report, list_functions};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// Measure functions and a minimal one, and check the targets.
#[derive(Parser)]
struct Options {
    /// Print the names of the measured functions, and measure nothing.
    #[arg(long)]
    list: bool,
    /// Also measure a large project and a large load, and compare timeseries with `PostgreSQL` 15.
    #[arg(long)]
    all: bool,
    /// Run only this phase, also in a debug build, whose figures have no meaning. Can be repeated.
    #[arg(long, value_name = "PHASE")]
    only: Vec<Phase>,
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

/// A phase of the benchmark.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Phase {
    Sizes,
    Cold,
    Warm,
    EventMarkers,
    Insights,
    Evaluation,
    Interpretation,
    Ingestion,
    SourceMaps,
    Packing,
    Timeseries,
    Capacity,
    Large,
}

impl Phase {
    async fn run(self, programs: &Programs, options: &Options, report: &mut Report) -> Result<()> {
        match self {
            Self::Sizes => programs.add_sizes(report),
            Self::Cold => cold::cold(programs, options.cold.max(1), report).await,
            Self::Warm => warm::warm(programs, options.warm, report).await,
            Self::EventMarkers => event_markers::event_markers(programs, report).await,
            Self::Insights => insights::insights(programs, report).await,
            Self::Evaluation => evaluation::evaluation(programs, report).await,
            Self::Interpretation => interpretation::interpretation(programs, report).await,
            Self::Ingestion => errors::ingestion(programs, report).await,
            Self::SourceMaps => errors::source_maps(programs, report).await,
            Self::Packing => errors::packing(programs, report).await,
            Self::Timeseries => errors::timeseries(programs, options.all, report).await,
            Self::Capacity => errors::capacity(options.all, report).await,
            Self::Large if options.all => errors::large(programs, report).await,
            Self::Large => Ok(()),
        }
    }
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
    if cfg!(debug_assertions) && options.only.is_empty() {
        return Err("this is a debug build; use `make bench`".into());
    }
    let folder = match &options.binaries {
        Some(folder) => folder.clone(),
        None => env::current_exe()?.with_file_name(""),
    };
    let programs = Programs { folder, log: options.log.clone() };
    let mut report = Report::default();
    for phase in Phase::value_variants() {
        if options.only.is_empty() || options.only.contains(phase) {
            Box::pin(phase.run(&programs, &options, &mut report)).await?;
        }
    }
    let met = report.print();
    if let Some(file) = options.json {
        fs::write(file, format!("{:#}\n", report.json()))?;
    }
    Ok(if met || options.no_fail { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
