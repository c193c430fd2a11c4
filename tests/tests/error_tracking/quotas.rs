//! How many deliveries a minute are taken of a project.

use std::num::NonZeroU32;

use shared::app::App;
use shared::quotas::Limits;
use tests::app::app_over;

use super::{ENVELOPE, MINUTE, SentEvent, Tracker, delivery};

/// Another sandbox, which takes so many deliveries a minute of each project.
fn sandbox(tracker: &Tracker, events_per_minute: u32) -> App {
    let limits =
        Limits { events_per_minute: NonZeroU32::new(events_per_minute), ..Limits::default() };
    app_over(&tracker.test.engine.endpoint()).0.with_limits(limits)
}

/// How many of some deliveries of an event are taken, until one is not.
async fn taken(tracker: &Tracker, app: &App, most: usize) -> usize {
    for number in 0..most {
        let event = SentEvent::new(1, tracker.now(), "TypeError", "x");
        let reply = delivery(&tracker.project, ENVELOPE).bytes(event.envelope()).send(app).await;
        if reply.status != 200 {
            assert_eq!(reply.status, 429, "{}", reply.body);
            return number;
        }
    }
    most
}

#[tokio::test]
async fn beyond_the_limit_sdks_are_told_to_wait_and_nothing_is_read() {
    let mut tracker = Tracker::start().await;
    tracker.test.app = sandbox(&tracker, 15);
    tracker.test.pass(MINUTE / 4);
    // Who has no key takes nothing of it.
    for _ in 0..20 {
        let stranger = delivery(&tracker.project, ENVELOPE).query("sentry_key", "f".repeat(32));
        assert_eq!(stranger.send(&tracker.test.app).await.status, 403);
    }
    assert_eq!(taken(&tracker, &tracker.test.app, 20).await, 15);
    let unreadable = delivery(&tracker.project, ENVELOPE).bytes(vec![0x1f, 0x8b, 0, 0]);
    let reply = unreadable.header("content-encoding", "gzip").send(&tracker.test.app).await;
    assert_eq!(reply.status, 429);
    assert_eq!(reply.headers["retry-after"], "45");
    assert_eq!(reply.headers["x-sentry-rate-limits"], "45::project:events_per_minute");
    let exposed = reply.headers.get_all("access-control-expose-headers");
    let exposed: Vec<_> = exposed.iter().map(|value| value.to_str().unwrap()).collect();
    assert!(exposed.iter().any(|names| names.contains("retry-after")), "{exposed:?}");
    assert!(exposed.contains(&"x-sentry-rate-limits"), "{exposed:?}");
    assert_eq!(reply.body["detail"], "At most 15 are taken a minute. Send the next after 45 s.");
    // Other projects, and the next minute, are not concerned.
    let other = tracker.other_project("other").await;
    let event = SentEvent::new(1, tracker.now(), "TypeError", "x");
    assert_eq!(tracker.deliver_to(&other, &event).await.status, 200);
    tracker.test.pass(MINUTE * 3 / 4);
    assert_eq!(taken(&tracker, &tracker.test.app, 3).await, 3);
}

#[tokio::test]
async fn sandboxes_take_at_most_ten_more_each() {
    let tracker = Tracker::start().await;
    let sandboxes = [0; 3].map(|_| sandbox(&tracker, 40));
    let mut all = 0;
    for round in 0..20 {
        let app = &sandboxes[round % sandboxes.len()];
        all += taken(&tracker, app, 7).await;
    }
    assert!((40..=40 + 10 * sandboxes.len()).contains(&all), "{all}");
    for app in &sandboxes {
        assert_eq!(taken(&tracker, app, 1).await, 0);
    }
    let items = tracker.test.items("quotas").await;
    let [window] = items.as_slice() else { panic!("{items:?}") };
    let minute = tracker.now().as_seconds() / 60;
    let name = format!("events#{}#{minute}", tracker.project.id);
    assert_eq!(window["window"].as_s(), Ok(&name));
    assert_eq!(window["expiresAt"].as_n(), Ok(&((minute + 61) * 60).to_string()));
}

#[tokio::test]
async fn a_project_may_have_a_limit_of_its_own() {
    let tracker = Tracker::start().await;
    let store = &tracker.test.app.store;
    for (own, usual, expected) in
        [(None, 0, 20), (None, 3, 3), (Some(5), 0, 5), (Some(5), 3, 5), (Some(0), 3, 20)]
    {
        assert!(store.set_events_per_minute(&tracker.project, own).await.unwrap());
        // What is remembered of projects, and what was counted, belong to a sandbox.
        let app = sandbox(&tracker, usual);
        assert_eq!(taken(&tracker, &app, 9.max(expected)).await, expected, "{own:?} {usual}");
        let mut other = tracker.project.clone();
        other.ingest_id = shared::projects::dsn::IngestId::parse("7").unwrap();
        assert!(!store.set_events_per_minute(&other, own).await.unwrap());
        for item in tracker.test.items("quotas").await {
            let window =
                std::collections::HashMap::from([("window".to_owned(), item["window"].clone())]);
            let table = format!("{}quotas", local::environment::table_prefix());
            let delete = tracker.test.client.delete_item().table_name(table);
            delete.set_key(Some(window)).send().await.unwrap();
        }
    }
}
