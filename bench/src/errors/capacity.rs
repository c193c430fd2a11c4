//! The write units of events, measured over simulated days. In each step of five minutes, events
//! arrive, and the packer runs if the project is due.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use errors::attribute::Attribute;
use errors::log::day::Day;
use errors::log::pack_schedule::early_check;
use errors::log::row::EventRow;
use errors::store::ErrorStore;
use shared::app::{App, Clock, Deadline, Ids, respond};
use shared::projects::project::Project;
use shared::timestamp::Timestamp;
use shared::usage::counted;

use super::delivery::delivery;
use super::generator::ProjectGenerator;
use super::loading::{bytes_of_runs, put_rows};
use crate::Result;
use crate::program::Program;
use crate::progress::progress;
use crate::report::{Report, at_most};
use crate::stack::Stack;
use crate::statistics::float;

const STEP: Duration = Duration::from_mins(5);
const STEPS_OF_A_DAY: u64 = 288;
const DAY: Duration = Duration::from_hours(24);
/// The time after the last event until compaction of its runs is complete.
const MERGING: Duration = Duration::from_hours(24 * 4);
/// The number of events that ingestion receives, to measure a delivery. The others are put into the
/// log as rows.
const DELIVERED: u64 = 100;
/// The number of errors of the project.
const ERRORS: u16 = 200;
/// The start of the simulated days, in milliseconds since the Unix epoch.
const START: u64 = 1_795_219_200_000;
/// The time limit of one packer invocation, as in Lambda.
const JOB_TIME: Duration = Duration::from_mins(1);

/// Loads of a project: events per day, their duration, and the target of their write units after
/// the delivery: queue, packing with `lastSeen` of each error, compaction, and deletion of replaced
/// runs.
const LOADS: [(u64, Duration, f64); 4] = [
    (24, Duration::from_hours(24 * 8), 1.1),
    (300, Duration::from_hours(24 * 6), 0.15),
    (1_000, Duration::from_hours(24 * 5), 0.15),
    (100_000, DAY, 0.05),
];
/// A load that takes minutes to store. It lasts an hour instead of days.
const LARGEST_LOAD: (u64, Duration, f64) = (15_000_000, Duration::from_hours(1), 0.05);
/// A flood of events whose attributes all differ: events per day, and their duration.
const FLOOD: (u64, Duration) = (1_200_000, Duration::from_mins(30));

/// Measures the write units of events, at the largest load only if `with_largest`.
pub(crate) async fn capacity(with_largest: bool, report: &mut Report) -> Result<()> {
    let largest = with_largest.then_some(LARGEST_LOAD);
    for (events_of_a_day, lasting, target) in LOADS.into_iter().chain(largest) {
        progress(&format!("capacity: {events_of_a_day} events a day"));
        let mut days = Days::start().await?;
        days.pass(events_of_a_day, lasting, |_, _| ()).await?;
        let name = format!("write units per event, at {events_of_a_day} a day");
        let packing = days.packing_units / float(days.events);
        report.add(Program::PackErrorLog, &name, packing, "", at_most(target));
        let delivery = days.delivery_units / float(days.delivered);
        report.add(Program::IngestErrorEvents, name, delivery, "", None);
    }
    progress("capacity: a flood of attributes that all differ");
    let (events_of_a_day, lasting) = FLOOD;
    let mut days = Days::start().await?;
    days.pass(events_of_a_day, lasting, make_unique).await?;
    let bytes = bytes_of_runs(days.stack.client(), days.project.id).await?;
    let each = days.packing_units * 1_000.0 / float(bytes);
    let name = "write units per kB of unique attributes";
    report.add(Program::PackErrorLog, name, each, "", at_most(3.0));
    Ok(())
}

/// Gives a row unique values that hardly compress.
fn make_unique(row: &mut EventRow, number: u64) {
    for (attribute, turn) in Attribute::texts().zip(0..) {
        let noise = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(turn);
        let value = format!("/{noise:016x}/{:016x}", noise.reverse_bits());
        row.attributes.set(attribute, Some(value));
    }
}

