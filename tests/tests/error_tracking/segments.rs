//! Packing: what is counted stays the same, whatever is packed, when, and how often.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use serde_json::json;
use shared::error_tracking::EventId;
use shared::error_tracking::attribute::{Attribute, Attributes};
use shared::error_tracking::log::day::{Day, Hours};
use shared::error_tracking::log::day_state::{DayState, SegmentState};
use shared::error_tracking::log::row::{EventRow, Fingerprint};
use shared::error_tracking::log::segment::{Base, ColumnName, Columns, Decoder, pack};
use shared::error_tracking::store::Counting;
use shared::timestamp::Timestamp;
use tests::app::PROJECT;
use tests::error_tracking::SentEvent;

use super::{DAY, HOUR, Item, MINUTE, Tracker, column, number, text};

/// A tracker with events of every hour of the 48 before its start, and those events.
async fn with_two_days() -> (Tracker, Vec<SentEvent>) {
    let tracker = Tracker::start().await;
    let events: Vec<SentEvent> = (0..48_u32)
        .map(|hours| {
            let error = if hours % 3 == 0 { "ValueError" } else { "TypeError" };
            let browser = if hours % 2 == 0 { "Chrome" } else { "Firefox" };
            let at = tracker.ago(HOUR * hours + 16 * MINUTE);
            SentEvent::new(hours.into(), at, error, "x").with("browser", browser)
        })
        .collect();
    tracker.deliver_all(&events).await;
    (tracker, events)
}

/// Queries that need a segment's totals, its base, its minutes and an attribute.
async fn all_counts(tracker: &Tracker) -> Vec<Vec<(String, u64, u64)>> {
    let browser = json!([{"categoryId": "browser", "operator": "is", "value": "Chrome"}]);
    let mut all = Vec::new();
    for (length, filters) in [
        (30 * DAY, json!([])),
        (10 * DAY, json!([])),
        (40 * HOUR, json!([])),
        (30 * DAY, browser.clone()),
        (40 * HOUR, browser),
    ] {
        let mut body = tracker.since(length);
        body["filters"] = filters;
        all.push(tracker.filled(&body).await);
        body["status"] = json!("open");
        all.push(tracker.filled(&body).await);
    }
    all
}

fn today(tracker: &Tracker) -> Day {
    Day::of(tracker.now())
}

fn yesterday(tracker: &Tracker) -> Day {
    Day::of(tracker.ago(DAY))
}

#[tokio::test]
async fn packing_changes_no_count() {
    let (tracker, _) = with_two_days().await;
    let errors = tracker.errors().await;
    // Without any packing by readers: nothing is closed at the time of the first event.
    let mut before = Vec::new();
    for length in [30 * DAY, 40 * HOUR] {
        before.push(tracker.filled(&tracker.since(length)).await);
    }
    let counts = all_counts(&tracker).await;
    tracker.compact().await;
    assert_eq!(all_counts(&tracker).await, counts);
    assert_eq!((&counts[0], &counts[4]), (&before[0], &before[1]));
    assert_eq!(tracker.errors().await, errors);
    assert_eq!(tracker.day(yesterday(&tracker)).await.packed(), Hours::ALL);
    // Closed are the hours that ended ten minutes ago.
    assert_eq!(tracker.day(today(&tracker)).await.packed(), Hours::between(0, 4));
}

#[tokio::test]
async fn what_is_packed_is_counted_without_its_rows() {
    let (tracker, _) = with_two_days().await;
    let counts = all_counts(&tracker).await;
    tracker.compact().await;
    tracker.test.pass(DAY);
    tracker.compact().await;
    let total = tracker.total(&json!({})).await;
    // Rows expire after 90 days, segments after 400.
    tracker.test.pass(300 * DAY);
    let range = json!({"projectIds": [PROJECT], "from": 0});
    let filled = tracker.filled(&range).await;
    assert_eq!(filled, counts[0]);
    assert_eq!(filled.iter().map(|(_, events, _)| events).sum::<u64>(), total);
    let mut filtered = range.clone();
    filtered["searchQuery"] = json!("browser:Chrome");
    assert_eq!(tracker.filled(&filtered).await, counts[6]);
    tracker.test.pass(101 * DAY);
    assert!(tracker.filled(&range).await.is_empty(), "segments expire, too");
}

