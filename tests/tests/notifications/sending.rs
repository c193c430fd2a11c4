//! send-notifications: whom what is sent, when, and how often.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use notifications::store::NotificationStore;
use send_notifications::senders::Senders;
use shared::projects::api_key::{ApiKeyRecord, UserId};
use tests::app::{PROJECT, app_over};
use tests::notifications::{run, user};

use super::actions::{
    create_insight, deliver, deliver_many, event, make_errors, nowhere, start, subjects,
};

#[tokio::test]
async fn the_first_is_mailed_at_once_and_what_follows_together() {
    let (test, post) = start().await;
    make_errors(&test, 0, 1).await;
    post.run(&test.app).await;
    let mails = post.mails().await;
    assert_eq!(subjects(&mails), ["New error in Shop: Errora: cart is undefined"]);
    let first = mails[0]["text"].as_str().unwrap();
    assert!(first.contains("▁▁▁█\n1 event of Errora"), "{first}");
    assert!(first.contains(&format!("/console/error?project={PROJECT}&id=")), "{first}");

    make_errors(&test, 1, 12).await;
    for _ in 0..9 {
        post.run(&test.app).await;
        test.pass(Duration::from_mins(1));
    }
    assert_eq!(post.mails().await.len(), 1, "the window is open");
    create_insight(&test, 1, "Checkout").await;
    test.pass(Duration::from_mins(1));
    post.run(&test.app).await;
    let mails = post.mails().await;
    let mut latest = subjects(&mails[..2]);
    latest.sort_unstable();
    assert_eq!(latest, ["12 new errors in Shop", "New insight in Shop: Checkout"]);
    assert_eq!(mails.len(), 3);
    let gathered = mails.iter().find(|mail| mail["subject"] == "12 new errors in Shop").unwrap();
    let told = gathered["text"].as_str().unwrap();
    assert!(told.contains("\nand 2 more\n"), "{told}");
    assert_eq!(told.matches("/console/error?").count(), 10, "{told}");

    // Nothing more comes, and nothing is left.
    for _ in 0..8 {
        test.pass(Duration::from_mins(10));
        post.run(&test.app).await;
    }
    assert_eq!(post.mails().await.len(), 3);
    let left = test.items("notifications").await;
    let is_on_its_way = |sk: &str| sk.starts_with("outbox") || sk.starts_with("feed");
    let left = left.iter().map(|item| item["sk"].as_s().unwrap());
    assert_eq!(left.filter(|sk| is_on_its_way(sk)).count(), 0);
}

#[tokio::test]
async fn of_many_errors_those_of_the_most_events_are_told() {
    let (test, post) = start().await;
    make_errors(&test, 0, 1).await;
    post.run(&test.app).await;
    // One of many events, then many of one each, some of them taken with the first.
    deliver_many(&test, 1_000, 30, "Frequent").await;
    make_errors(&test, 1, 9).await;
    post.run(&test.app).await;
    make_errors(&test, 10, 9).await;
    deliver_many(&test, 2_000, 3, "ErrorbRare").await;
    post.run(&test.app).await;
    deliver_many(&test, 3_000, 12, "Frequent").await;
    test.pass(Duration::from_mins(10));
    post.run(&test.app).await;
    let mails = post.mails().await;
    assert_eq!((mails.len(), &mails[0]["subject"]), (2, &json!("20 new errors in Shop")));
    let mail = mails[0]["text"].as_str().unwrap();
    assert!(mail.contains("42 events of Frequent: cart"), "{mail}");
    let [first, second] = ["Frequent: cart is undefined\n", "ErrorbRare: cart is undefined\n"]
        .map(|title| mail.find(title).unwrap_or_else(|| panic!("{title} {mail}")));
    assert!(first < second && mail[first..].contains("42 events"), "{mail}");
    assert!(mail.contains("\nand 10 more\n"), "{mail}");
}

