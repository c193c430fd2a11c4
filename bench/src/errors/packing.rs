//! Packing of whole days of rows into runs.

use std::time::Duration;

use errors::log::day::Day;
use errors::store::ErrorStore;
use local::environment;
use shared::app::Clock;

use super::data_set::DataSet;
use super::loading::load_rows;
use crate::Result;
use crate::job::JobWork;
use crate::measure::Bench;
use crate::program::Program;
use crate::progress::progress;

/// The number of packed days, each of another project.
const PROJECT_DAYS: u8 = 3;

impl Bench<'_> {
    /// Measures the packing of whole days of rows.
    pub(super) async fn packing(&self) -> Result<JobWork> {
        progress(&format!("packing: storing {PROJECT_DAYS} days of rows"));
        let store = self.job_stack.store();
        // Rows of this day are old enough to be packed.
        let end = Day::of(Clock::System.now().minus(Duration::from_hours(24))).start();
        let mut events = 0;
        for number in 0..PROJECT_DAYS {
            let project = self.job_stack.project(&format!("packed-{number}")).await?;
            let last = DataSet::before(end).project(number)?.last().ok_or("there are no days")?;
            load_rows(store, project, &last).await?;
            events += last.rows.len();
        }

        progress(&format!("packing: packing {events} events"));
        let variables = environment::variables(&self.job_stack.endpoint());
        let is_left = async || {
            let queue = ErrorStore::new(store).list_packing_queue().await?;
            Ok(queue.iter().any(|entry| entry.due <= Clock::System.now()))
        };
        let process = self.start(Program::PackErrorLog, &variables).await?;
        JobWork::measure(process, events, is_left).await
    }
}