#[tokio::test]
async fn days_leave_the_queue_when_they_are_complete_and_late_events_put_them_back() {
    let (tracker, _) = with_two_days().await;
    let [before, yesterday, today] =
        [Day::of(tracker.ago(2 * DAY)), yesterday(&tracker), today(&tracker)];
    assert_eq!(tracker.queue().await, [before, yesterday, today]);
    tracker.compact().await;
    assert_eq!(tracker.queue().await, [today]);
    // Four minutes past midnight.
    tracker.test.pass(19 * HOUR + 48 * MINUTE);
    tracker.compact().await;
    assert_eq!(tracker.queue().await, [today], "its last hour is not yet closed");
    tracker.test.pass(DAY);
    tracker.compact().await;
    assert!(tracker.queue().await.is_empty());

    for (index, days) in (0..).zip([3, 29]) {
        let at = tracker.ago(days * DAY);
        let total = tracker.total(&json!({})).await;
        tracker.deliver(&SentEvent::new(100 + index, at, "TypeError", "x")).await;
        assert_eq!(tracker.queue().await, [Day::of(at)]);
        assert_eq!(tracker.total(&json!({})).await, total + 1);
        tracker.compact().await;
        assert!(tracker.queue().await.is_empty());
        assert_eq!(tracker.total(&json!({})).await, total + 1);
    }
}

#[tokio::test]
async fn an_hour_with_late_events_is_counted_from_rows_until_it_is_packed_anew() {
    let (tracker, _) = with_two_days().await;
    tracker.compact().await;
    let day = yesterday(&tracker);
    let before = tracker.day(day).await;
    let at = day.start().plus(7 * HOUR + 30 * MINUTE);
    for number in 100..103 {
        let late = SentEvent::new(number, at, "KeyError", "late").with("browser", "Chrome");
        tracker.deliver(&late).await;
    }
    let dirty = tracker.day(day).await;
    assert_eq!((dirty.dirty(), dirty.version), (Hours::between(7, 8), before.version));
    assert_eq!(tracker.total(&json!({})).await, 51);
    let counts = all_counts(&tracker).await;
    tracker.compact().await;
    let packed = tracker.day(day).await;
    assert_eq!((packed.dirty(), packed.packed()), (Hours::NONE, Hours::ALL));
    assert!(packed.version > before.version);
    assert_eq!(all_counts(&tracker).await, counts);
    let error = tracker.errors().await.into_iter().find(|error| error["type"] == "KeyError");
    assert_eq!(error.unwrap()["count"], 3);
}

#[tokio::test]
async fn an_event_is_late_from_five_minutes_after_its_hour_on() {
    let tracker = Tracker::start().await;
    let hour = today(&tracker).start().plus(4 * HOUR);
    let day = today(&tracker);
    // Now it is 4:16.
    tracker.deliver(&SentEvent::new(0, hour, "TypeError", "x")).await;
    tracker.test.pass(48 * MINUTE + Duration::from_secs(59));
    tracker.deliver(&SentEvent::new(1, hour, "TypeError", "x")).await;
    assert_eq!(tracker.day(day).await.late[4], 0);
    tracker.test.pass(Duration::from_secs(1));
    tracker.deliver(&SentEvent::new(2, hour, "TypeError", "x")).await;
    assert_eq!(tracker.day(day).await.late[4], 1);
    tracker.test.pass(4 * MINUTE + Duration::from_secs(59));
    tracker.compact().await;
    assert!(!tracker.day(day).await.packed().contains(4));
    tracker.test.pass(Duration::from_secs(1));
    tracker.compact().await;
    assert_eq!(tracker.day(day).await.packed(), Hours::between(0, 5));
    assert_eq!(tracker.total(&json!({})).await, 3);
}

#[tokio::test]
async fn packing_again_writes_nothing() {
    let (tracker, _) = with_two_days().await;
    tracker.compact().await;
    let sorted = |mut items: Vec<Item>| {
        items.sort_by_key(|item| (text(item, "pk").to_owned(), text(item, "sk").to_owned()));
        items
    };
    let before = sorted(tracker.test.items(super::TABLE).await);
    tracker.compact().await;
    for day in [yesterday(&tracker), today(&tracker)] {
        tracker.pack(day).await;
    }
    assert_eq!(sorted(tracker.test.items(super::TABLE).await), before);
}

