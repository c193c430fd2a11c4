//! Packing: counts do not depend on which rows are packed, when, and how often.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use serde_json::json;

use errors::attribute::Attribute;
use errors::category::Attributes;
use errors::grouping::Fingerprint;
use errors::log::day::Day;
use errors::log::manifest::CompactionLimits;
use errors::log::row::{EventRow, encode_attributes};
use errors::store::{EVENT_RETENTION, PackOutcome, PackingLimits};
use shared::app::{Clock, Deadline, Ids};
use shared::timestamp::Timestamp;
use tests::app::{PROJECT, app_over, pass};
use tests::errors::SentEvent;

use super::{
    DAY, EVERYTHING, HOUR, Item, MINUTE, Tracker, column, envelope, number, runs_of, text,
};

/// Returns a tracker with an event in each of the last 48 hours, and the events.
pub(super) async fn with_two_days() -> (Tracker, Vec<SentEvent>) {
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

/// Returns the results of queries that need a run's totals, base, minutes and an attribute.
pub(super) async fn all_counts(tracker: &Tracker) -> Vec<Vec<(String, u64, u64)>> {
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

#[tokio::test]
async fn packed_events_are_counted_without_rows() {
    let (tracker, _) = with_two_days().await;
    let counts = all_counts(&tracker).await;
    tracker.test.pass(DAY);
    tracker.run_schedule().await;
    let total = tracker.total(&json!({})).await;
    // Rows expire after 90 days, runs after 400.
    tracker.test.pass(300 * DAY);
    let range = json!({"projectIds": [PROJECT], "from": 0});
    let filled = tracker.filled(&range).await;
    assert_eq!(filled, counts[0]);
    assert_eq!(filled.iter().map(|(_, events, _)| events).sum::<u64>(), total);
    let mut filtered = range.clone();
    filtered["searchQuery"] = json!("browser:Chrome");
    assert_eq!(tracker.filled(&filtered).await, counts[6]);
    tracker.test.pass(101 * DAY);
    assert!(tracker.filled(&range).await.is_empty(), "runs have not expired");
}

#[tokio::test]
async fn rows_are_packed_after_a_day() {
    let (tracker, _) = with_two_days().await;
    let first = tracker.queued().await.unwrap();
    tracker.test.pass(5 * MINUTE);
    tracker.run_schedule().await;
    assert!(tracker.runs().await.is_empty(), "few new rows are packed");
    let entry = tracker.queued().await.unwrap();
    assert!(entry.due <= first.wanted.plus(DAY) && entry.waiting.since == first.wanted);
    tracker.test.pass(23 * HOUR + 54 * MINUTE);
    tracker.run_schedule().await;
    assert!(tracker.runs().await.is_empty());
    tracker.test.pass(MINUTE);
    tracker.run_schedule().await;
    assert_eq!(tracker.runs().await.iter().map(|(_, runs)| runs).sum::<usize>(), 3);
    assert_eq!(tracker.queued().await.unwrap().waiting.since, tracker.now());
    tracker.test.pass(DAY + HOUR);
    tracker.run_schedule().await;
    assert_eq!(tracker.queued().await, None);

    // The next delivery adds the project to the queue again, even if the project is cached.
    for (index, days) in (0..).zip([3, 29]) {
        let at = tracker.ago(days * DAY);
        let total = tracker.total(&json!({})).await;
        tracker.deliver(&SentEvent::new(100 + index, at, "TypeError", "x")).await;
        assert!(tracker.queued().await.is_some());
        assert_eq!(tracker.total(&json!({})).await, total + 1);
        tracker.test.pass(DAY + HOUR);
        tracker.run_schedule().await;
        assert_eq!(
            tracker.runs().await.iter().map(|(_, runs)| runs).sum::<usize>(),
            usize::try_from(4 + index).unwrap()
        );
        tracker.test.pass(DAY + HOUR);
        tracker.run_schedule().await;
        assert_eq!(tracker.queued().await, None);
    }
    let all = json!({"projectIds": [PROJECT], "from": 0});
    let counted: u64 = tracker.filled(&all).await.iter().map(|(_, events, _)| events).sum();
    assert_eq!(counted, 50);
}

#[tokio::test]
async fn rows_younger_than_a_minute_stay_unpacked() {
    let tracker = Tracker::start().await;
    tracker.deliver(&SentEvent::new(1, tracker.ago(HOUR), "TypeError", "x")).await;
    let is_packed = async |after: Duration| {
        let now = tracker.now().plus(after);
        let step = tracker.pack_step(tracker.project.id, &EVERYTHING, now).await;
        matches!(step, PackOutcome::Packed { .. })
    };
    assert!(!is_packed(Duration::from_mins(1)).await);
    assert!(is_packed(Duration::from_millis(60_001)).await);
    assert_eq!(tracker.total(&json!({})).await, 1);
}

#[tokio::test]
async fn packing_again_writes_nothing() {
    let (tracker, _) = with_two_days().await;
    tracker.test.pass(DAY);
    tracker.run_schedule().await;
    let sorted = |mut items: Vec<Item>| {
        items.sort_by_key(|item| (text(item, "pk").to_owned(), text(item, "sk").to_owned()));
        items
    };
    let before = sorted(tracker.test.items(super::TABLE).await);
    tracker.run_schedule().await;
    assert_eq!(tracker.pack().await, 0);
    assert_eq!(sorted(tracker.test.items(super::TABLE).await), before);
}

/// Restores the state that the first packer leaves if it ends after its transaction. The step also
/// names the runs `unseen`, which are not visible yet.
async fn leave_unfinished(tracker: &Tracker, unseen: &[String]) {
    let head = tracker.items_of("log-head#").await.remove(0);
    let of_manifest = |item: &Item| {
        let names = item.keys().filter_map(|name| name.strip_prefix("r_"));
        names.map(|id| format!("{}#{id}", text(item, "sk"))).collect::<Vec<_>>()
    };
    let manifests = tracker.items_of("manifest#").await;
    let runs = manifests.iter().flat_map(of_manifest).chain(unseen.iter().cloned());
    let runs = AttributeValue::L(runs.map(AttributeValue::S).collect());
    tracker.tamper(&head, "readable", AttributeValue::S("0".to_owned())).await;
    tracker.tamper(&head, "readableSteps", number(0)).await;
    tracker.tamper(&head, "step", runs).await;
}

#[tokio::test]
async fn next_packer_finishes_interrupted_steps() {
    let (tracker, _) = with_two_days().await;
    let counts = all_counts(&tracker).await;
    let errors = tracker.errors().await;
    tracker.pack().await;
    // While a run of the step is not visible, no packer finishes the step.
    let unknown = format!("2026-10-01#{}", "0".repeat(16));
    leave_unfinished(&tracker, &[unknown]).await;
    assert_eq!(all_counts(&tracker).await, counts);
    let later = tracker.now().plus(2 * MINUTE);
    let stuck = tracker.pack_step(tracker.project.id, &EVERYTHING, later).await;
    assert_eq!(stuck, PackOutcome::Lost);
    leave_unfinished(&tracker, &[]).await;
    assert_eq!(all_counts(&tracker).await, counts);
    assert_eq!(tracker.errors().await, errors);
    assert_eq!(tracker.pack().await, 0, "rows are packed twice");
    assert_eq!(tracker.items_of("log-head#").await[0]["readableSteps"], number(1));
    for row in tracker.items_of("log#").await {
        tracker.remove(&row).await;
    }
    assert_eq!(all_counts(&tracker).await, counts);
}

/// A packer that finishes a step needs the step's runs.
#[tokio::test]
async fn deletions_leave_runs_of_unfinished_steps() {
    let (tracker, _) = with_two_days().await;
    let deleted = tracker.errors().await.swap_remove(0);
    let count = deleted["count"].as_u64().unwrap();
    tracker.pack().await;
    let call = tracker.call_for(&delete_error::OPERATION, &deleted);
    assert_eq!(call.send(&tracker.test.app).await.status, 204);
    // As if the error had been deleted when the step ended.
    let manifest = tracker.items_of("manifest#").await.remove(0);
    let run = runs_of(&manifest).remove(0);
    let head = tracker.items_of("log-head#").await.remove(0);
    let (name, tombstone) = head.iter().find(|(name, _)| name.starts_with("t_")).unwrap();
    let mut tombstone = tombstone.as_m().unwrap().clone();
    tombstone.insert("at".to_owned(), number(run.until.as_millis()));
    tracker.tamper(&head, name, AttributeValue::M(tombstone)).await;
    leave_unfinished(&tracker, &[]).await;
    tracker.test.pass(5 * MINUTE);
    tracker.merge_within(&CompactionLimits::default()).await;
    let step = tracker.pack_step(tracker.project.id, &EVERYTHING, tracker.now()).await;
    assert!(matches!(step, PackOutcome::Left(_)), "{step:?}");
    assert_eq!(tracker.items_of("log-head#").await[0]["readableSteps"], number(1));
    assert_eq!(tracker.total(&json!({})).await, 48 - count);
    tracker.merge_within(&CompactionLimits::default()).await;
    assert_eq!(tracker.total(&json!({})).await, 48 - count);
    assert_eq!(u64::try_from(tracker.items_of("error-events#").await.len()).unwrap(), 48 - count);
}

#[tokio::test]
async fn expired_events_are_not_counted() {
    let (tracker, _) = with_two_days().await;
    let now = tracker.now().as_seconds();
    let rows = tracker.items_of("log#").await;
    // As if the rows had been received around their expiry, and DynamoDB had not deleted them yet.
    let oldest = now - EVENT_RETENTION.as_secs().cast_signed();
    for (item, left) in rows.iter().zip([-1, -1, -1, -1, -1, 200, 200]) {
        let received_at = oldest + left;
        let since_year_0 = received_at * 1_000 - Timestamp::MIN_MILLIS;
        let (_, event) = super::text(item, "sk").split_once('#').unwrap();
        let sk = AttributeValue::S(format!("{since_year_0:015}#{event}"));
        tracker.remove(item).await;
        tracker.put(&item.clone().into_iter().chain([("sk".to_owned(), sk)]).collect()).await;
    }
    // A query reads no rows that were received long before its range.
    assert_eq!(tracker.total(&json!({"from": 0})).await, 43);
    tracker.pack().await;
    assert_eq!(tracker.total(&json!({})).await, 43);
    // Each day expires separately, even if DynamoDB has not deleted its items.
    tracker.test.pass(398 * DAY);
    let mut totals = Vec::new();
    for _ in 0..3 {
        let filled = tracker.filled(&json!({"projectIds": [PROJECT], "from": 0})).await;
        totals.push(filled.iter().map(|(_, events, _)| events).sum::<u64>());
        tracker.test.pass(DAY);
    }
    assert_eq!((totals[0], totals[2]), (43, 0));
    assert!(totals.is_sorted_by(|day, next| day > next), "{totals:?}");
    assert!(!tracker.items_of("manifest#").await.is_empty());
}

/// Deletes the items that the last step of a delivery writes.
async fn lose_errors(tracker: &Tracker) {
    for prefix in ["errors#", "fingerprints#"] {
        for item in tracker.items_of(prefix).await {
            tracker.remove(&item).await;
        }
    }
}

#[tokio::test]
async fn packing_creates_missing_errors() {
    let tracker = Tracker::start().await;
    let events = [
        SentEvent::new(1, tracker.ago(26 * HOUR), "TypeError", "Cannot read x\nof undefined"),
        SentEvent::new(2, tracker.ago(25 * HOUR), "TypeError", "Cannot read x\nof undefined"),
        SentEvent::new(3, tracker.ago(27 * HOUR), "TypeError", "Cannot read x\nof undefined"),
        SentEvent::new(4, tracker.ago(27 * HOUR), "ValueError", "bad card")
            .with("transaction", "pay"),
    ];
    tracker.deliver_all(&events).await;
    let whole = tracker.errors().await;
    tracker.test.pass(MINUTE);
    let last = SentEvent::new(5, tracker.ago(MINUTE), "KeyError", "too new to be packed");
    tracker.deliver(&last).await;
    lose_errors(&tracker).await;
    assert!(tracker.errors().await.is_empty());
    assert_eq!(tracker.total(&json!({})).await, 5, "events without errors are not counted");
    let now = tracker.now().plus(MINUTE);
    tracker.pack_step(tracker.project.id, &EVERYTHING, now).await;
    let mut errors = tracker.errors().await;
    assert_eq!(column(&errors, "type"), ["TypeError", "ValueError"]);
    for (error, expected) in errors.iter_mut().zip(&whole) {
        assert_ne!(error["errorId"], expected["errorId"]);
        error["errorId"] = expected["errorId"].clone();
        assert_eq!(error, expected);
    }
    tracker.pack().await;
    assert_eq!(column(&tracker.errors().await, "type"), ["KeyError", "TypeError", "ValueError"]);
}

#[tokio::test]
async fn packing_reopens_resolved_errors() {
    let tracker = Tracker::start().await;
    tracker.deliver(&SentEvent::new(1, tracker.ago(HOUR), "TypeError", "x")).await;
    let error = tracker.the_error().await;
    tracker.set_status(&error, "resolved").await;
    tracker.test.pass(HOUR);
    let before = tracker.items_of("errors#").await.remove(0);
    tracker.deliver(&SentEvent::new(2, tracker.ago(MINUTE), "TypeError", "x")).await;
    // As if the delivery had been interrupted before it reopened the error.
    for (name, value) in &before {
        if !matches!(name.as_str(), "pk" | "sk") {
            tracker.tamper(&before, name, value.clone()).await;
        }
    }
    assert_eq!(tracker.the_error().await["status"], "resolved");
    tracker.pack().await;
    assert_eq!(tracker.the_error().await["status"], "open");
}

/// Returns text that hardly compresses.
fn noise(random: &mut ChaCha8Rng, length: usize) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    (0..length).map(|_| char::from(*LETTERS.choose(random).unwrap())).collect()
}

/// Puts rows received now directly into the project's log. Delivering so many events would take too
/// long.
pub(super) async fn put_rows(tracker: &Tracker, rows: &[EventRow]) {
    let expires_at = tracker.now().plus(90 * DAY).as_seconds();
    let since_year_0 = tracker.now().as_millis() - Timestamp::MIN_MILLIS;
    let item = |(index, row): (usize, &EventRow)| {
        let text = |text: String| AttributeValue::S(text);
        let attributes = encode_attributes(&row.attributes);
        Item::from([
            ("pk".to_owned(), text(format!("log#{}#00", tracker.project.id))),
            ("sk".to_owned(), text(format!("{since_year_0:015}#{index:032x}"))),
            ("occurredAt".to_owned(), number(row.occurred_at.as_millis())),
            ("fingerprint".to_owned(), AttributeValue::B(Blob::new(row.fingerprint.0))),
            ("attributes".to_owned(), AttributeValue::B(Blob::new(attributes))),
            ("expiresAt".to_owned(), number(expires_at)),
        ])
    };
    tracker.test.put(super::TABLE, rows.iter().enumerate().map(item)).await;
}

#[tokio::test]
async fn oversized_columns_span_several_items() {
    const EVENTS: u64 = 2_600;
    let tracker = Tracker::start().await;
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let day = Day::of(tracker.ago(3 * DAY));
    let rows: Vec<EventRow> = (0..EVENTS)
        .map(|index| {
            let mut attributes = Attributes::default();
            let release = format!("{}{}", noise(&mut random, 199), index % 10);
            attributes.set(Attribute::Release, Some(release));
            let occurred_at = day.start().plus(Duration::from_secs(index * 30));
            let fingerprint = Fingerprint(u128::from(index % 3).to_be_bytes());
            EventRow { occurred_at, fingerprint, attributes }
        })
        .collect();
    put_rows(&tracker, &rows).await;
    assert_eq!(tracker.pack().await, 1);

    let mut parts: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for item in tracker.items_of("columns#").await {
        let name = text(&item, "pk").split('#').nth(2).unwrap().to_owned();
        let AttributeValue::B(bytes) = &item["bytes"] else { panic!("no bytes") };
        parts.entry(name).or_default().push(bytes.as_ref().len());
    }
    let release = &parts["release"];
    assert!(release.len() > 1 && release.iter().all(|bytes| *bytes <= 350_000), "{release:?}");
    // After 100 days only the run is left.
    tracker.test.pass(100 * DAY);
    let mut body = json!({"projectIds": [PROJECT], "from": day.start().as_millis(),
        "to": day.next().start().as_millis()});
    let of_half_hour = |half_hour: u64| {
        let counted = (0..EVENTS).filter(|index| index * 30 / 1_800 == half_hour);
        u64::try_from(counted.count()).unwrap()
    };
    for index in [3, 7] {
        body["filters"] = json!([{"categoryId": "release", "operator": "contains",
            "value": rows[index].attributes.get(Attribute::Release)}]);
        assert_eq!(tracker.filled(&body).await.len(), 1);
        body["filters"] = json!([{"categoryId": "release", "operator": "is_set", "value": ""}]);
        let buckets = tracker.buckets(&body).await;
        for (half_hour, bucket) in (0..).zip(&buckets) {
            assert_eq!(bucket.1, of_half_hour(half_hour));
        }
    }
}

/// Returns the head of the project's log, with a single read, since the table is large.
async fn head(tracker: &Tracker) -> Option<Item> {
    let get = tracker.test.client.get_item();
    let get = get.table_name(format!("{}{}", local::environment::table_prefix(), super::TABLE));
    let pk = AttributeValue::S(format!("log-head#{}", tracker.project.id));
    get.key("pk", pk).key("sk", AttributeValue::S("head".to_owned())).send().await.unwrap().item
}

#[tokio::test]
async fn queries_of_many_rows_pack_none() {
    let tracker = Tracker::start().await;
    let row = |index: u64| EventRow {
        occurred_at: tracker.ago(Duration::from_secs(index)),
        fingerprint: Fingerprint([7; 16]),
        attributes: Attributes::default(),
    };
    let rows: Vec<EventRow> = (0..6_000).map(row).collect();
    tracker.deliver(&SentEvent::new(1, tracker.now(), "TypeError", "x")).await;
    tracker.pack().await;
    tracker.test.pass(2 * MINUTE);
    put_rows(&tracker, &rows).await;
    tracker.test.pass(2 * MINUTE);
    let packed = head(&tracker).await;
    assert_eq!(tracker.total(&json!({})).await, 6_001);
    assert_eq!(head(&tracker).await, packed);
}

#[tokio::test]
async fn deleted_projects_leave_the_packing_queue() {
    let tracker = Tracker::start().await;
    tracker.deliver(&SentEvent::new(1, tracker.now(), "TypeError", "x")).await;
    let id = tracker.project.id.to_string();
    tracker.test.remove("projects", [("idOrSlug", &id)]).await;
    tracker.test.pass(2 * DAY);
    tracker.run_schedule().await;
    assert!(tracker.queued().await.is_none());
    assert_eq!(tracker.items_of("log-head#").await, []);
    assert_eq!(tracker.items_of("manifest#").await, []);
}

/// Sets the number of pack steps of the project's log.
async fn pretend_steps(tracker: &Tracker, steps: i64) {
    let head = tracker.items_of("log-head#").await.remove(0);
    for name in ["steps", "readableSteps"] {
        tracker.tamper(&head, name, number(steps)).await;
    }
}

#[tokio::test]
async fn days_get_another_manifest_every_512_steps() {
    let (tracker, _) = with_two_days().await;
    let (counts, errors) = (all_counts(&tracker).await, tracker.errors().await);
    let one = PackingLimits { rows: 1, ..EVERYTHING };
    let later = tracker.now().plus(2 * MINUTE);
    tracker.pack_step(tracker.project.id, &one, later).await;
    // Two more steps belong to the first manifest.
    pretend_steps(&tracker, 509).await;
    assert_eq!(tracker.pack_within(&PackingLimits { rows: 16, ..EVERYTHING }).await, 3);
    pretend_steps(&tracker, 1_023).await;
    let manifests = tracker.items_of("manifest#").await;
    let parts = manifests.iter().filter(|item| text(item, "sk").contains('#')).count();
    assert!(parts > 0 && parts < manifests.len(), "{parts} {}", manifests.len());
    assert_eq!(all_counts(&tracker).await, counts);
    assert_eq!(tracker.errors().await, errors);

    // The next packer finds runs of an interrupted step in the second manifest of a day.
    tracker.test.pass(2 * MINUTE);
    for number in 0..20 {
        let at = tracker.ago(HOUR * 2);
        tracker.deliver(&SentEvent::new(100 + number, at, "TypeError", "x")).await;
    }
    tracker.test.pass(5 * MINUTE);
    let counts = all_counts(&tracker).await;
    let few = PackingLimits { rows: 5, ..EVERYTHING };
    for _ in 0..3 {
        tracker.pack_step(tracker.project.id, &few, tracker.now()).await;
    }
    let before = tracker.items_of("log-head#").await.remove(0);
    assert_eq!(before["steps"], number(1_026));
    tracker.pack_step(tracker.project.id, &few, tracker.now()).await;
    let of_manifest = |item: &Item| {
        let runs = runs_of(item).into_iter().filter(|run| run.first_step == 1_027);
        let runs = runs.map(|run| format!("{}#{}", &text(item, "sk")[..10], run.id));
        runs.map(AttributeValue::S).collect::<Vec<_>>()
    };
    let step: Vec<_> = tracker.items_of("manifest#").await.iter().flat_map(of_manifest).collect();
    assert_eq!(step.len(), 1);
    for name in ["readable", "readableSteps"] {
        tracker.tamper(&before, name, before[name].clone()).await;
    }
    tracker.tamper(&before, "step", AttributeValue::L(step)).await;
    assert_eq!(all_counts(&tracker).await, counts);
    assert_eq!(tracker.pack().await, 0);
    assert_eq!(tracker.items_of("log-head#").await[0]["readableSteps"], number(1_027));
    assert_eq!(all_counts(&tracker).await, counts);

    // Each manifest is compacted separately.
    let few = CompactionLimits { fan_in: 2, ..CompactionLimits::default() };
    tracker.merge_within(&few).await;
    assert!(tracker.runs().await.iter().all(|(_, runs)| *runs <= 2), "{:?}", tracker.runs().await);
    assert_eq!(all_counts(&tracker).await, counts);
    let deleted = tracker.errors().await.swap_remove(0);
    let left = 68 - deleted["count"].as_u64().unwrap();
    let call = tracker.call_for(&delete_error::OPERATION, &deleted);
    assert_eq!(call.send(&tracker.test.app).await.status, 204);
    assert_eq!(tracker.total(&json!({})).await, left);
    for _ in 0..3 {
        tracker.test.pass(2 * HOUR);
        tracker.run_schedule().await;
        assert_eq!(tracker.total(&json!({})).await, left);
    }
    let head = tracker.items_of("log-head#").await.remove(0);
    assert!(head.keys().all(|name| !name.starts_with("t_")), "{head:?}");
    tracker.test.pass(402 * DAY);
    assert_eq!(tracker.filled(&json!({"projectIds": [PROJECT], "from": 0})).await, []);
}

/// Puts rows into the log, one per second, then waits for two minutes.
async fn flood(tracker: &Tracker, rows: u32) {
    let row = EventRow {
        occurred_at: tracker.ago(HOUR),
        fingerprint: Fingerprint([7; 16]),
        attributes: Attributes::default(),
    };
    for _ in 0..rows {
        tracker.test.pass(MINUTE / 60);
        put_rows(tracker, std::slice::from_ref(&row)).await;
    }
    tracker.test.pass(2 * MINUTE);
}

async fn run_within(tracker: &Tracker, rows: usize, time: Duration) -> pack_error_log::RunOutcome {
    let packing = PackingLimits { rows, ..EVERYTHING };
    let limits = pack_error_log::RunLimits { packing, time };
    let deadline = Deadline::after(MINUTE);
    pack_error_log::pack_due(&tracker.test.app, &limits, deadline).await.unwrap()
}

#[tokio::test]
async fn packer_reports_only_due_rows_as_backlog() {
    let tracker = Tracker::start().await;
    tracker.deliver(&SentEvent::new(1, tracker.now(), "TypeError", "x")).await;
    flood(&tracker, 200).await;
    tracker.test.pass(5 * MINUTE);
    // The first two rows span two seconds, and hundreds of seconds of rows follow.
    let outcome = run_within(&tracker, 2, Duration::from_millis(300)).await;
    let entry = tracker.queued().await.unwrap();
    assert!((200..=2_000).contains(&outcome.rows), "{outcome:?}");
    assert_eq!((entry.waiting.rows, Some(entry.waiting.since)), (outcome.rows, outcome.oldest));
    assert!(entry.due <= tracker.now(), "the next run does not continue");
    // The next run packs the remaining rows.
    let outcome = run_within(&tracker, 20_000, MINUTE).await;
    assert_eq!((outcome.rows, outcome.oldest), (0, Some(tracker.now())));
    assert_eq!(tracker.total(&json!({})).await, 201);

    // Few rows are not a backlog until they are a day old.
    let (tracker, _) = with_two_days().await;
    tracker.test.pass(5 * MINUTE);
    let limits = pack_error_log::RunLimits::default();
    for _ in 0..2 {
        let deadline = Deadline::after(MINUTE);
        let run = pack_error_log::pack_due(&tracker.test.app, &limits, deadline).await.unwrap();
        assert_eq!((run.rows, run.oldest), (0, Some(tracker.ago(5 * MINUTE))));
        assert_eq!(tracker.queued().await.unwrap().waiting.rows, 48);
    }
}

#[tokio::test]
async fn failed_compaction_does_not_block_packing() {
    let tracker = Tracker::start().await;
    for number in 0..16 {
        tracker.deliver(&SentEvent::new(number, tracker.ago(DAY), "TypeError", "x")).await;
    }
    tracker.pack_within(&PackingLimits { rows: 1, ..EVERYTHING }).await;
    // Fills the manifest, so that larger ones exceed the item size limit.
    let mut manifest = tracker.items_of("manifest#").await.remove(0);
    let table = format!("{}{}", local::environment::table_prefix(), super::TABLE);
    let sizes = (0..400 * 1_024).rev().step_by(100);
    for size in sizes {
        manifest.insert("ballast".to_owned(), AttributeValue::B(Blob::new(vec![0; size])));
        let put = tracker.test.client.put_item().table_name(&table);
        if put.set_item(Some(manifest.clone())).send().await.is_ok() {
            break;
        }
    }
    tracker.test.pass(2 * MINUTE);
    for number in 0..3 {
        tracker.deliver(&SentEvent::new(100 + number, tracker.now(), "TypeError", "x")).await;
    }
    tracker.test.pass(5 * MINUTE);
    let outcome = run_within(&tracker, 1, MINUTE).await;
    assert_eq!(outcome.failures.len(), 1, "{outcome:?}");
    assert_eq!(tracker.pack().await, 0, "rows are left");
    let entry = tracker.queued().await.unwrap();
    assert_eq!((entry.waiting.since, entry.waiting.rows), (tracker.now(), 0));
    assert_eq!(tracker.total(&json!({})).await, 19);
}

/// Eight execution environments receive 1,223 events in 18 seconds, fewer than 200 each.
#[tokio::test]
async fn rows_of_several_instances_are_packed_together() {
    let tracker = Tracker::start().await;
    tracker.deliver(&SentEvent::new(0, tracker.now(), "TypeError", "x")).await;
    tracker.test.pass(5 * MINUTE);
    tracker.run_schedule().await;
    let before = tracker.queued().await.unwrap();
    assert!(before.due > tracker.now().plus(12 * HOUR), "the project is not quiet");

    let endpoint = tracker.test.engine.endpoint();
    let mut events =
        (1..=1_223).map(|number| SentEvent::new(number, tracker.now(), "TypeError", "x"));
    let now = tracker.now();
    for number in 0..8_u64 {
        let (mut instance, _) = app_over(&endpoint);
        instance.clock = Clock::Fixed(AtomicU64::new(u64::try_from(now.as_millis()).unwrap()));
        instance.ids = Ids::Sequential(AtomicU64::new(number * 1_000_001 + 1));
        let own: Vec<SentEvent> = events.by_ref().take(153).collect();
        for event in own {
            pass(&instance, Duration::from_millis(117));
            let reply = envelope(&tracker.project, &event).send(&instance).await;
            assert_eq!(reply.status, 200, "{}", reply.body);
        }
    }
    tracker.test.pass(3 * MINUTE);
    tracker.run_schedule().await;
    let runs: usize = tracker.runs().await.iter().map(|(_, runs)| runs).sum();
    assert_eq!((runs, tracker.pack().await), (1, 0), "rows are not in one run");
}
