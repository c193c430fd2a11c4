//! The write units of events, measured over simulated days. In each step of five minutes, events
//! arrive, and the packer runs if the project is due.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use futures_util::stream::{self, StreamExt, TryStreamExt};

use errors::attribute::Attribute;
use errors::log::day::Day;
use errors::log::pack_schedule::early_check;
use errors::log::row::{EventRow, encode_attributes};
use errors::store::ErrorStore;
use local::engine::Engine;
use local::{demo, environment, template};
use shared::app::{App, Clock, Deadline, Ids, respond};
use shared::dynamodb::{Store, client};
use shared::projects::project::Project;
use shared::timestamp::Timestamp;
use shared::usage::counted;

use super::delivery::delivery;
use super::loading::bytes_of_runs;
use crate::Result;
use crate::generator::ProjectGenerator;
use crate::measure::Bench;
use crate::progress::progress;
use crate::statistics::grouped;

const STEP: Duration = Duration::from_mins(5);
const DAY: Duration = Duration::from_hours(24);
const STEPS_OF_A_DAY: u64 = 288;
/// The time after the last event until compaction of its runs is complete.
const MERGING: Duration = Duration::from_hours(24 * 4);
/// The number of events that ingestion receives, to measure a delivery. The others are put into the
/// log as rows.
const DELIVERED: u64 = 100;
/// The maximum number of puts of one request.
const PUTS: usize = 25;
/// The maximum number of concurrent requests.
const PUTS_AT_ONCE: usize = 4;
/// The start of the simulated days, in milliseconds since the Unix epoch.
const START: u64 = 1_795_219_200_000;
/// The time limit of one packer invocation, as in Lambda.
const JOB_TIME: Duration = Duration::from_mins(1);

/// Loads of a project: events per day, and their duration.
const LOADS: [(u64, Duration); 4] = [
    (24, Duration::from_hours(24 * 8)),
    (300, Duration::from_hours(24 * 6)),
    (1_000, Duration::from_hours(24 * 5)),
    (100_000, DAY),
];
/// A load that takes minutes to store. It lasts an hour instead of days.
const LARGEST_LOAD: (u64, Duration) = (15_000_000, Duration::from_hours(1));
/// A flood of events whose attributes all differ: events per day, and their duration.
const FLOOD: (u64, Duration) = (1_200_000, Duration::from_mins(30));

/// The write units of events.
pub(crate) struct Capacity {
    pub(crate) loads: Vec<Cost>,
    /// The write units per kB of runs if no two events share an attribute.
    pub(crate) of_flood: f64,
}

/// The write units of an event at one load.
pub(crate) struct Cost {
    pub(crate) events_of_a_day: u64,
    /// The duration of the load.
    pub(crate) lasting: Duration,
    /// The write units of the delivery.
    pub(crate) delivery: f64,
    /// The write units after the delivery: queue, packing, compaction, and deletion of replaced
    /// runs.
    pub(crate) packing: f64,
}

impl Bench<'_> {
    /// Measures the write units of events, at the largest load only if `with_largest`.
    pub(super) async fn capacity(&self, with_largest: bool) -> Result<Capacity> {
        let largest = with_largest.then_some(LARGEST_LOAD);
        let mut loads = Vec::new();
        for (events_of_a_day, lasting) in LOADS.into_iter().chain(largest) {
            progress(&format!("capacity: {} events a day", grouped(events_of_a_day.try_into()?)));
            let mut days = Days::start().await?;
            days.pass(events_of_a_day, lasting, |_, _| ()).await?;
            loads.push(Cost {
                events_of_a_day,
                lasting,
                delivery: units(days.delivery_units, days.delivered),
                packing: units(days.packing_units, days.events),
            });
        }
        progress("capacity: a flood of attributes that all differ");
        let (events_of_a_day, lasting) = FLOOD;
        let mut days = Days::start().await?;
        days.pass(events_of_a_day, lasting, make_unique).await?;
        let bytes = bytes_of_runs(&days.client, days.project.id).await?;
        Ok(Capacity { loads, of_flood: units(days.packing_units * 1_000.0, bytes) })
    }
}