#[tokio::test]
async fn packers_and_deliveries_at_once_lose_and_double_nothing() {
    let (tracker, events) = with_two_days().await;
    let late: Vec<SentEvent> = events
        .iter()
        .enumerate()
        .map(|(index, event)| SentEvent { id: format!("{:032x}", index + 1), ..event.clone() })
        .collect();
    let packers = async {
        for _ in 0..3 {
            join_all((0..3).map(|_| tracker.compact())).await;
        }
    };
    tokio::join!(packers, tracker.deliver_all(&late));
    let counts = all_counts(&tracker).await;
    assert_eq!(counts[0].iter().map(|(_, events, _)| events).sum::<u64>(), 96);
    tracker.compact().await;
    assert_eq!(all_counts(&tracker).await, counts);
    let [before, yesterday] = [Day::of(tracker.ago(2 * DAY)), yesterday(&tracker)];
    for day in [before, yesterday] {
        let state = tracker.day(day).await;
        assert_eq!((state.packed(), state.dirty()), (Hours::ALL, Hours::NONE));
    }
}

#[tokio::test]
async fn a_reader_packs_what_the_schedule_has_not() {
    let (tracker, _) = with_two_days().await;
    let days = [Day::of(tracker.ago(2 * DAY)), yesterday(&tracker), today(&tracker)];
    let versions = async || {
        let mut versions = Vec::new();
        for day in days {
            versions.push(tracker.day(day).await.version > 0);
        }
        versions
    };
    assert_eq!(versions().await, [false, false, false]);
    let total = tracker.total(&json!({})).await;
    assert_eq!(versions().await, [true, true, false], "two days, since the caller waits");
    assert_eq!((total, tracker.total(&json!({})).await), (48, 48));
    assert_eq!(versions().await, [true, true, true]);
}

#[tokio::test]
async fn a_segment_that_is_being_written_anew_is_counted_from_its_rows() {
    let (tracker, _) = with_two_days().await;
    tracker.compact().await;
    let counts = all_counts(&tracker).await;
    let errors = tracker.errors().await;
    let segments = tracker.items_of("segments#").await;
    assert!(!segments.is_empty());
    for name in ["base#", "minutes#", "browser#"] {
        for item in segments.iter().filter(|item| text(item, "sk").starts_with(name)) {
            let generation: i64 = item["generation"].as_n().unwrap().parse().unwrap();
            for other in [generation + 1, generation - 1] {
                tracker.tamper(item, "generation", number(other)).await;
                assert_eq!(all_counts(&tracker).await, counts, "{name}");
                assert_eq!(tracker.errors().await, errors, "{name}");
            }
            tracker.tamper(item, "generation", number(generation)).await;
        }
    }
    // The other half of a column that is just becoming longer.
    for item in &segments {
        tracker.tamper(item, "chunks", number(2)).await;
    }
    assert_eq!(all_counts(&tracker).await, counts);
    for item in &segments {
        tracker.remove(item).await;
    }
    assert_eq!(all_counts(&tracker).await, counts);
}

#[tokio::test]
async fn what_has_expired_is_not_counted() {
    let (tracker, _) = with_two_days().await;
    let now = tracker.now().as_seconds();
    let rows = tracker.items_of("rows#").await;
    for item in &rows[..5] {
        tracker.tamper(item, "expiresAt", number(now)).await;
    }
    for item in &rows[5..7] {
        tracker.tamper(item, "expiresAt", number(now + 1)).await;
    }
    // Of today, nothing is packed yet: readers pack the two oldest days.
    let total = async || {
        let body = tracker.since(31 * DAY);
        tracker.buckets(&body).await.iter().map(|(_, events, _)| events).sum::<u64>()
    };
    assert_eq!(total().await, 43);
    let mut days = tracker.items_of("days#").await;
    days.retain(|item| !text(item, "sk").contains('#'));
    assert_eq!(days.len(), 3);
    for item in &days {
        let before = total().await;
        tracker.tamper(item, "expiresAt", number(now)).await;
        assert!(total().await < before);
    }
    assert_eq!(total().await, 0);
}

