//! Limits on the number of errors of a project, and their retention.

use serde_json::{Value, json};

use errors::store::ErrorStore;
use shared::projects::limits::{Limit, Limits};
use shared::projects::project::ProjectPatch;
use tests::errors::SentEvent;

use super::{DAY, HOUR, LIST_EVENTS, MINUTE, Tracker};

const OVERFLOW: &str = "Overflow: more than 3 errors, or 2 new errors an hour";

/// Returns a project with limits of three errors, and of two new errors per hour.
async fn small() -> Tracker {
    let mut tracker = Tracker::start().await;
    let limits = Limits::default()
        .with(Limit::ErrorsPerProject, Some(3))
        .with(Limit::NewErrorsPerHour, Some(2));
    tracker.test.app = tracker.test.app.with_limits(limits);
    tracker
}

fn event(tracker: &Tracker, number: u64, kind: &str) -> SentEvent {
    SentEvent::new(number, tracker.now(), &format!("{kind}Error"), "x")
}

/// Returns the counts of all errors, by title.
async fn counts(tracker: &Tracker) -> Vec<(String, u64)> {
    let of = |error: &Value| {
        (error["title"].as_str().unwrap().to_owned(), error["count"].as_u64().unwrap())
    };
    let mut counts: Vec<_> = tracker.errors().await.iter().map(of).collect();
    counts.sort();
    counts
}

#[tokio::test]
async fn events_over_the_error_limit_count_as_overflow() {
    let tracker = small().await;
    for (number, kind) in (1..).zip(["A", "B", "C", "C", "D"]) {
        tracker.deliver(&event(&tracker, number, kind)).await;
    }
    // A repeated event stays in the overflow error.
    tracker.deliver(&event(&tracker, 3, "C")).await;
    let [a, b, overflow] = [("AError: x", 1), ("BError: x", 1), (OVERFLOW, 3)]
        .map(|(title, count)| (title.to_owned(), count));
    assert_eq!(counts(&tracker).await, [a.clone(), b.clone(), overflow.clone()]);
    assert_eq!(tracker.total(&json!({})).await, 5);
    let errors = tracker.errors().await;
    let error = errors.iter().find(|error| error["title"] == OVERFLOW).unwrap();
    let events = tracker.pages(&tracker.call_for(LIST_EVENTS, error), 10).await.concat();
    let types = events.iter().map(|it| it["event"]["exception"]["values"][0]["type"].as_str());
    assert_eq!(types.collect::<Vec<_>>(), [Some("DError"), Some("CError"), Some("CError")]);

    // An hour later one more error fits, but not two.
    tracker.test.pass(HOUR);
    for (number, kind) in (6..).zip(["C", "D", "A"]) {
        tracker.deliver(&event(&tracker, number, kind)).await;
    }
    let expected =
        [("AError: x".to_owned(), 2), b, ("CError: x".to_owned(), 1), (OVERFLOW.to_owned(), 4)];
    assert_eq!(counts(&tracker).await, expected);
    tracker.pack().await;
    assert_eq!(counts(&tracker).await, expected);
    assert_eq!(tracker.total(&json!({})).await, 8);
}

#[tokio::test]
async fn projects_can_override_the_error_limits() {
    let tracker = small().await;
    let limits = [(Limit::ErrorsPerProject, Some(4)), (Limit::NewErrorsPerHour, Some(4))].into();
    let own = ProjectPatch { limits, ..ProjectPatch::default() };
    let store = &tracker.test.app.store;
    assert!(store.update_project(&tracker.project, &own, vec![]).await.unwrap());
    for (number, kind) in (1..).zip(["A", "B", "C", "D", "E"]) {
        tracker.deliver(&event(&tracker, number, kind)).await;
    }
    let counts = counts(&tracker).await;
    assert_eq!(counts.len(), 5, "{counts:?}");
    assert!(counts.iter().any(|(title, _)| title.starts_with("Overflow: more than 4 errors")));
}

