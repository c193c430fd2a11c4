//! announce-trends: spikes, insights that trend, and the week.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use errors::ErrorId;
use errors::spike::Hour;
use errors::store::{ErrorStore, EventsByHour, EventsOfError, PackOutcome, PackingLimits};
use notifications::domain_event::{DomainEvent, DomainEventKind, Visibility};
use notifications::store::NotificationStore;
use send_notifications::senders::Senders;
use shared::app::{App, Deadline};
use shared::projects::project::ProjectId;
use tests::app::{PROJECT, TestApp, app_over, clock_at};
use tests::call::Call;
use tests::errors::SentEvent;
use tests::notifications::{announce_trends, run};
use tests::proxy::{self, Proxy, ProxyResponse, Upstream};
use tests::wire::Request;

use super::actions::{
    create_flag, create_insight, create_trend, deliver, deliver_many, make_errors, set_status,
    start, subjects, waiting,
};

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
/// From the start of a test to Monday, 08:00 UTC.
const TO_MONDAY: Duration = Duration::from_mins(51 * 60 + 44);

/// Lets the happenings of the outbox be told to nobody.
async fn forget(test: &TestApp) {
    run(&test.app, &Senders::default(), Duration::ZERO).await;
}

async fn spikes(test: &TestApp) -> usize {
    announce_trends(&test.app).await;
    let found = waiting(test, "error_spike").await.len();
    forget(test).await;
    found
}

#[tokio::test]
async fn a_spike_is_announced_once_and_by_mail_with_its_plot() {
    let (test, post) = start().await;
    deliver_many(&test, 0, 1, "TypeError").await;
    post.run(&test.app).await;
    test.pass(2 * HOUR);
    deliver_many(&test, 1, 19, "TypeError").await;
    announce_trends(&test.app).await;
    assert_eq!(waiting(&test, "error_spike").await, [""; 0]);
    deliver_many(&test, 20, 1, "TypeError").await;
    for _ in 0..2 {
        announce_trends(&test.app).await;
        post.run(&test.app).await;
    }
    let mails = post.mails().await;
    assert_eq!(subjects(&mails)[0], "Spike in Shop: TypeError: cart is undefined");
    assert_eq!(mails.len(), 2, "that of the error, and that of the spike");
    let told = mails[0]["text"].as_str().unwrap();
    assert!(told.contains("20 events · 2026-11-21 06:16 UTC\n"), "{told}");
    assert!(told.contains("\n21 events of TypeError"), "{told}");
    let events = post.events().await;
    let spikes: Vec<_> = events.iter().filter(|it| it["detailType"] == "error.spike").collect();
    assert_eq!((spikes.len(), &spikes[0]["detail"]["events"]), (1, &20.into()));
}

#[tokio::test]
async fn a_spike_that_goes_on_is_no_other_and_later_ones_are() {
    let (test, _) = start().await;
    deliver_many(&test, 0, 1, "TypeError").await;
    test.pass(2 * HOUR);
    deliver_many(&test, 1, 20, "TypeError").await;
    assert_eq!(spikes(&test).await, 1);
    assert_eq!(spikes(&test).await, 0, "once an hour");
    test.pass(HOUR);
    deliver_many(&test, 100, 30, "TypeError").await;
    assert_eq!(spikes(&test).await, 0, "it goes on");
    test.pass(2 * HOUR);
    deliver_many(&test, 200, 30, "TypeError").await;
    set_status(&test, "ignored").await;
    assert_eq!(spikes(&test).await, 0, "nobody wants to hear of it");
    set_status(&test, "open").await;
    assert_eq!(spikes(&test).await, 1);
    // What is new is announced as new, and that is enough.
    deliver_many(&test, 300, 40, "ValueError").await;
    assert_eq!(spikes(&test).await, 0);
}

#[tokio::test]
async fn the_end_of_an_hour_is_looked_at_in_the_next_one() {
    let (test, _) = start().await;
    deliver_many(&test, 0, 1, "TypeError").await;
    test.pass(2 * HOUR + Duration::from_mins(40));
    deliver_many(&test, 1, 20, "TypeError").await;
    // 07:01; nobody looked since 06:56.
    test.pass(Duration::from_mins(5));
    assert_eq!(spikes(&test).await, 1);
    test.pass(Duration::from_mins(10));
    assert_eq!(spikes(&test).await, 0);
}

/// Packs all rows of the project.
async fn pack(test: &TestApp) {
    // What is received later must not lie before what is packed.
    test.pass(Duration::from_mins(2));
    assert!(pack_all(&test.app, test.project_id).await > 0, "there was something to pack");
}

