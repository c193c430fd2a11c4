//! Compaction: fewer runs, unchanged counts.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::join_all;
use serde_json::json;

use errors::log::manifest::{CompactionLimits, Run};
use errors::store::{ErrorStore, PackingLimits};
use tests::errors::SentEvent;

use super::packing::{all_counts, with_two_days};
use super::{DAY, EVERYTHING, HOUR, MINUTE, Tracker, runs_of, text};

const FEW: CompactionLimits =
    CompactionLimits { events: 1_000_000, bytes: 8_000_000, values: 32_000_000, fan_in: 3 };

async fn run_count(tracker: &Tracker) -> usize {
    tracker.runs().await.iter().map(|(_, runs)| runs).sum()
}

async fn packed_one_by_one() -> Tracker {
    let (tracker, _) = with_two_days().await;
    tracker.pack_within(&PackingLimits { rows: 1, ..EVERYTHING }).await;
    assert_eq!(run_count(&tracker).await, 48);
    tracker
}

#[tokio::test]
async fn compaction_changes_no_count() {
    let tracker = packed_one_by_one().await;
    let (counts, errors) = (all_counts(&tracker).await, tracker.errors().await);
    tracker.merge_within(&FEW).await;
    assert!(run_count(&tracker).await <= 3 * 2 * 3, "three days, at most two runs per level");
    assert_eq!(all_counts(&tracker).await, counts);
    assert_eq!(tracker.errors().await, errors);
    // Replaced runs are deleted an hour later.
    let bundles = tracker.items_of("bundle#").await.len();
    assert!(bundles >= 48);
    tracker.test.pass(HOUR);
    tracker.merge_within(&FEW).await;
    assert_eq!(tracker.items_of("bundle#").await.len(), run_count(&tracker).await);
    for row in tracker.items_of("log#").await {
        tracker.remove(&row).await;
    }
    assert_eq!(tracker.total(&json!({})).await, 48);
}

#[tokio::test]
async fn concurrent_compactions_lose_and_double_nothing() {
    let tracker = packed_one_by_one().await;
    let counts = all_counts(&tracker).await;
    join_all((0..4).map(|_| tracker.merge_within(&FEW))).await;
    assert_eq!(all_counts(&tracker).await, counts);
    tracker.test.pass(HOUR);
    tracker.merge_within(&FEW).await;
    // No runs of failed compactions are left.
    assert_eq!(tracker.items_of("bundle#").await.len(), run_count(&tracker).await);
    assert_eq!(tracker.total(&json!({})).await, 48);
}

#[tokio::test]
async fn closed_days_are_compacted_once() {
    let tracker = packed_one_by_one().await;
    let day = tracker.items_of("manifest#").await.iter().map(|it| text(it, "sk").to_owned()).max();
    tracker.test.pass(3 * DAY);
    tracker.run_schedule().await;
    assert!(tracker.runs().await.iter().all(|(_, runs)| *runs <= 3), "{:?}", tracker.runs().await);
    let after = tracker.runs().await;
    // A few late events do not cause another compaction of the day.
    for number in 0..5 {
        let late = SentEvent::new(100 + number, tracker.ago(3 * DAY + HOUR), "TypeError", "x");
        tracker.deliver(&late).await;
        tracker.pack().await;
        tracker.test.pass(5 * MINUTE);
        tracker.merge_within(&CompactionLimits::default()).await;
    }
    let runs = tracker.runs().await;
    let of_day = |runs: &[(String, usize)]| {
        runs.iter().find(|(it, _)| Some(it) == day.as_ref()).map(|(_, runs)| *runs)
    };
    assert_eq!(of_day(&runs), of_day(&after).map(|before| before + 5));
    assert_eq!(tracker.total(&json!({})).await, 53);
}

/// Returns a tracker with 32 events with different releases, each packed into its own run.
async fn all_different() -> Tracker {
    let tracker = Tracker::start().await;
    for number in 0..32 {
        let event = SentEvent::new(number, tracker.ago(DAY), "TypeError", "x");
        tracker.deliver(&event.with("release", &format!("{number:0>100}"))).await;
    }
    tracker.pack_within(&PackingLimits { rows: 1, ..EVERYTHING }).await;
    assert_eq!(run_count(&tracker).await, 32);
    tracker
}

/// Returns the runs in all manifests.
async fn all_runs(tracker: &Tracker) -> Vec<Run> {
    tracker.items_of("manifest#").await.iter().flat_map(runs_of).collect()
}

#[tokio::test]
async fn compacted_runs_stay_within_value_limit() {
    const SHORT: CompactionLimits = CompactionLimits { values: 1_000, ..FEW };
    let tracker = all_different().await;
    let store = ErrorStore::new(&tracker.test.app.store);
    for _ in 0..20 {
        store.compact_step(tracker.project.id, &SHORT, tracker.now()).await.unwrap();
    }
    let before = run_count(&tracker).await;
    assert!((4..=11).contains(&before), "{before}");
    let values: Vec<u64> = all_runs(&tracker).await.iter().map(|run| run.values).collect();
    assert!(values.iter().all(|values| (100..=1_000).contains(values)), "{values:?}");
    assert_eq!(tracker.total(&json!({})).await, 32);
    // Compacted runs are not compacted again.
    let more = store.compact_step(tracker.project.id, &SHORT, tracker.now()).await.unwrap();
    assert!(!more && run_count(&tracker).await == before);
}

#[tokio::test]
async fn corrupted_runs_do_not_block_compaction() {
    const ALL: CompactionLimits = CompactionLimits { fan_in: 16, ..FEW };
    for is_missing in [true, false] {
        let tracker = Tracker::start().await;
        for number in 0..16 {
            let event = SentEvent::new(number, tracker.ago(DAY), "TypeError", "x");
            tracker.deliver(&event).await;
        }
        tracker.pack_within(&PackingLimits { rows: 1, ..EVERYTHING }).await;
        let corrupted = tracker.items_of("bundle#").await.remove(0);
        if is_missing {
            tracker.remove(&corrupted).await;
        } else {
            let nonsense = AttributeValue::B(Blob::new([0xff; 9]));
            tracker.tamper(&corrupted, "release", nonsense).await;
        }
        tracker.merge_within(&ALL).await;
        assert_eq!(run_count(&tracker).await, 2, "{is_missing}");
        let runs = all_runs(&tracker).await;
        let mut levels: Vec<_> = runs.iter().map(|run| run.level).collect();
        levels.sort_unstable();
        assert_eq!(levels, [0, 1]);
        let is_set = json!([{"categoryId": "release", "operator": "is_not_set", "value": ""}]);
        assert_eq!(tracker.total(&json!({"filters": is_set})).await, 15);
    }
}