/// Removes what the last step of a delivery writes.
async fn lose_errors(tracker: &Tracker) {
    for prefix in ["errors#", "fingerprints#"] {
        for item in tracker.items_of(prefix).await {
            tracker.remove(&item).await;
        }
    }
}

#[tokio::test]
async fn an_error_that_is_missing_is_created_when_its_events_are_packed() {
    let tracker = Tracker::start().await;
    let events = [
        SentEvent::new(1, tracker.ago(26 * HOUR), "TypeError", "Cannot read x\nof undefined"),
        SentEvent::new(2, tracker.ago(25 * HOUR), "TypeError", "Cannot read x\nof undefined"),
        SentEvent::new(3, tracker.ago(27 * HOUR), "TypeError", "Cannot read x\nof undefined"),
        SentEvent::new(4, tracker.ago(27 * HOUR), "ValueError", "bad card")
            .with("transaction", "pay"),
        SentEvent::new(5, tracker.ago(MINUTE), "KeyError", "of an open hour"),
    ];
    tracker.deliver_all(&events).await;
    let whole = tracker.errors().await;
    lose_errors(&tracker).await;
    assert!(tracker.errors().await.is_empty());
    assert_eq!(tracker.total(&json!({})).await, 5, "events count without their errors");
    tracker.compact().await;
    let mut errors = tracker.errors().await;
    assert_eq!(column(&errors, "type"), ["TypeError", "ValueError"]);
    for (error, expected) in errors.iter_mut().zip(&whole[1..]) {
        assert_ne!(error["errorId"], expected["errorId"]);
        error["errorId"] = expected["errorId"].clone();
        assert_eq!(error, expected);
    }
    tracker.test.pass(2 * HOUR);
    tracker.compact().await;
    assert_eq!(column(&tracker.errors().await, "type"), ["KeyError", "TypeError", "ValueError"]);
}

/// A segment of the rows of some hours of a day, as a packer makes it.
fn segment(day: Day, rows: &[EventRow], hours: Hours) -> (SegmentState, Columns) {
    let columns = pack(day, rows).unwrap();
    let base = columns.get(ColumnName::Base).unwrap();
    let totals = Base::decode(&mut Decoder::new(), base).unwrap().totals();
    (SegmentState { hours, generation: 0, bytes: 1, totals }, columns)
}

#[tokio::test]
async fn an_event_that_comes_while_a_day_is_completed_keeps_it_in_the_queue() {
    let (tracker, _) = with_two_days().await;
    let day = yesterday(&tracker);
    let store = &tracker.test.app.store;
    let project = tracker.project.id;
    // A packer has all but the last hour, and reads that one.
    let rows = async |hours| store.read_rows(project, day, 1, hours, tracker.now()).await.unwrap();
    let most = Hours::between(0, 23);
    let state = tracker.day(day).await;
    let (packed, columns) = segment(day, &rows(most).await, most);
    let state: DayState =
        store.save_segment(project, &state, &packed, &columns, most).await.unwrap().unwrap();
    let (whole, columns) = segment(day, &rows(Hours::ALL).await, Hours::ALL);
    // Meanwhile, an hour that it leaves as it is gets an event.
    let at = day.start().plus(5 * HOUR);
    tracker.deliver(&SentEvent::new(100, at, "TypeError", "x")).await;
    store.save_segment(project, &state, &whole, &columns, Hours::between(23, 24)).await.unwrap();
    assert!(tracker.queue().await.contains(&day));
    tracker.compact().await;
    assert!(!tracker.queue().await.contains(&day));
    let state = tracker.day(day).await;
    assert_eq!((state.packed(), state.dirty()), (Hours::ALL, Hours::NONE));
    assert_eq!(tracker.total(&json!({})).await, 49);
}

#[tokio::test]
async fn a_packer_that_has_read_an_hour_before_its_last_event_writes_nothing() {
    let (tracker, _) = with_two_days().await;
    let day = yesterday(&tracker);
    let store = &tracker.test.app.store;
    let project = tracker.project.id;
    let state = tracker.day(day).await;
    let rows = store.read_rows(project, day, 1, Hours::ALL, tracker.now()).await.unwrap();
    let (whole, columns) = segment(day, &rows, Hours::ALL);
    tracker.deliver(&SentEvent::new(100, day.start(), "TypeError", "x")).await;
    let saved = store.save_segment(project, &state, &whole, &columns, Hours::ALL).await.unwrap();
    assert_eq!(saved, None);
    assert_eq!(tracker.total(&json!({})).await, 49);
}