/// Packs all rows of a project that can be packed; answers in how many steps.
async fn pack_all(app: &App, project: ProjectId) -> usize {
    let limits = PackingLimits { waits: false, ..PackingLimits::default() };
    let now = app.clock.now();
    let new_id = || ErrorId::new(app.ids.new_uuid(now));
    let mut packed = 0;
    loop {
        match ErrorStore::new(&app.store).pack_step(project, &limits, &new_id, now).await.unwrap() {
            PackOutcome::Packed { .. } => packed += 1,
            PackOutcome::Left(_) => return packed,
            PackOutcome::Lost | PackOutcome::ProjectGone => panic!("nobody else packs"),
        }
    }
}

/// Packs the log of a project before its head is read, when all that is read beside that has been.
struct PackedMeanwhile {
    upstream: Upstream,
    app: App,
    project: ProjectId,
    steps: AtomicUsize,
}

impl Proxy for PackedMeanwhile {
    async fn answer(&self, request: Request) -> ProxyResponse {
        let body = String::from_utf8_lossy(&request.body);
        if request.target == "BatchGetItem" && body.contains("log-head#") {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let steps = pack_all(&self.app, self.project).await;
            self.steps.fetch_add(steps, Ordering::Relaxed);
        }
        self.upstream.forward(&request).await
    }
}

#[tokio::test]
async fn a_spike_is_found_whose_events_are_packed_while_it_is_looked_for() {
    let (test, _) = start().await;
    deliver_many(&test, 0, 1, "TypeError").await;
    test.pass(2 * HOUR);
    deliver_many(&test, 1, 20, "TypeError").await;
    test.pass(Duration::from_mins(2));
    let now = test.app.clock.now();
    let packed_meanwhile = Arc::new(PackedMeanwhile {
        upstream: Upstream::new(&test.engine.endpoint()),
        app: test.app_at(clock_at(now)),
        project: test.project_id,
        steps: AtomicUsize::new(0),
    });
    let endpoint = proxy::serve(Arc::clone(&packed_meanwhile)).await;
    let (app, _) = app_over(&endpoint);
    let spikes =
        ErrorStore::new(&app.store).find_spikes(test.project_id, Hour::of(now), now).await.unwrap();
    assert!(packed_meanwhile.steps.load(Ordering::Relaxed) > 0, "it was packed meanwhile");
    assert_eq!(spikes.len(), 1);
}

#[tokio::test]
async fn the_week_before_counts_packed_or_not() {
    let (test, _) = start().await;
    let now = test.app.clock.now();
    // Four events an hour, on the average of a week.
    let before: Vec<SentEvent> = (0..672)
        .map(|number| {
            let age = HOUR * (3 + u32::try_from(number).unwrap() % 150);
            SentEvent::new(number, now.minus(age), "TypeError", "cart is undefined")
        })
        .collect();
    for (half, events) in before.chunks(336).enumerate() {
        for events in events.chunks(4) {
            join_all(events.iter().map(|event| deliver(&test, test.project_id, event))).await;
        }
        if half == 0 {
            pack(&test).await;
        }
    }
    deliver_many(&test, 1_000, 20, "TypeError").await;
    assert_eq!(spikes(&test).await, 0, "not more than five times as many");
    deliver_many(&test, 1_020, 1, "TypeError").await;
    assert_eq!(spikes(&test).await, 1);
    test.pass(Duration::from_mins(10));
    pack(&test).await;
    assert_eq!(spikes(&test).await, 0, "that is the same one, packed");
}

#[tokio::test]
async fn an_insight_that_trends_is_announced_once() {
    let (test, _) = start().await;
    create_trend(&test, 0, "Too few", [9, 1]).await;
    create_trend(&test, 100, "Not above", [10, 5]).await;
    create_trend(&test, 200, "Trending", [10, 4]).await;
    announce_trends(&test.app).await;
    assert_eq!(waiting(&test, "insight_trending").await, ["Trending"]);
    forget(&test).await;
    // Every day there is another look; what trends now is as old as what does no more in ten days.
    create_trend(&test, 300, "Later", [12, 3]).await;
    announce_trends(&test.app).await;
    assert_eq!(waiting(&test, "insight_trending").await, [""; 0], "once a day");
    test.pass(DAY);
    announce_trends(&test.app).await;
    assert_eq!(waiting(&test, "insight_trending").await, ["Later"]);
    forget(&test).await;
    test.pass(DAY);
    announce_trends(&test.app).await;
    assert_eq!(waiting(&test, "insight_trending").await, [""; 0]);
}

