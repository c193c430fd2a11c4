//! The write units of events, measured over simulated days. In each step of five minutes, events
//! arrive, and the packer runs if the project is due.

#![allow(clippy::print_stdout)]

use std::time::Duration;

use serde_json::json;

use errors::attribute::Attribute;
use errors::category::Attributes;
use errors::grouping::Fingerprint;
use errors::log::pack_schedule::early_check;
use errors::log::row::EventRow;
use errors::store::ErrorStore;
use shared::usage::counted;
use tests::app::PROJECT;
use tests::errors::SentEvent;

use super::packing::put_rows;
use super::{DAY, Item, MINUTE, Tracker};

const STEP: Duration = Duration::from_mins(5);
const STEPS_OF_A_DAY: u32 = 288;
/// The number of events that ingestion receives, to measure a delivery. The others are put into the
/// log as rows.
const DELIVERED: u32 = 50;

/// The manifest has the counts of a whole day.
#[tokio::test]
async fn unfiltered_counts_of_whole_days_read_no_runs() {
    let tracker = Tracker::start().await;
    for number in 0..12_u64 {
        let at = tracker.ago(DAY * u32::try_from(4 + number / 4).unwrap());
        tracker.deliver(&SentEvent::new(number, at, "TypeError", "x")).await;
    }
    tracker.pack().await;
    let from = tracker.ago(DAY * 30).as_millis();
    // This query caches the API key and the project.
    tracker.total(&json!({})).await;
    let (all, usage) = counted(tracker.total(&json!({"from": from}))).await;
    let filter = json!([{"categoryId": "level", "operator": "is_set", "value": ""}]);
    let filtered = json!({"from": from, "filters": filter});
    let (filtered, usage_of_filtered) = counted(tracker.total(&filtered)).await;
    assert_eq!((all, filtered), (12, 12));
    assert_eq!(usage.calls + 1, usage_of_filtered.calls, "{usage:?} {usage_of_filtered:?}");
}

/// The write units of an event.
struct Cost {
    /// The write units of the delivery.
    delivery: f64,
    /// The write units after the delivery: queue, packing, `lastSeen` of errors, compaction, and
    /// deletion of replaced runs.
    packing: f64,
}

/// A project that receives events over simulated days.
struct Days {
    tracker: Tracker,
    /// The number of events so far.
    events: u32,
    /// The number of events that ingestion received.
    delivered: u32,
    delivery_units: f64,
    packing_units: f64,
}

impl Days {
    async fn start() -> Self {
        let tracker = Tracker::start().await;
        Self { tracker, events: 0, delivered: 0, delivery_units: 0.0, packing_units: 0.0 }
    }

    /// Simulates five minutes with `events` events, then runs the packer if the project is due.
    async fn step(&mut self, events: u32, row: impl Fn(&Tracker, u32) -> EventRow) {
        self.tracker.test.pass(STEP);
        let (tracker, store) = (&self.tracker, &self.tracker.test.app.store);
        if events > 0 {
            let mut numbers = self.events..self.events + events;
            let early = numbers.find_map(|number| early_check(number, tracker.now()));
            let enqueue = ErrorStore::new(store).enqueue_for_packing(
                tracker.project.id,
                early,
                tracker.now(),
            );
            let (enqueued, usage) = counted(enqueue).await;
            assert_eq!(enqueued.unwrap().shards, 1);
            self.packing_units += usage.write_units;
            let mut rows: Vec<EventRow> =
                (0..events).map(|number| row(tracker, self.events + number)).collect();
            if self.delivered < DELIVERED {
                let row = rows.pop().unwrap();
                let number = u64::from(self.events + events);
                let kind = format!("Error{}", char::from(b'A' + row.fingerprint.0[0]));
                let event = SentEvent::new(number, row.occurred_at, &kind, "x");
                let ((), usage) = counted(tracker.deliver(&event)).await;
                self.delivery_units += usage.write_units;
                self.delivered += 1;
            }
            put_rows(tracker, &rows).await;
            self.events += events;
        }
        if is_due(tracker).await {
            let ((), usage) = counted(tracker.run_schedule()).await;
            self.packing_units += usage.write_units;
        }
    }

    /// Checks that all events are counted, and returns the average cost of an event.
    async fn cost(&self) -> Cost {
        let all = json!({"projectIds": [PROJECT], "from": 0});
        let filled = self.tracker.filled(&all).await;
        let counted: u64 = filled.iter().map(|(_, events, _)| events).sum();
        assert_eq!(counted, u64::from(self.events));
        Cost {
            delivery: self.delivery_units / f64::from(self.delivered),
            packing: self.packing_units / f64::from(self.events),
        }
    }
}

/// `true` if the project is due in the queue. Reads only the project's queue partition, since each
/// step calls this.
async fn is_due(tracker: &Tracker) -> bool {
    let project = tracker.project.id.to_string();
    let last = u8::from_str_radix(&project[project.len() - 1..], 16).unwrap();
    let entries = tracker.items_of_partition(&format!("packing-queue#{last:02}")).await;
    let due = |entry: &Item| entry["due"].as_n().unwrap().parse::<i64>().unwrap();
    entries.iter().any(|entry| due(entry) <= tracker.now().as_millis())
}

/// Returns the cost of an event at a load of `events_of_a_day`.
async fn cost(events_of_a_day: u32, days: u32) -> Cost {
    let mut of_project = Days::start().await;
    for step in 1..=days * STEPS_OF_A_DAY {
        let due = events_of_a_day * step / STEPS_OF_A_DAY - of_project.events;
        of_project.step(due, row).await;
    }
    of_project.cost().await
}

/// Returns an event of one of twenty errors, in the last 20 minutes.
fn row(tracker: &Tracker, number: u32) -> EventRow {
    let mut attributes = Attributes::default();
    for (index, attribute) in (0_u32..).zip(Attribute::texts()) {
        attributes.set(attribute, Some(format!("value-{}", number % (index + 2))));
    }
    EventRow {
        occurred_at: tracker.now().minus(MINUTE * (1 + number % 20)),
        fingerprint: Fingerprint([u8::try_from(number % 20).unwrap(); 16]),
        attributes,
    }
}

async fn costs_at_most(events: u32, days: u32, most: f64) {
    let Cost { delivery, packing } = cost(events, days).await;
    println!(
        "{events} events a day: {:.2} write units each, {packing:.3} of them for packing",
        delivery + packing
    );
    assert!(packing <= most, "{events} events a day: {packing}");
}

#[tokio::test]
async fn packing_cost_is_bounded_at_24_daily_events() {
    costs_at_most(24, 8, 1.6).await;
}

#[tokio::test]
async fn packing_cost_is_bounded_at_300_daily_events() {
    costs_at_most(300, 6, 0.2).await;
}

#[tokio::test]
async fn packing_cost_is_bounded_at_1000_daily_events() {
    costs_at_most(1_000, 5, 0.1).await;
}