/// Text that cannot be compressed much.
fn noise(random: &mut ChaCha8Rng, length: usize) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    (0..length).map(|_| char::from(*LETTERS.choose(random).unwrap())).collect()
}

#[tokio::test]
async fn a_column_of_more_than_an_items_size_is_split_and_put_together_again() {
    const EVENTS: u64 = 2_600;
    let tracker = Tracker::start().await;
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let day = Day::of(tracker.ago(3 * DAY));
    let store = &tracker.test.app.store;
    let project = tracker.project.id;
    store.open_day(project, day).await.unwrap();
    let rows: Vec<(EventId, EventRow)> = (0..EVENTS)
        .map(|index| {
            let mut attributes = Attributes::default();
            let release = format!("{}{}", noise(&mut random, 199), index % 10);
            attributes.set(Attribute::Release, Some(release));
            let occurred_at = day.start().plus(Duration::from_secs(index * 30));
            let fingerprint = Fingerprint(u128::from(index % 3).to_be_bytes());
            let id = EventId::parse(&format!("{:032x}", index + 1)).unwrap();
            (id, EventRow { occurred_at, fingerprint, attributes })
        })
        .collect();
    let counting =
        rows.iter().map(|(id, row)| store.count_event(project, *id, row, 1, tracker.now()));
    let counted: Vec<_> = stream::iter(counting).buffer_unordered(16).collect().await;
    assert!(counted.into_iter().all(|counted| counted.unwrap() == Counting::Counted));
    let state = tracker.pack(day).await;
    assert!(state.is_complete());

    let mut chunks: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for item in tracker.items_of("segments#").await {
        let name = text(&item, "sk").split('#').next().unwrap().to_owned();
        let AttributeValue::B(bytes) = &item["bytes"] else { panic!("no bytes") };
        chunks.entry(name).or_default().push(bytes.as_ref().len());
    }
    let release = &chunks["release"];
    assert!(release.len() > 1 && release.iter().all(|bytes| *bytes <= 350_000), "{release:?}");
    // Only the segment is left.
    tracker.test.pass(100 * DAY);
    let mut body = json!({"projectIds": [PROJECT], "from": day.start().as_millis(),
        "to": day.next().start().as_millis()});
    let of_hour = |hour: u64, events: &dyn Fn(u64) -> bool| {
        let counted = (0..EVENTS).filter(|index| index * 30 / 1_800 == hour && events(*index));
        u64::try_from(counted.count()).unwrap()
    };
    for last in ["3", "7"] {
        let digit: u64 = last.parse().unwrap();
        body["filters"] = json!([{"categoryId": "release", "operator": "contains",
            "value": rows[usize::try_from(digit).unwrap()].1.attributes.get(Attribute::Release)}]);
        assert_eq!(tracker.filled(&body).await.len(), 1);
        body["filters"] = json!([{"categoryId": "release", "operator": "is_set", "value": ""}]);
        let buckets = tracker.buckets(&body).await;
        for (half_hour, bucket) in (0..).zip(&buckets) {
            assert_eq!(bucket.1, of_hour(half_hour, &|_| true));
        }
    }
}

/// What clocks disagree about is less than the time between lateness and closing.
#[tokio::test]
async fn an_event_from_a_clock_ahead_is_counted_when_its_minute_has_come() {
    let tracker = Tracker::start().await;
    let ahead = Timestamp::parse_rfc3339("2026-11-21T04:17:00Z").unwrap();
    tracker.deliver(&SentEvent::new(1, ahead, "TypeError", "x")).await;
    let body = json!({"projectIds": [PROJECT], "from": tracker.ago(HOUR).as_millis(),
        "to": tracker.now().plus(HOUR).as_millis()});
    assert!(tracker.filled(&body).await.is_empty());
    tracker.test.pass(MINUTE);
    assert_eq!(tracker.filled(&body).await, [("2026-11-21T04:17".to_owned(), 1, 1)]);
}