/// A project that receives events over simulated days.
struct Days {
    stack: Stack,
    app: App,
    project: Project,
    generator: ProjectGenerator,
    /// The number of events so far.
    events: u64,
    /// The number of events that ingestion received.
    delivered: u64,
    delivery_units: f64,
    packing_units: f64,
}

impl Days {
    async fn start() -> Result<Self> {
        let stack = Stack::start().await?;
        let clock = Clock::Fixed(AtomicU64::new(START));
        Ok(Self {
            app: App::new(stack.store().clone(), clock, Ids::Random),
            project: stack.project_with_dsn("days").await?,
            stack,
            generator: ProjectGenerator::new(0, ERRORS)?,
            events: 0,
            delivered: 0,
            delivery_units: 0.0,
            packing_units: 0.0,
        })
    }

    /// Simulates days with events, then days without events until compaction is complete.
    async fn pass(
        &mut self,
        events_of_a_day: u64,
        lasting: Duration,
        change: impl Fn(&mut EventRow, u64),
    ) -> Result<()> {
        for step in 1..=(lasting + MERGING).as_secs() / STEP.as_secs() {
            let with_events = step.min(lasting.as_secs() / STEP.as_secs());
            let events = events_of_a_day * with_events / STEPS_OF_A_DAY - self.events;
            self.step(events, &change).await?;
        }
        Ok(())
    }

    async fn step(&mut self, events: u64, change: &impl Fn(&mut EventRow, u64)) -> Result<()> {
        let Clock::Fixed(millis) = &self.app.clock else {
            return Err("the clock is not fixed".into());
        };
        millis.fetch_add(u64::try_from(STEP.as_millis())?, Ordering::Relaxed);
        let now = self.app.clock.now();
        if events > 0 {
            let mut numbers = self.events..self.events + events;
            let early = numbers.find_map(|number| early_check(u32::try_from(number).ok()?, now));
            let enqueue =
                ErrorStore::new(&self.app.store).enqueue_for_packing(self.project.id, early, now);
            let (enqueued, usage) = counted(enqueue).await;
            enqueued?;
            self.packing_units += usage.write_units;
            let mut rows = self.generator.day(Day::of(now), usize::try_from(events)?);
            for (row, number) in rows.iter_mut().zip(self.events..) {
                row.occurred_at = now.minus(Duration::from_secs(number % 1_200));
                change(row, number);
            }
            if self.delivered < DELIVERED {
                rows.pop();
                self.deliver(now).await?;
            }
            put_rows(self.stack.client(), self.project.id, &rows, now).await?;
            self.events += events;
        }
        // In production the packer runs each minute, and usually finds no work.
        if self.is_due(now).await? {
            let (packed, usage) =
                counted((pack_error_log::JOB.run)(&self.app, Deadline::after(JOB_TIME))).await;
            packed?;
            self.packing_units += usage.write_units;
        }
        Ok(())
    }

    async fn deliver(&mut self, now: Timestamp) -> Result<()> {
        let delivery = delivery(&self.project, usize::try_from(self.delivered)?, now)?;
        let request = lambda_http::request::from_reader(&*delivery)?;
        let operation = &ingest_error_events::OPERATION;
        let (response, usage) = counted(respond(&self.app, operation, request)).await;
        if response.status() != 200 {
            return Err(format!("an event was rejected with {}", response.status()).into());
        }
        self.delivered += 1;
        self.delivery_units += usage.write_units;
        Ok(())
    }

    /// `true` if the project is due in the queue.
    async fn is_due(&self, now: Timestamp) -> Result<bool> {
        let queue = ErrorStore::new(&self.app.store).list_packing_queue().await?;
        Ok(queue.iter().any(|entry| entry.due <= now))
    }
}
