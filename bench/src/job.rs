//! What it takes a scheduled job to work off what there is.

use std::time::Duration;

use crate::Result;
use crate::process::Process;
use crate::statistics::millis;

/// How often a job is invoked before the benchmark gives up on it.
const MOST_RUNS: usize = 5;

/// What a job did until nothing was left to do.
pub(crate) struct JobWork {
    /// How many events it worked on.
    pub(crate) events: usize,
    /// How many runs it took.
    pub(crate) runs: usize,
    /// How long these took.
    pub(crate) time: Duration,
    /// The processor time that they took.
    pub(crate) cpu: Duration,
    /// The most memory of the process.
    pub(crate) memory: u64,
}

impl JobWork {
    /// Runs a job for as long as something is left of so many events.
    pub(crate) async fn measure(
        mut process: Process,
        events: usize,
        is_left: impl AsyncFn() -> Result<bool>,
    ) -> Result<Self> {
        let (mut runs, mut time) = (0, Duration::ZERO);
        let before = process.cpu().await?;
        while is_left().await? {
            if runs == MOST_RUNS {
                let name = process.name();
                return Err(format!("{runs} runs of {name} left some of {events} events").into());
            }
            time += process.run_job().await?.latency;
            runs += 1;
        }
        let cpu = process.cpu().await?.saturating_sub(before);
        let memory = process.peak_memory()?;
        process.stop().await?;
        Ok(Self { events, runs, time, cpu, memory })
    }

    pub(crate) fn events_per_second(&self) -> f64 {
        self.thousands() * 1_000.0 / self.time.as_secs_f64()
    }

    /// The processor time for a thousand events, in milliseconds.
    pub(crate) fn cpu_of_1000(&self) -> f64 {
        millis(self.cpu) / self.thousands()
    }

    #[allow(clippy::cast_precision_loss)] // No figure here comes near 2^53.
    fn thousands(&self) -> f64 {
        self.events as f64 / 1_000.0
    }
}