#[tokio::test]
async fn on_monday_morning_the_week_is_summed_up_in_one_mail() {
    let (test, post) = start().await;
    let store = &test.app.store;
    let other = local::demo::ensure_project(store, "blog", "Blog").await.unwrap();
    local::demo::ensure_project(store, "quiet", "Quiet").await.unwrap();
    make_errors(&test, 0, 5).await;
    deliver_many(&test, 100, 3, "Errorb").await;
    create_trend(&test, 0, "Checkout", [10, 4]).await;
    create_flag(&test, PROJECT, "beta").await;
    announce_trends(&test.app).await;
    deliver(&test, other, &super::actions::event(&test, 200, "TypeError")).await;
    post.run(&test.app).await;

    test.pass(TO_MONDAY.saturating_sub(Duration::from_millis(1)));
    announce_trends(&test.app).await;
    assert_eq!(waiting(&test, "weekly_digest").await, [""; 0], "the week is not over");
    let before = post.mails().await.len();
    test.pass(Duration::from_millis(1));
    announce_trends(&test.app).await;
    post.run(&test.app).await;
    let mails = post.mails().await;
    assert_eq!(mails.len(), before + 1);
    assert_eq!(subjects(&mails)[0], "The week in 2 projects");
    let told = mails[0]["text"].as_str().unwrap();
    let shop = "8 events, 5 new errors, 1 insight trends, 1 flag changed\n  Shop\n  \
                https://api.example.com/console/?project=shop\n";
    assert!(told.contains(shop), "{told}");
    assert!(told.contains("\n  new error, 4 events · Shop\n"), "{told}");
    assert!(told.contains("Checkout\n  insight, +150 % in 30 days · Shop\n"), "{told}");
    assert!(told.contains("The beta\n  flag, changed · Shop\n"), "{told}");
    assert!(told.contains("1 event, 1 new error\n  Blog\n"), "{told}");
    assert!(!told.contains("Quiet"), "{told}");
    let events = post.events().await;
    assert!(!events.iter().any(|event| event["detail"]["id"].to_string().contains("digest")));

    // Once a week.
    for _ in 0..3 {
        test.pass(2 * HOUR);
        announce_trends(&test.app).await;
        post.run(&test.app).await;
    }
    assert_eq!(post.mails().await.len(), before + 1);
    test.pass(6 * DAY + 18 * HOUR);
    announce_trends(&test.app).await;
    assert_eq!(waiting(&test, "weekly_digest").await, [""; 0], "nothing happened in that one");
}

/// Of an error of which more happened than is read at once: hours in which little did, before a busy one.
#[tokio::test]
async fn no_hour_of_a_plot_looks_empty_that_is_not() {
    let (test, _) = start().await;
    for hour in 0..4 {
        deliver_many(&test, 10 * hour, 2, "TypeError").await;
        test.pass(HOUR);
    }
    deliver_many(&test, 100, 9, "TypeError").await;
    let list = Call::of(&list_errors::OPERATION).parameter("idOrSlug", PROJECT).key(&test.key);
    let errors = list.send(&test.app).await.body;
    let id = ErrorId::parse(errors["items"][0]["errorId"].as_str().unwrap()).unwrap();
    let (store, now) = (&test.app.store, test.app.clock.now());
    let error = ErrorStore::new(store).find_error(test.project_id, id, now).await.unwrap().unwrap();
    let events = EventsOfError::from(&error);
    let counted = async |hours: u32, limit: i32| {
        ErrorStore::new(store)
            .latest_events_by_hour(test.project_id, &events, hours, limit, now)
            .await
            .unwrap()
    };
    let all = EventsByHour { hours: vec![0, 2, 2, 2, 2, 9], is_cut: false };
    // All at once; hour by hour; and with more in the last one than is counted.
    for limit in [100, 10] {
        assert_eq!(counted(6, limit).await, all, "{limit}");
    }
    let cut = EventsByHour { hours: vec![0, 2, 2, 2, 2, 5], is_cut: true };
    assert_eq!(counted(6, 5).await, cut);
    // What occurred before the first hour is none of it.
    assert_eq!(counted(2, 100).await.hours, [2, 9]);
    assert_eq!(counted(2, 10).await.hours, [2, 9]);
}

