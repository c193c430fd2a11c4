//! Sequential ingestion of events by one process.

use std::time::Instant;

use axum::body::Bytes;
use shared::app::Clock;

use super::delivery::delivery;
use crate::Result;
use crate::counter::{Call, calls, most_of_warm};
use crate::process::{Process, Requests};
use crate::program::{Program, Programs};
use crate::progress::progress;
use crate::report::{Report, at_most, under};
use crate::stack::Stack;
use crate::statistics::{count, millis};

/// The number of timed events.
const EVENTS: usize = 2_000;
/// The number of unmeasured events before them.
const WARM_UPS: usize = 200;
/// The number of events whose calls are counted.
const COUNTED: usize = 100;

/// Measures event ingestion.
pub(crate) async fn ingestion(programs: &Programs, report: &mut Report) -> Result<()> {
    progress(&format!("ingestion: {EVENTS} events"));
    let stack = Stack::start().await?;
    let project = stack.project_with_dsn("ingested").await?;
    let deliveries = |events: usize| -> Result<Vec<Bytes>> {
        (0..events).map(|event| delivery(&project, event, Clock::System.now())).collect()
    };
    let program = Program::IngestErrorEvents;
    let calls = calls(programs, (program, &[]), &stack, 200, deliveries(COUNTED)?).await?;
    // At first the process has cached neither the project nor its errors.
    let warm = calls.get(calls.len() / 2..).unwrap_or_default();
    let trips = most_of_warm(warm, |calls| count(calls.len()));
    report.add(program, "known error, round trips, most", trips, "", None);
    let written = most_of_warm(warm, |calls| {
        calls.iter().filter(|call| !call.is_read()).map(|call: &Call| call.units).sum()
    });
    report.add(program, "known error, write units, most", written, "", at_most(9.0));

    let mut process = Process::start(programs, program, &stack.endpoint(), &[]).await?;
    let mut measured = Requests::default();
    process.send(200, deliveries(WARM_UPS)?, &mut measured).await?;
    let (events, mut measured) = (deliveries(EVENTS)?, Requests::default());
    let started = Instant::now();
    process.send(200, events, &mut measured).await?;
    let each = millis(started.elapsed()) / count(EVENTS);
    report.add_requests(program, "an event of 4 kB", &measured, under(10.0));
    report.add(program, "sequential events: 400 per second", each, "ms", at_most(2.5));
    report.add_memory(program, process.peak_memory()?, under(20.0));
    Ok(())
}
