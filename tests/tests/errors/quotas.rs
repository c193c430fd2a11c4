//! Quotas of deliveries per minute and project.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use shared::app::App;
use shared::projects::limits::{Limit, Limits};
use shared::projects::project::ProjectPatch;
use tests::app::app_over;
use tests::call::{Call, Reply};
use tests::errors::envelope;

use super::{ENVELOPE, MINUTE, STORE, SentEvent, Tracker, delivery};

/// The data categories that SDKs stop sending.
const DROPPED: &str = "transaction;span;session;profile;profile_chunk;monitor;log_item;\
     trace_metric";

/// Returns another execution environment, with a limit of deliveries per minute and project.
fn environment(tracker: &Tracker, events_per_minute: u32) -> App {
    let limits = Limits::default().with(Limit::EventsPerMinute, Some(events_per_minute));
    app_over(&tracker.test.engine.endpoint()).0.with_limits(limits)
}

/// Sends up to `most` deliveries of an event. Returns how many are accepted before the first 429.
async fn accepted(tracker: &Tracker, app: &App, most: usize) -> usize {
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
async fn deliveries_over_the_limit_return_429() {
    let mut tracker = Tracker::start().await;
    tracker.test.app = environment(&tracker, 15);
    tracker.test.pass(MINUTE / 4);
    // Deliveries with a wrong key do not use the quota.
    for _ in 0..20 {
        let wrong_key = delivery(&tracker.project, ENVELOPE).query("sentry_key", "f".repeat(32));
        assert_eq!(wrong_key.send(&tracker.test.app).await.status, 403);
    }
    assert_eq!(accepted(&tracker, &tracker.test.app, 20).await, 15);
    let event = SentEvent::new(1, tracker.now(), "TypeError", "x");
    let reply = tracker.deliver_to(&tracker.project, &event).await;
    assert_eq!(reply.status, 429);
    assert_eq!(reply.headers["retry-after"], "45");
    assert_eq!(reply.headers["x-sentry-rate-limits"], "45::project:events_per_minute");
    let exposed = reply.headers.get_all("access-control-expose-headers");
    let exposed: Vec<_> = exposed.iter().map(|value| value.to_str().unwrap()).collect();
    assert!(exposed.iter().any(|names| names.contains("retry-after")), "{exposed:?}");
    assert!(exposed.contains(&"x-sentry-rate-limits"), "{exposed:?}");
    assert_eq!(reply.body["detail"], "Rate limit exceeded: at most 15 per minute. Retry in 45 s.");
    // The limit affects neither other projects nor the next minute.
    let other = tracker.other_project("other").await;
    assert_eq!(tracker.deliver_to(&other, &event).await.status, 200);
    tracker.test.pass(MINUTE * 3 / 4);
    assert_eq!(accepted(&tracker, &tracker.test.app, 3).await, 3);
}

#[tokio::test]
async fn execution_environments_accept_ten_extra_events_each() {
    let tracker = Tracker::start().await;
    let environments = [0; 3].map(|_| environment(&tracker, 40));
    let mut all = 0;
    for round in 0..20 {
        let app = &environments[round % environments.len()];
        all += accepted(&tracker, app, 7).await;
    }
    assert!((40..=40 + 10 * environments.len()).contains(&all), "{all}");
    for app in &environments {
        assert_eq!(accepted(&tracker, app, 1).await, 0);
    }
    let items = tracker.test.items("quotas").await;
    let [window] = items.as_slice() else { panic!("{items:?}") };
    let minute = tracker.now().as_seconds() / 60;
    let name = format!("events#{}#{minute}", tracker.project.id);
    assert_eq!(window["window"].as_s(), Ok(&name));
    assert_eq!(window["expiresAt"].as_n(), Ok(&((minute + 61) * 60).to_string()));
}

#[tokio::test]
async fn projects_can_override_the_event_limit() {
    let tracker = Tracker::start().await;
    let store = &tracker.test.app.store;
    for (own, default, expected) in
        [(None, 0, 20), (None, 3, 3), (Some(5), 0, 5), (Some(5), 3, 5), (Some(0), 3, 20)]
    {
        let limits = [(Limit::EventsPerMinute, own)].into();
        let patch = ProjectPatch { limits, ..ProjectPatch::default() };
        assert!(store.update_project(&tracker.project, &patch, vec![]).await.unwrap());
        // A new environment has neither cached projects nor counts.
        let app = environment(&tracker, default);
        assert_eq!(accepted(&tracker, &app, 9.max(expected)).await, expected, "{own:?} {default}");
        let mut other = tracker.project.clone();
        other.ingest_id = shared::projects::dsn::IngestId::parse("7").unwrap();
        assert!(!store.update_project(&other, &patch, vec![]).await.unwrap());
        for item in tracker.test.items("quotas").await {
            let window = item["window"].as_s().unwrap();
            tracker.test.remove("quotas", [("window", window)]).await;
        }
    }
}

#[tokio::test]
async fn event_limits_of_all_projects_change_within_a_minute() {
    let mut tracker = Tracker::start().await;
    let other = tracker.other_project("other").await;
    tracker.test.app = environment(&tracker, 5);
    let (app, store) = (&tracker.test.app, &tracker.test.app.store);
    let limits = [(Limit::EventsPerMinute, Some(0))].into();
    let own = ProjectPatch { limits, ..ProjectPatch::default() };
    assert!(store.update_project(&other, &own, vec![]).await.unwrap());
    assert_eq!(accepted(&tracker, app, 9).await, 5);
    for (limit, expected) in [(Some(3), 3), (Some(0), 9), (None, 5)] {
        store.set_stack_limits(&[(Limit::EventsPerMinute, limit)].into()).await.unwrap();
        tracker.test.pass(MINUTE);
        assert_eq!(accepted(&tracker, app, 9).await, expected, "{limit:?}");
        // Own limits win.
        for _ in 0..9 {
            let event = SentEvent::new(1, tracker.now(), "TypeError", "x");
            let call = delivery(&other, ENVELOPE).bytes(event.envelope());
            assert_eq!(call.send(app).await.status, 200);
        }
    }
}

/// Returns a delivery of items with these types.
fn of_items(tracker: &Tracker, kinds: &[&str]) -> Call {
    let items: Vec<_> = kinds.iter().map(|kind| (*kind, json!({"a": 1}).to_string())).collect();
    delivery(&tracker.project, ENVELOPE).bytes(envelope(&json!({}), &items))
}

fn rate_limits(reply: &Reply) -> Option<&str> {
    reply.headers.get("x-sentry-rate-limits").map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn sessions_do_not_use_the_event_quota() {
    let tracker = Tracker::start().await;
    let app = environment(&tracker, 15);
    for _ in 0..40 {
        for kinds in [&["session"][..], &["transaction"], &["client_report", "session"]] {
            assert_eq!(of_items(&tracker, kinds).send(&app).await.status, 200);
        }
    }
    assert_eq!(accepted(&tracker, &app, 20).await, 15);
    // Sessions are accepted when events are not. An event after a session counts.
    assert_eq!(of_items(&tracker, &["session"]).send(&app).await.status, 200);
    for kinds in [&["event"][..], &["session", "event"]] {
        assert_eq!(of_items(&tracker, kinds).send(&app).await.status, 429, "{kinds:?}");
    }
    let store = delivery(&tracker.project, STORE).bytes("{}");
    assert_eq!(store.send(&app).await.status, 429);
}

#[tokio::test]
async fn envelopes_without_events_have_their_own_quota() {
    let mut tracker = Tracker::start().await;
    tracker.test.app = environment(&tracker, 3);
    let app = &tracker.test.app;
    tracker.test.pass(MINUTE / 4);
    // An unreadable body counts as an envelope without an event.
    let unreadable = || {
        let call = delivery(&tracker.project, ENVELOPE).bytes(vec![0x1f, 0x8b, 0, 0]);
        call.header("content-encoding", "gzip")
    };
    for _ in 0..15 {
        assert_eq!(of_items(&tracker, &["session"]).send(app).await.status, 200);
        assert_eq!(unreadable().send(app).await.status, 400);
    }
    let reply = of_items(&tracker, &["session"]).send(app).await;
    assert_eq!(reply.status, 429);
    assert_eq!(reply.body["detail"], "Rate limit exceeded: at most 30 per minute. Retry in 45 s.");
    assert_eq!(reply.headers["retry-after"], "45");
    // The categories do not include errors.
    let limits = format!("45:{DROPPED}:project:envelopes_per_minute");
    assert_eq!(rate_limits(&reply), Some(limits.as_str()));
    assert_eq!(unreadable().send(app).await.status, 429);
    assert_eq!(accepted(&tracker, app, 9).await, 3);
}

/// Returns a compressed delivery that is truncated far behind its start.
fn cut_off(tracker: &Tracker, kinds: &[&str]) -> Call {
    let items: Vec<_> = kinds.iter().map(|kind| (*kind, "x".repeat(50_000))).collect();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
    gzip.write_all(envelope(&json!({}), &items).as_bytes()).unwrap();
    let mut body = gzip.finish().unwrap();
    body.truncate(body.len() - 10_000);
    delivery(&tracker.project, ENVELOPE).bytes(body).header("content-encoding", "gzip")
}

#[tokio::test]
async fn deliveries_are_counted_before_full_decompression() {
    let tracker = Tracker::start().await;
    let app = environment(&tracker, 2);
    let statuses = async |kinds: &[&str], count: usize| {
        let mut statuses = Vec::new();
        for _ in 0..count {
            statuses.push(cut_off(&tracker, kinds).send(&app).await.status);
        }
        statuses
    };
    // 400 means that the whole body was decompressed.
    assert_eq!(statuses(&["event", "session"], 4).await, [400, 400, 429, 429]);
    let expected = [[400; 10], [400; 10], [429; 10]].concat();
    assert_eq!(statuses(&["session", "event"], 30).await, expected);
}

#[tokio::test]
async fn events_behind_the_envelope_start_are_counted() {
    let tracker = Tracker::start().await;
    let app = environment(&tracker, 2);
    let event = SentEvent::new(1, tracker.now(), "TypeError", "x").payload().to_string();
    let items = [("attachment", "x".repeat(50_000)), ("event", event)];
    let body = envelope(&json!({}), &items);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let call = delivery(&tracker.project, ENVELOPE).bytes(body.clone());
        statuses.push(call.send(&app).await.status);
    }
    assert_eq!(statuses, [200, 200, 429]);
}

#[tokio::test]
async fn unsupported_item_types_return_rate_limits() {
    let tracker = Tracker::start().await;
    let app = &tracker.test.app;
    let limits = format!("3600:{DROPPED}:project:not_supported");
    for (kinds, expected) in [
        (&["session"][..], Some(limits.as_str())),
        (&["replay_event", "replay_recording"], None),
        (&["event", "session"], Some(&limits)),
        (&["event"], None),
        (&["client_report"], None),
        (&[], None),
    ] {
        let reply = of_items(&tracker, kinds).send(app).await;
        assert_eq!((reply.status, rate_limits(&reply)), (200, expected), "{kinds:?}");
        let exposed = reply.headers.get_all("access-control-expose-headers");
        let is_exposed = exposed.iter().any(|names| names == "x-sentry-rate-limits");
        assert_eq!(is_exposed, expected.is_some());
    }
}