#[tokio::test]
async fn error_limits_of_all_projects_change_within_a_minute() {
    let tracker = small().await;
    tracker.deliver(&event(&tracker, 1, "A")).await;
    let limits = [(Limit::ErrorsPerProject, Some(1)), (Limit::NewErrorsPerHour, Some(9))];
    tracker.test.app.store.set_stack_limits(&limits.into()).await.unwrap();
    tracker.test.pass(MINUTE);
    tracker.deliver(&event(&tracker, 2, "B")).await;
    let counts = counts(&tracker).await;
    assert!(counts.iter().any(|(title, _)| title.starts_with("Overflow: more than 1 errors")));
}

#[tokio::test]
async fn unused_error_reservations_are_released_within_a_day() {
    let tracker = small().await;
    let store = &tracker.test.app.store;
    let limits = errors::ErrorLimits { errors: 3, new_errors_per_hour: 9 };
    tracker.deliver(&event(&tracker, 1, "A")).await;
    for expected in [true, true, false] {
        let reserved =
            ErrorStore::new(store).reserve_error(tracker.project.id, &limits, tracker.now()).await;
        assert_eq!(reserved.unwrap(), expected);
    }
    tracker.test.pass(DAY + HOUR);
    tracker.run_schedule().await;
    for kind in ["B", "C"] {
        tracker.deliver(&event(&tracker, u64::from(kind.as_bytes()[0]), kind)).await;
    }
    assert_eq!(counts(&tracker).await.len(), 3);
    assert!(counts(&tracker).await.iter().all(|(title, _)| title != OVERFLOW));
}

#[tokio::test]
async fn errors_expire_407_days_after_their_last_event() {
    let tracker = Tracker::start().await;
    tracker.deliver(&event(&tracker, 1, "A")).await;
    tracker.deliver(&event(&tracker, 2, "B")).await;
    tracker.test.pass(406 * DAY);
    tracker.deliver(&event(&tracker, 3, "B")).await;
    tracker.pack().await;
    tracker.test.pass(2 * DAY);
    let errors = tracker.errors().await;
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!((&errors[0]["title"], &errors[0]["count"]), (&json!("BError: x"), &json!(1)));

    // An event with the expired error's fingerprint creates a new error.
    tracker.deliver(&event(&tracker, 4, "A")).await;
    let errors = tracker.errors().await;
    assert_eq!(errors.len(), 2);
    let new = errors.iter().find(|error| error["title"] == "AError: x").unwrap();
    assert_eq!((&new["count"], &new["firstSeen"]), (&json!(1), &json!(tracker.now())));
}

#[tokio::test]
async fn events_of_all_shards_are_listed() {
    let tracker = Tracker::start().await;
    let store = &tracker.test.app.store;
    let mut sent = 0_u64;
    for shards in [1, 2, 4, 8, 16, 16] {
        for _ in 0..3 {
            tracker.test.pass(super::MINUTE / 60);
            tracker.deliver(&event(&tracker, sent, "A")).await;
            sent += 1;
        }
        let spread = ErrorStore::new(store).add_log_shards(tracker.project.id, shards).await;
        assert_eq!(spread.unwrap(), (shards * 2).min(16));
        // The warm function's cached log expires.
        tracker.test.pass(super::MINUTE);
    }
    let keys = tracker.items_of("error-events#").await;
    assert!(keys.iter().any(|item| !super::text(item, "pk").ends_with("#00")));
    let call = tracker.call_for(LIST_EVENTS, &tracker.the_error().await);
    for limit in [1, 2, 5, 100] {
        let events = tracker.pages(&call, limit).await.concat();
        let ids: Vec<_> = events.iter().map(|event| event["eventId"].as_str().unwrap()).collect();
        let expected: Vec<String> =
            (0..sent).rev().map(|number| event(&tracker, number, "A").id).collect();
        assert_eq!(ids, expected, "{limit}");
    }
    assert_eq!(tracker.the_error().await["count"], sent);
}
