//! Error tracking: ingestion, packing, and queries of a large data set compared with `PostgreSQL`.

mod capacity;
mod data_set;
mod delivery;
mod generator;
mod ingestion;
mod large;
mod loading;
mod packing;
mod postgres;
mod source_maps;
mod timeseries;

use axum::body::Bytes;

use crate::Result;
use crate::process::Process;
use crate::program::{Program, Programs};
use crate::report::{Report, Target};
use crate::stack::Stack;
use crate::statistics::megabytes;

pub(crate) use capacity::capacity;
pub(crate) use delivery::delivery;
pub(crate) use ingestion::ingestion;
pub(crate) use large::large;
pub(crate) use packing::packing;
pub(crate) use source_maps::source_maps;
pub(crate) use timeseries::timeseries;

/// The number of requests of each query.
const QUERIES: usize = 60;

/// The targets of a query: the 95th percentile of its latency, and the peak memory of its process.
#[derive(Clone, Copy)]
struct QueryTargets {
    p95: Option<Target>,
    memory: Option<Target>,
}

/// Sends variants of a query to a new process in turn, and adds their figures.
async fn measure_query(
    (programs, stack): (&Programs, &Stack),
    (program, name): (Program, &str),
    variants: &[Bytes],
    targets: QueryTargets,
    report: &mut Report,
) -> Result<()> {
    let mut process = Process::start(programs, program, &stack.endpoint(), &[]).await?;
    let requests = variants.iter().cycle().take(QUERIES).cloned();
    let measured = process.measure(200, requests).await?;
    report.add_requests(program, name, &measured, None);
    let p95 = measured.latency().percentile(95);
    report.add(program, format!("{name}, p95"), p95, "ms", targets.p95);
    let memory = megabytes(process.peak_memory()?);
    report.add(program, format!("{name}, peak memory"), memory, "MB", targets.memory);
    Ok(())
}
