//! Very much at once.

use std::time::Duration;

use notifications::domain_event::{DomainEvent, DomainEventKind, Visibility};
use notifications::store::NotificationStore;
use shared::timestamp::Timestamp;

use super::actions::{start, store_errors, subjects};

/// How many happenings of each error there are; with the variable `STORM` of each of 1,000 errors, and
/// 100,000 so.
const OF_EACH: u64 = 100;
/// As many as one transaction announces.
const AT_ONCE: usize = 99;

/// How many errors a storm has.
fn errors() -> u64 {
    if std::env::var_os("STORM").is_some() { 1_000 } else { 10 }
}

/// A hundred happenings of each of many errors are put into the outbox as they are, over 40 minutes: more than
/// as many events of theirs would bring about. A user gets seven mails of them in an hour.
#[tokio::test]
async fn a_hundred_domain_events_of_each_of_many_errors_are_seven_mails_in_an_hour() {
    const MINUTES: u64 = 40;
    let (test, post) = start().await;
    let errors = errors();
    let ids: Vec<String> = (0..errors).map(|error| error.to_string()).collect();
    store_errors(&test, test.project_id, &ids).await;
    let mut announced = 0_u64;
    let mut sent: Vec<(Timestamp, usize)> = Vec::new();
    for minute in (0..=80).step_by(2) {
        let now = test.app.clock.now();
        if minute < MINUTES {
            let scene = Visibility::Project(test.project_id);
            let (from, to) =
                (errors * OF_EACH * minute / MINUTES, errors * OF_EACH * (minute + 2) / MINUTES);
            let domain_events: Vec<DomainEvent> = (from..to)
                .map(|number| {
                    let (error, instance) = (number % errors, number / errors + 1);
                    let (kind, scene) = (DomainEventKind::ErrorCreated, scene.clone());
                    let title = format!("Error {error}");
                    DomainEvent::new(kind, scene, error, &title, now).at_occasion(instance)
                })
                .collect();
            for domain_events in domain_events.chunks(AT_ONCE) {
                assert!(
                    NotificationStore::new(&test.app.store)
                        .announce_once(domain_events, 1)
                        .await
                        .unwrap()
                );
            }
            announced += domain_events.len() as u64;
        }
        post.run(&test.app).await;
        let mails = post.mails().await.len();
        let before: usize = sent.iter().map(|(_, mails)| mails).sum();
        sent.push((now, mails - before));
        test.pass(Duration::from_mins(2));
    }
    assert_eq!(announced, errors * OF_EACH);
    for (begin, _) in &sent {
        let hour =
            sent.iter().filter(|(at, _)| at >= begin && *at <= begin.plus(Duration::from_hours(1)));
        let mails: usize = hour.map(|(_, mails)| mails).sum();
        assert!(mails <= 7, "{mails} mails from {begin} on");
    }
    let mails = post.mails().await;
    let counts =
        subjects(&mails).into_iter().map(|it| it.split(' ').next().unwrap().replace(',', ""));
    let told: u64 = counts.map(|count| count.parse().unwrap_or(1)).sum();
    assert_eq!(told, announced, "{:?}", subjects(&mails));
    // That of the tests' key besides; the stand-in keeps as many.
    assert_eq!(post.events().await.len() as u64, (announced + 1).min(20_000));
}
