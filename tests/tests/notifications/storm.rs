//! Storms of domain events.

use std::time::Duration;

use notifications::domain_event::{DomainEvent, DomainEventKind, Visibility};
use notifications::store::NotificationStore;
use shared::timestamp::Timestamp;
use tests::call::Call;
use tests::errors::project;
use tests::replays::Session;

use super::actions::{event_count, outbox_titles, start, store_errors, subjects};

/// Domain events per error. With the variable `STORM`, 100,000 events of 1,000 errors.
const EVENTS_PER_ERROR: u64 = 100;
/// Maximum events of one announcement.
const BATCH: usize = 99;

/// Returns the number of errors.
fn errors() -> u64 {
    if std::env::var_os("STORM").is_some() { 1_000 } else { 10 }
}

/// Puts more domain events into the outbox than real events could cause, over 40 minutes.
#[tokio::test]
async fn storms_of_many_errors_cause_seven_emails_hourly() {
    const MINUTES: u64 = 40;
    let (test, outbound) = start().await;
    let errors = errors();
    let ids: Vec<String> = (0..errors).map(|error| error.to_string()).collect();
    store_errors(&test, test.project_id, &ids).await;
    let mut announced = 0_u64;
    let mut sent: Vec<(Timestamp, usize)> = Vec::new();
    for minute in (0..=80).step_by(2) {
        let now = test.app.clock.now();
        if minute < MINUTES {
            let visibility = Visibility::Project(test.project_id);
            let (from, to) = (
                errors * EVENTS_PER_ERROR * minute / MINUTES,
                errors * EVENTS_PER_ERROR * (minute + 2) / MINUTES,
            );
            let domain_events: Vec<DomainEvent> = (from..to)
                .map(|number| {
                    let (error, instance) = (number % errors, number / errors + 1);
                    let (kind, visibility) = (DomainEventKind::ErrorCreated, visibility.clone());
                    let title = format!("Error {error}");
                    DomainEvent::new(kind, visibility, error, &title, now).at_instance(instance)
                })
                .collect();
            for domain_events in domain_events.chunks(BATCH) {
                assert!(
                    NotificationStore::new(&test.app.store)
                        .announce_once(domain_events, 1)
                        .await
                        .unwrap()
                );
            }
            announced += domain_events.len() as u64;
        }
        outbound.run(&test.app).await;
        let emails = outbound.emails().await.len();
        let earlier: usize = sent.iter().map(|(_, emails)| emails).sum();
        sent.push((now, emails - earlier));
        test.pass(Duration::from_mins(2));
    }
    assert_eq!(announced, errors * EVENTS_PER_ERROR);
    for (begin, _) in &sent {
        let hour =
            sent.iter().filter(|(at, _)| at >= begin && *at <= begin.plus(Duration::from_hours(1)));
        let emails: usize = hour.map(|(_, emails)| emails).sum();
        assert!(emails <= 7, "{emails} emails in the hour from {begin}");
    }
    let emails = outbound.emails().await;
    let mailed: u64 = subjects(&emails).into_iter().map(event_count).sum();
    assert_eq!(mailed, announced, "{:?}", subjects(&emails));
    // With the event of the test key. The fake keeps at most 20,000.
    assert_eq!(outbound.events().await.len() as u64, (announced + 1).min(20_000));
}

/// Any page can send replays. Each dead click on another element creates an insight.
#[tokio::test]
async fn insights_of_replays_cause_seven_emails_hourly() {
    let (test, outbound) = start().await;
    let project = project(&test.app.store, test.project_id).await;
    let deliver = async |replay: u64, element: i64| {
        let session = Session::new(replay, test.app.clock.now());
        let call = Call::of(&ingest_error_events::OPERATION)
            .path("/api/{ingestId}/envelope/")
            .parameter("ingestId", project.ingest_id)
            .query("sentry_key", project.public_key)
            .bytes(session.segment(0, &[session.dead(0, element)]))
            .base64();
        assert_eq!(call.send(&test.app).await.status, 200);
    };
    let mut created = 0;
    for number in 0..30 {
        deliver(number, i64::try_from(number).unwrap()).await;
        created += 1;
        outbound.run(&test.app).await;
        test.pass(Duration::from_mins(2));
    }
    let emails = outbound.emails().await.len();
    assert!((2..=7).contains(&emails), "{emails} emails");

    // Later pain points of the same insights announce nothing.
    for number in 0..30 {
        deliver(100 + number, i64::try_from(number).unwrap()).await;
    }
    assert_eq!(outbox_titles(&test, "insight_new").await, [""; 0]);
    for _ in 0..2 {
        test.pass(Duration::from_mins(10));
        outbound.run(&test.app).await;
    }
    let emails = outbound.emails().await;
    let mailed: u64 = subjects(&emails).into_iter().map(event_count).sum();
    assert_eq!(mailed, created, "{:?}", subjects(&emails));
}