/// A digest may come up to a day after the end of its week.
#[tokio::test]
async fn what_happens_after_the_end_of_a_week_is_told_with_the_next_one() {
    let (test, _) = start().await;
    let trends = async |title: &str| {
        let scene = Visibility::Project(test.project_id);
        let now = test.app.clock.now();
        let trend = DomainEvent::new(DomainEventKind::InsightTrending, scene, title, title, now);
        assert!(NotificationStore::new(&test.app.store).announce_once(&[trend], 30).await.unwrap());
    };
    // The first moment of a week, and its last one.
    test.pass(TO_MONDAY);
    create_flag(&test, PROJECT, "first").await;
    trends("First trend").await;
    test.pass(DAY);
    forget(&test).await;
    test.pass((6 * DAY).saturating_sub(Duration::from_millis(1)));
    create_flag(&test, PROJECT, "last").await;
    trends("Last trend").await;
    // The first moment of the next one.
    test.pass(Duration::from_millis(1));
    create_flag(&test, PROJECT, "next").await;
    trends("Next trend").await;
    test.pass(HOUR);
    announce_trends(&test.app).await;
    let lines = waiting(&test, "weekly_digest").await;
    let counts = "2 insights trend, 2 flags changed";
    assert_eq!(lines, [counts, "First trend", "Last trend", "The first", "The last"]);
    forget(&test).await;
    test.pass(7 * DAY);
    announce_trends(&test.app).await;
    let lines = waiting(&test, "weekly_digest").await;
    assert_eq!(lines, ["1 insight trends, 1 flag changed", "Next trend", "The next"]);
}

#[tokio::test]
async fn the_digest_tells_what_had_to_wait_for_room() {
    let (test, mut post) = start().await;
    post.senders.mailer.as_mut().unwrap().mails_per_hour = 1;
    make_errors(&test, 0, 1).await;
    create_flag(&test, PROJECT, "beta").await;
    create_insight(&test, 1, "Checkout").await;
    for _ in 0..8 {
        post.run(&test.app).await;
        test.pass(Duration::from_mins(10));
    }
    assert_eq!(post.mails().await.len(), 2, "one in an hour");
    for digest in [true, false] {
        test.pass(if digest { TO_MONDAY.saturating_sub(Duration::from_mins(80)) } else { 7 * DAY });
        create_flag(&test, PROJECT, if digest { "gamma" } else { "delta" }).await;
        announce_trends(&test.app).await;
        for _ in 0..20 {
            post.run(&test.app).await;
            test.pass(HOUR);
        }
        let mails = post.mails().await;
        let digests =
            mails.iter().filter(|it| it["subject"].as_str().unwrap().starts_with("The week"));
        let latest = digests.collect::<Vec<_>>()[0]["text"].as_str().unwrap();
        assert_eq!(latest.contains("1 mail had to wait"), digest, "{latest}");
    }
}

/// Runs that are cut off anywhere announce everything, and nothing twice.
#[tokio::test]
async fn a_pass_that_is_cut_off_goes_on_where_it_was() {
    const PROJECTS: usize = 50;
    let (test, _) = start().await;
    for number in 0..PROJECTS {
        let slug = format!("p-{number}");
        local::demo::ensure_project(&test.app.store, &slug, &slug).await.unwrap();
        create_flag(&test, &slug, "beta").await;
    }
    forget(&test).await;
    test.pass(TO_MONDAY);
    let seed = tests::seed();
    println!("SEED={seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut told: BTreeMap<String, usize> = BTreeMap::new();
    let (mut cuts, mut is_done) = (0_u64, false);
    while !is_done {
        // On any machine a page is done at last.
        let time = Duration::from_millis(random.random_range(1..50 + 100 * cuts));
        let deadline = Deadline::after(Duration::from_mins(1));
        let cut = tokio::time::timeout(time, announce_trends::run(&test.app, deadline)).await;
        is_done = cut.is_ok();
        cuts += u64::from(!is_done);
        // What was sent just then is still carried out.
        tokio::time::sleep(Duration::from_millis(5)).await;
        // What is announced again would be told again.
        for item in test.items("notifications").await {
            let sk = item["sk"].as_s().unwrap();
            if sk.starts_with("outbox#") && sk.contains("#weekly_digest#") {
                *told.entry(sk.clone()).or_default() += 1;
            }
        }
        forget(&test).await;
    }
    println!("{cuts} cuts");
    assert_eq!(told.len(), 2 * PROJECTS, "two lines of each project");
    assert!(told.values().all(|times| *times == 1), "{told:?}");
}

#[tokio::test]
async fn a_run_that_finds_nothing_costs_a_few_reads() {
    let (test, _) = start().await;
    // The first one of the day looks for insights in all projects.
    announce_trends(&test.app).await;
    test.round_trips();
    announce_trends(&test.app).await;
    // The sixteen parts of the packing queue, and how far the pass has come.
    assert_eq!(test.round_trips(), 17);
    deliver_many(&test, 0, 1, "TypeError").await;
    forget(&test).await;
    test.round_trips();
    announce_trends(&test.app).await;
    // And where the pass over projects with events is, and for two hours of the one that has some, what
    // tells that they are few: the log's head, a manifest, and rows.
    assert_eq!(test.round_trips(), 17 + 1 + 2 * 3);
}
