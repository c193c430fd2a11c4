//! A storm of domain events.

use std::time::Duration;

use notifications::domain_event::{DomainEvent, DomainEventKind, Visibility};
use notifications::store::NotificationStore;
use shared::timestamp::Timestamp;

use super::actions::{event_count, start, store_errors, subjects};

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