#[allow(clippy::cast_precision_loss)] // No figure here comes near 2^53.
fn units(units: f64, of: u64) -> f64 {
    units / of as f64
}

/// Gives a row unique values that hardly compress.
fn make_unique(row: &mut EventRow, number: u64) {
    for (attribute, turn) in Attribute::ALL.into_iter().zip(0..) {
        let noise = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(turn);
        let value = format!("/{noise:016x}/{:016x}", noise.reverse_bits());
        row.attributes.set(attribute, Some(value));
    }
}

/// A project that receives events over simulated days.
struct Days {
    app: App,
    client: Client,
    project: Project,
    generator: ProjectGenerator,
    /// The number of events so far.
    events: u64,
    /// The number of events that ingestion received.
    delivered: u64,
    delivery_units: f64,
    packing_units: f64,
    _engine: Engine,
}

impl Days {
    async fn start() -> Result<Self> {
        let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("../template.yaml");
        let tables = template::read_tables(&template)?;
        let engine = Engine::start(([127, 0, 0, 1], 0).into(), None, &tables)?;
        let client = client::for_endpoint(&engine.endpoint())?;
        let store = Store::new(client.clone(), environment::table_prefix());
        let id = demo::ensure_project(&store, "days", "Days").await?;
        let project = store.read_project(id).await?.ok_or("a project is missing")?;
        Ok(Self {
            app: App::new(store, Clock::Fixed(AtomicU64::new(START)), Ids::Random),
            client,
            project,
            generator: ProjectGenerator::new(0)?,
            events: 0,
            delivered: 0,
            delivery_units: 0.0,
            packing_units: 0.0,
            _engine: engine,
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
            self.put_rows(&rows, now).await?;
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
        let request = lambda_http::request::from_reader(&*delivery.request)?;
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
        let project = self.project.id.to_string();
        let last = project.get(project.len() - 1..).unwrap_or_default();
        let pk = format!("packing-queue#{:02}", u8::from_str_radix(last, 16)?);
        let get = self.client.get_item().table_name(table());
        let get = get.key("pk", AttributeValue::S(pk)).key("sk", AttributeValue::S(project));
        let Some(entry) = get.send().await?.item else { return Ok(false) };
        let due = entry.get("due").and_then(|due| due.as_n().ok()).ok_or("an entry has no time")?;
        Ok(due.parse::<i64>()? <= now.as_millis())
    }

    /// Puts rows received at `now` directly into the log. Delivering so many events would take too
    /// long.
    async fn put_rows(&self, rows: &[EventRow], now: Timestamp) -> Result<()> {
        let received = now.as_millis() - Timestamp::MIN_MILLIS;
        let number = |value: i64| AttributeValue::N(value.to_string());
        let mut requests = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            let fingerprint = AttributeValue::B(Blob::new(row.fingerprint.0));
            let attributes = AttributeValue::B(Blob::new(encode_attributes(&row.attributes)));
            let put = PutRequest::builder()
                .item("pk", AttributeValue::S(format!("log#{}#00", self.project.id)))
                .item("sk", AttributeValue::S(format!("{received:015}#{index:032x}")))
                .item("occurredAt", number(row.occurred_at.as_millis()))
                .item("fingerprint", fingerprint)
                .item("attributes", attributes)
                .item("expiresAt", number(now.plus(DAY * 90).as_seconds()));
            requests.push(WriteRequest::builder().put_request(put.build()?).build());
        }
        let puts = requests.chunks(PUTS).map(|requests| self.put_batch(requests));
        stream::iter(puts).buffer_unordered(PUTS_AT_ONCE).try_collect().await
    }

    async fn put_batch(&self, requests: &[WriteRequest]) -> Result<()> {
        let write = self.client.batch_write_item().request_items(table(), requests.to_vec());
        let left = write.send().await?.unprocessed_items.unwrap_or_default();
        if left.is_empty() { Ok(()) } else { Err("DynamoDB left rows unprocessed".into()) }
    }
}

fn table() -> String {
    format!("{}errors", environment::table_prefix())
}
