//! Former defects: floods of unique values, and an endless stream of late events.

use std::time::Duration;

use serde_json::json;

use errors::attribute::Attribute;
use errors::category::Attributes;
use errors::grouping::Fingerprint;
use errors::log::day::Day;
use errors::log::row::EventRow;
use tests::app::PROJECT;
use tests::errors::SentEvent;

use super::packing::put_rows;
use super::{DAY, HOUR, MINUTE, Tracker, number, text};

#[tokio::test]
async fn hours_of_unique_values_are_packed() {
    const EVENTS: u64 = 20_000;
    let tracker = Tracker::start().await;
    let day = Day::of(tracker.ago(DAY));
    let row = |index: u64| {
        let mut attributes = Attributes::default();
        for attribute in Attribute::texts() {
            // These values hardly compress, like ids in URLs.
            let noise = index.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(attribute as u32);
            attributes.set(attribute, Some(format!("/{noise:016x}/{:016x}", noise.reverse_bits())));
        }
        let occurred_at = day.start().plus(Duration::from_millis(index * 3_600_000 / EVENTS));
        EventRow { occurred_at, fingerprint: Fingerprint([1; 16]), attributes }
    };
    let rows: Vec<EventRow> = (0..EVENTS).map(row).collect();
    // A delivery puts the project into the queue.
    tracker.deliver(&SentEvent::new(0xffff_ffff, tracker.ago(DAY), "TypeError", "x")).await;
    put_rows(&tracker, &rows).await;
    for time in [10 * MINUTE, DAY] {
        tracker.test.pass(time);
        tracker.run_schedule().await;
    }
    tracker.test.pass(100 * DAY);
    let body = json!({"projectIds": [PROJECT], "from": day.start().as_millis(),
        "to": day.start().plus(HOUR).as_millis()});
    let counted: u64 = tracker.filled(&body).await.iter().map(|(_, events, _)| events).sum();
    assert_eq!(counted, EVENTS);
    let mut one = body.clone();
    let value = rows[12_345].attributes.get(Attribute::Transaction);
    one["filters"] = json!([{"categoryId": "transaction", "operator": "is", "value": value}]);
    let counted: u64 = tracker.filled(&one).await.iter().map(|(_, events, _)| events).sum();
    assert_eq!(counted, 1);
}

#[tokio::test]
async fn late_events_do_not_delay_other_projects() {
    let tracker = Tracker::start().await;
    let other = tracker.other_project("other").await;
    let old = tracker.ago(20 * DAY);
    let rows: Vec<EventRow> = (0..500)
        .map(|index| EventRow {
            occurred_at: old.minus(Duration::from_secs(index)),
            fingerprint: Fingerprint([1; 16]),
            attributes: Attributes::default(),
        })
        .collect();
    put_rows(&tracker, &rows).await;
    let late = async |round: u64| {
        for index in 0..20 {
            let event = SentEvent::new(10_000 + round * 100 + index, old, "TypeError", "x");
            tracker.deliver(&event).await;
        }
    };
    late(0).await;
    let event = SentEvent::new(1, tracker.ago(HOUR), "ValueError", "y");
    assert_eq!(tracker.deliver_to(&other, &event).await.status, 200);
    for round in 1..=5 {
        tracker.test.pass(DAY + MINUTE);
        tokio::join!(late(round), tracker.run_schedule());
        assert_eq!(tracker.items_of(&format!("manifest#{}", other.id)).await.len(), 1, "{round}");
        // Each run takes one pack step, with the rows present at its start.
        let heads = tracker.items_of(&format!("log-head#{}", tracker.project.id)).await;
        assert_eq!(heads[0]["steps"], number(i64::try_from(round).unwrap()));
        assert_eq!(text(&heads[0], "sk"), "head");
    }
    assert_eq!(tracker.total(&json!({})).await, 500 + 6 * 20);
}