#[tokio::test]
async fn every_domain_event_is_an_event() {
    let (test, post) = start().await;
    make_errors(&test, 0, 23).await;
    create_insight(&test, 1, "Checkout").await;
    post.run(&test.app).await;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let events = post.events().await;
    for event in &events {
        assert_eq!((&event["source"], &event["bus"]), (&json!("waymark"), &json!("default")));
        *counts.entry(event["detailType"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let expected = [("api-key.created", 1), ("error.created", 23), ("insight.created", 1)];
    assert_eq!(counts, expected.map(|(name, count)| (name.to_owned(), count)).into());
    let error = events.iter().find(|it| it["detailType"] == "error.created").unwrap();
    assert_eq!(error["detail"]["project"]["slug"], PROJECT);
    assert_eq!(error["detail"]["organization"], "default");
    post.run(&test.app).await;
    assert_eq!(post.events().await.len(), 25);
}

#[tokio::test]
async fn a_storm_is_seven_mails_in_an_hour_and_loses_nothing() {
    let (test, post) = start().await;
    let mut made = 0;
    for minute in 0..=60 {
        if minute % 4 == 0 {
            make_errors(&test, made, 3).await;
            made += 3;
        }
        if minute % 2 == 0 {
            post.run(&test.app).await;
        }
        test.pass(Duration::from_mins(1));
    }
    let mails = post.mails().await;
    assert!(mails.len() <= 7, "{:?}", subjects(&mails));
    for _ in 0..2 {
        test.pass(Duration::from_mins(10));
        post.run(&test.app).await;
    }
    let mails = post.mails().await;
    let counts = subjects(&mails).into_iter().map(|it| it.split(' ').next().unwrap().to_owned());
    let told: u64 = counts.map(|count| count.parse().unwrap_or(1)).sum();
    assert_eq!(told, made, "{:?}", subjects(&mails));
    assert_eq!(post.events().await.len() as u64, made + 1);
}

#[tokio::test]
async fn beyond_so_many_mails_an_hour_all_wait_for_the_next() {
    let (test, mut post) = start().await;
    post.senders.mailer.as_mut().unwrap().mails_per_hour = 1;
    make_errors(&test, 0, 1).await;
    post.run(&test.app).await;
    create_insight(&test, 1, "Checkout").await;
    for _ in 0..5 {
        test.pass(Duration::from_mins(10));
        post.run(&test.app).await;
    }
    assert_eq!(post.mails().await.len(), 1);
    test.pass(Duration::from_mins(11));
    post.run(&test.app).await;
    let mails = post.mails().await;
    assert_eq!(subjects(&mails)[0], "New insight in Shop: Checkout");
}

#[tokio::test]
async fn a_mail_that_waits_for_room_again_and_again_is_one_that_had_to_wait() {
    let (test, mut post) = start().await;
    post.senders.mailer.as_mut().unwrap().mails_per_hour = 1;
    make_errors(&test, 0, 1).await;
    post.run(&test.app).await;
    // An insight and another error wait; of the room in an hour the error takes all.
    create_insight(&test, 1, "Checkout").await;
    make_errors(&test, 1, 1).await;
    let held = async || {
        NotificationStore::new(&test.app.store)
            .find_address(&user("owner"))
            .await
            .unwrap()
            .held_back
    };
    for mails in [1, 2, 3] {
        for _ in 0..6 {
            test.pass(Duration::from_mins(10));
            post.run(&test.app).await;
            assert!(held().await <= 2, "{} mails had to wait", held().await);
        }
        assert_eq!(post.mails().await.len(), mails + usize::from(mails < 3));
    }
    assert_eq!(held().await, 2);
}

#[tokio::test]
async fn of_the_room_in_an_hour_what_has_waited_the_longest_has_its_turn() {
    let (test, mut post) = start().await;
    post.senders.mailer.as_mut().unwrap().mails_per_hour = 6;
    // Errors and insights without end take all of the room.
    for minute in 0..150 {
        if minute % 5 == 0 {
            make_errors(&test, minute, 1).await;
            create_insight(&test, usize::try_from(minute).unwrap(), "Checkout").await;
        }
        if minute == 40 {
            let noor = UserId::parse("owner").unwrap();
            test.key_with(|key| ApiKeyRecord { user: noor, ..key }).await;
        }
        post.run(&test.app).await;
        test.pass(Duration::from_mins(1));
        let mails = post.mails().await;
        if subjects(&mails).iter().any(|subject| subject.starts_with("New API key")) {
            assert!((40..=101).contains(&minute), "{minute}");
            return;
        }
    }
    panic!("nobody is told of the key: {:?}", subjects(&post.mails().await));
}

#[tokio::test]
async fn whoever_cannot_be_reached_now_is_reached_later() {
    let (test, post) = start().await;
    make_errors(&test, 0, 1).await;
    let nowhere = nowhere();
    let deadline = shared::app::Deadline::after(Duration::from_mins(1));
    let failed =
        Box::pin(send_notifications::run(&test.app, &nowhere, Duration::ZERO, deadline)).await;
    assert!(failed.is_err());
    assert!(post.mails().await.is_empty());
    post.run(&test.app).await;
    assert_eq!(post.mails().await.len(), 1);
    // That of the tests' key, and that of the error.
    assert_eq!(post.events().await.len(), 2);
}

#[tokio::test]
async fn without_a_sender_nothing_is_kept_for_later() {
    let (test, post) = start().await;
    make_errors(&test, 0, 3).await;
    run(&test.app, &Senders::default(), Duration::ZERO).await;
    post.run(&test.app).await;
    assert!(post.mails().await.is_empty());
}

#[tokio::test]
async fn a_run_that_finds_nothing_costs_a_few_reads() {
    let (test, post) = start().await;
    test.pass(Duration::from_hours(2));
    post.run(&test.app).await;
    test.round_trips();
    post.run(&test.app).await;
    assert!(test.round_trips() <= 8, "{}", test.round_trips());
}

#[tokio::test]
async fn titles_of_strangers_are_nothing_but_text() {
    let (test, post) = start().await;
    for (number, title) in
        ["<img src=x onerror=alert(1)>", "\u{202e}gnp.exe\nBcc: x@y.de", "</p><h1>\"'&"]
            .into_iter()
            .enumerate()
    {
        deliver(&test, test.project_id, &event(&test, number as u64, title)).await;
    }
    post.run(&test.app).await;
    let [mail] = &post.mails().await[..] else { panic!("one mail") };
    let html = mail["html"].as_str().unwrap();
    assert!(!html.contains("<img") && !html.contains("<h1>\"") && !html.contains('\u{202e}'));
    assert!(html.contains("&lt;img src=x"), "{html}");
}

#[tokio::test]
async fn two_runs_at_once_send_each_mail_once() {
    let (test, post) = start().await;
    make_errors(&test, 0, 40).await;
    let (other, _) = app_over(&test.engine.endpoint());
    tokio::join!(post.run(&test.app), post.run(&other));
    post.run(&test.app).await;
    assert_eq!(post.mails().await.len(), 1);
    assert_eq!(post.events().await.len(), 41);
}

/// A run that is cut off anywhere, again and again, loses nothing, and sends at most one mail and one batch
/// of ten events more for each cut.
#[tokio::test]
async fn a_run_that_is_cut_off_anywhere_loses_nothing() {
    const DOMAIN_EVENTS: u64 = 240;
    let (test, post) = start().await;
    let seed = tests::seed();
    println!("SEED={seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut made, mut cuts) = (0, 0);
    while made < DOMAIN_EVENTS || cuts < 40 {
        if made < DOMAIN_EVENTS {
            make_errors(&test, made, 12).await;
            made += 12;
        }
        let time = Duration::from_micros(random.random_range(500..90_000));
        if tokio::time::timeout(time, post.run(&test.app)).await.is_err() {
            cuts += 1;
        }
        // The lease of the run that was cut off must end; and now and then a window.
        test.pass(Duration::from_secs(random.random_range(21..120)));
    }
    for _ in 0..3 {
        test.pass(Duration::from_mins(11));
        post.run(&test.app).await;
    }
    let events = post.events().await;
    let ids: BTreeSet<&str> =
        events.iter().map(|it| it["detail"]["id"].as_str().unwrap()).collect();
    let errors = ids.iter().filter(|id| id.contains("#error_new#")).count();
    assert_eq!(errors as u64, DOMAIN_EVENTS, "an event is missing");
    assert!(events.len() - ids.len() <= 10 * cuts, "{} of {cuts} cuts", events.len() - ids.len());
    let mails = post.mails().await;
    let counts = subjects(&mails).into_iter().map(|it| it.split(' ').next().unwrap().to_owned());
    let told: u64 = counts.map(|count| count.parse().unwrap_or(1)).sum();
    assert!(told >= DOMAIN_EVENTS, "{told}: {:?}", subjects(&mails));
    let texts: BTreeSet<&str> = mails.iter().map(|mail| mail["text"].as_str().unwrap()).collect();
    assert!(mails.len() - texts.len() <= cuts, "{:?}", subjects(&mails));
    println!(
        "{cuts} cuts, {} events and {} mails twice",
        events.len() - ids.len(),
        mails.len() - texts.len()
    );
}
