//! The cost of a scheduled job that processes a backlog.

use std::time::Duration;

use crate::Result;
use crate::process::Process;
use crate::statistics::millis;

/// The maximum number of invocations of a job before the benchmark fails.
const MAX_INVOCATIONS: usize = 5;

/// The work of a job on a backlog, until the backlog is empty.
pub(crate) struct JobWork {
    /// The number of processed events.
    pub(crate) events: usize,
    /// The number of invocations.
    pub(crate) invocations: usize,
    /// The total time of the invocations.
    pub(crate) time: Duration,
    /// The total processor time of the invocations.
    pub(crate) cpu: Duration,
    /// The peak memory of the process, in bytes.
    pub(crate) memory: u64,
}

impl JobWork {
    /// Invokes a job on a backlog of `events` events for as long as `is_left` returns `true`.
    pub(crate) async fn measure(
        mut process: Process,
        events: usize,
        is_left: impl AsyncFn() -> Result<bool>,
    ) -> Result<Self> {
        let (mut invocations, mut time) = (0, Duration::ZERO);
        let before = process.cpu().await?;
        while is_left().await? {
            if invocations == MAX_INVOCATIONS {
                let name = process.name();
                let message = format!(
                    "{invocations} invocations of {name} did not process all {events} events"
                );
                return Err(message.into());
            }
            time += process.run_job().await?.latency;
            invocations += 1;
        }
        let cpu = process.cpu().await?.saturating_sub(before);
        let memory = process.peak_memory()?;
        process.stop().await?;
        Ok(Self { events, invocations, time, cpu, memory })
    }

    pub(crate) fn events_per_second(&self) -> f64 {
        self.thousands() * 1_000.0 / self.time.as_secs_f64()
    }

    /// Returns the processor time for a thousand events, in milliseconds.
    pub(crate) fn cpu_of_1000(&self) -> f64 {
        millis(self.cpu) / self.thousands()
    }

    #[allow(clippy::cast_precision_loss)] // No figure here comes near 2^53.
    fn thousands(&self) -> f64 {
        self.events as f64 / 1_000.0
    }
}
