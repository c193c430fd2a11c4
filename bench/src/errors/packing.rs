//! Packing of whole days of rows into runs.

use std::time::Duration;

use errors::log::day::Day;
use errors::store::ErrorStore;
use shared::app::Clock;

use super::data_set::DataSet;
use super::loading::{create_errors, put_rows};
use crate::Result;
use crate::process::Process;
use crate::program::{Program, Programs};
use crate::progress::progress;
use crate::report::Report;
use crate::stack::Stack;

/// The number of packed days, each of another project.
const PROJECT_DAYS: u8 = 3;

/// Measures the packing of whole days of rows.
pub(crate) async fn packing(programs: &Programs, report: &mut Report) -> Result<()> {
    progress(&format!("packing: {PROJECT_DAYS} days of rows"));
    let stack = Stack::start().await?;
    let store = ErrorStore::new(stack.store());
    // Rows of this day are old enough to be packed.
    let end = Day::of(Clock::System.now().minus(Duration::from_hours(24))).start();
    let mut events = 0;
    for number in 0..PROJECT_DAYS {
        let project = stack.project(&format!("packed-{number}")).await?;
        let last = DataSet::before(end).project(number)?.last().ok_or("there are no days")?;
        create_errors(stack.store(), project, last.fingerprints(), end).await?;
        put_rows(stack.client(), project, &last.rows, end).await?;
        store.enqueue_for_packing(project, None, end).await?;
        events += last.rows.len();
    }
    let program = Program::PackErrorLog;
    let mut process = Process::start(programs, program, &stack.endpoint(), &[]).await?;
    let is_left = async || {
        let queue = store.list_packing_queue().await?;
        Ok(queue.iter().any(|entry| entry.due <= Clock::System.now()))
    };
    process.measure_job(report, events, is_left).await?;
    report.add_memory(program, process.peak_memory()?, None);
    Ok(())
}
