//! What packing and merging write, by days that pass in seconds.

#![allow(clippy::print_stdout)]

use std::time::Duration;

use serde_json::json;
use shared::error_tracking::attribute::{Attribute, Attributes};
use shared::error_tracking::log::row::{EventRow, Fingerprint};
use shared::error_tracking::store::Taken;
use shared::usage::counted;
use tests::app::PROJECT;

use super::packing::put_rows;
use super::{DAY, MINUTE, Tracker};

/// How often events come and the packer runs.
const STEP: Duration = Duration::from_hours(1);

/// What one event costs in write units besides its delivery, where so many come in a day: the queue,
/// packing, merging, and deleting what was merged.
async fn write_units(events_of_a_day: u32, days: u32) -> f64 {
    let tracker = Tracker::start().await;
    let steps = u32::try_from(DAY.as_secs() / STEP.as_secs()).unwrap();
    let (mut sent, mut units) = (0, 0.0);
    for step in 1..=days * steps {
        tracker.test.pass(STEP);
        let due = events_of_a_day * step / steps - sent;
        if due > 0 {
            let rows: Vec<EventRow> = (0..due).map(|number| row(&tracker, sent + number)).collect();
            let taken = Taken { events: u64::from(due), time: STEP };
            let store = &tracker.test.app.store;
            let (wanted, usage) =
                counted(store.want_packing(tracker.project.id, taken, tracker.now())).await;
            assert_eq!(wanted.unwrap(), 1);
            units += usage.write_units;
            put_rows(&tracker, &rows).await;
            sent += due;
        }
        let ((), usage) = counted(tracker.run_schedule()).await;
        units += usage.write_units;
    }
    let all = json!({"projectIds": [PROJECT], "from": 0});
    let counted: u64 = tracker.filled(&all).await.iter().map(|(_, events, _)| events).sum();
    assert_eq!(counted, u64::from(sent));
    units / f64::from(sent)
}

/// An event of one of twenty errors, within the last minutes.
fn row(tracker: &Tracker, number: u32) -> EventRow {
    let mut attributes = Attributes::default();
    for (index, attribute) in (0_u32..).zip(Attribute::ALL) {
        attributes.set(attribute, Some(format!("value-{}", number % (index + 2))));
    }
    EventRow {
        occurred_at: tracker.now().minus(MINUTE * (1 + number % 20)),
        fingerprint: Fingerprint([u8::try_from(number % 20).unwrap(); 16]),
        attributes,
    }
}

#[tokio::test]
async fn packing_costs_little_whatever_a_project_sends() {
    for (events, days, most) in [(24, 8, 1.0), (300, 6, 0.15), (1_000, 5, 0.06), (8_000, 3, 0.05)] {
        let units = write_units(events, days).await;
        println!("{events} events a day: {units:.3} write units for each");
        assert!(units <= most, "{events} events a day: {units}");
    }
}
