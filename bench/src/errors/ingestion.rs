//! Sequential ingestion of events by one process.

use std::time::Instant;

use local::environment;
use shared::app::Clock;
use shared::projects::project::Project;

use super::Traffic;
use super::delivery::{Delivery, delivery};
use crate::Result;
use crate::counter::{Counter, time_in_progress};
use crate::measure::Bench;
use crate::program::Program;
use crate::progress::progress;
use crate::statistics::{Sorted, millis};

/// The number of timed events.
const EVENTS: usize = 2_000;
/// The number of unmeasured events before them.
const WARM_UPS: usize = 200;
/// The number of events whose calls are counted.
const COUNTED: usize = 100;

/// The figures of event ingestion.
pub(crate) struct Ingestion {
    /// The size of the largest event, in bytes.
    pub(crate) event_bytes: usize,
    /// The size of its compressed request body, in bytes.
    pub(crate) body_bytes: usize,
    /// The latency of an event, in milliseconds.
    pub(crate) latency: Sorted,
    /// The number of events that one process ingests per second, sequentially.
    pub(crate) events_per_second: f64,
    /// The processor time of an event, in milliseconds.
    pub(crate) cpu: f64,
    /// The maximum DynamoDB traffic of a warm event.
    pub(crate) traffic: Traffic,
    /// The DynamoDB time of an event, in milliseconds.
    pub(crate) dynamodb: Sorted,
    /// The peak memory of ingest-error-events, in bytes.
    pub(crate) memory: u64,
}

impl Bench<'_> {
    /// Measures event ingestion.
    pub(super) async fn ingestion(&self) -> Result<Ingestion> {
        progress(&format!("ingestion: counting the calls of {COUNTED} events"));
        let project = self.stack.project_with_dsn("ingested").await?;
        let counter = Counter::start(self.stack.endpoint()).await?;
        let variables = environment::variables(counter.endpoint());
        let mut process = self.start(Program::IngestErrorEvents, &variables).await?;
        let (mut traffic, mut dynamodb) = (Traffic::default(), Vec::new());
        for (number, delivery) in deliveries(&project, COUNTED)?.into_iter().enumerate() {
            process.expect(200, delivery.request).await?;
            let calls = counter.take();
            // At first the process has cached neither the project nor its errors.
            if number * 2 >= COUNTED {
                traffic = traffic.max(Traffic::of(&calls));
                dynamodb.push(time_in_progress(&calls));
            }
        }
        process.stop().await?;

        progress(&format!("ingestion: {EVENTS} events"));
        let variables = environment::variables(&self.stack.endpoint());
        let mut process = self.start(Program::IngestErrorEvents, &variables).await?;
        for delivery in deliveries(&project, WARM_UPS)? {
            process.expect(200, delivery.request).await?;
        }
        let deliveries = deliveries(&project, EVENTS)?;
        let sizes = deliveries.iter().map(|delivery| (delivery.event_bytes, delivery.body_bytes));
        let (event_bytes, body_bytes) = sizes.max().ok_or("there are no events")?;
        let before = process.cpu().await?;
        let started = Instant::now();
        let mut latencies = Vec::with_capacity(EVENTS);
        for delivery in deliveries {
            latencies.push(process.expect(200, delivery.request).await?.latency);
        }
        let time = started.elapsed();
        let cpu = process.cpu().await?.saturating_sub(before);
        let memory = process.peak_memory()?;
        process.stop().await?;
        let events = u32::try_from(EVENTS)?;
        Ok(Ingestion {
            event_bytes,
            body_bytes,
            latency: Sorted::millis(latencies),
            events_per_second: f64::from(events) / time.as_secs_f64(),
            cpu: millis(cpu / events),
            traffic,
            dynamodb: Sorted::millis(dynamodb),
            memory,
        })
    }
}

fn deliveries(project: &Project, count: usize) -> Result<Vec<Delivery>> {
    (0..count).map(|number| delivery(project, number, Clock::System.now())).collect()
}
