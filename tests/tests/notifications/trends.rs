//! announce-trends: error spikes, trending insights and weekly digests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use errors::ErrorId;
use errors::spike::Hour;
use errors::store::{ErrorStore, PackOutcome, PackingLimits};
use notifications::domain_event::{DomainEvent, DomainEventKind, Visibility};
use notifications::store::NotificationStore;
use send_notifications::senders::Senders;
use shared::app::{App, Deadline};
use shared::projects::project::ProjectId;
use tests::app::{PROJECT, TestApp, app_over, clock_at};
use tests::errors::SentEvent;
use tests::notifications::{announce_trends, run};
use tests::proxy::{self, Proxy, ProxyResponse, Upstream};
use tests::wire::Request;

use super::actions::{
    create_errors, create_flag, create_insight, create_trend, deliver, deliver_many, outbox_titles,
    set_status, start, subjects,
};

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
/// Time from the start of a test to Monday 08:00 UTC.
const TO_MONDAY: Duration = Duration::from_mins(51 * 60 + 44);

/// Empties the outbox without emails and events.
async fn discard_outbox(test: &TestApp) {
    run(&test.app, &Senders::default(), Duration::ZERO).await;
}

async fn spikes(test: &TestApp) -> usize {
    announce_trends(&test.app).await;
    let found = outbox_titles(test, "error_spike").await.len();
    discard_outbox(test).await;
    found
}

#[tokio::test]
async fn spikes_are_emailed_once_with_a_plot() {
    let (test, outbound) = start().await;
    deliver_many(&test, 0, 1, "TypeError").await;
    outbound.run(&test.app).await;
    test.pass(2 * HOUR);
    deliver_many(&test, 1, 19, "TypeError").await;
    announce_trends(&test.app).await;
    assert_eq!(outbox_titles(&test, "error_spike").await, [""; 0]);
    deliver_many(&test, 20, 1, "TypeError").await;
    for _ in 0..2 {
        announce_trends(&test.app).await;
        outbound.run(&test.app).await;
    }
    let emails = outbound.emails().await;
    assert_eq!(subjects(&emails)[0], "[Shop] Error spike: TypeError: cart is undefined");
    assert_eq!(emails.len(), 2, "the new error and the spike");
    let text = emails[0]["text"].as_str().unwrap();
    assert!(text.contains("20 events · 2026-11-21 06:16 UTC\n"), "{text}");
    assert!(text.contains("\nTypeError: cart is undefined · 21 events in"), "{text}");
    let events = outbound.events().await;
    let spikes: Vec<_> = events.iter().filter(|it| it["detailType"] == "error.spike").collect();
    assert_eq!((spikes.len(), &spikes[0]["detail"]["events"]), (1, &20.into()));
}

#[tokio::test]
async fn ongoing_spikes_are_announced_once() {
    let (test, _) = start().await;
    deliver_many(&test, 0, 1, "TypeError").await;
    test.pass(2 * HOUR);
    deliver_many(&test, 1, 20, "TypeError").await;
    assert_eq!(spikes(&test).await, 1);
    assert_eq!(spikes(&test).await, 0, "once an hour");
    test.pass(HOUR);
    deliver_many(&test, 100, 30, "TypeError").await;
    assert_eq!(spikes(&test).await, 0, "the spike continues");
    test.pass(2 * HOUR);
    deliver_many(&test, 200, 30, "TypeError").await;
    set_status(&test, "ignored").await;
    assert_eq!(spikes(&test).await, 0, "ignored errors have no spikes");
    set_status(&test, "open").await;
    assert_eq!(spikes(&test).await, 1);
    // New errors have no spikes.
    deliver_many(&test, 300, 40, "ValueError").await;
    assert_eq!(spikes(&test).await, 0);
}

#[tokio::test]
async fn the_previous_hour_is_also_checked() {
    let (test, _) = start().await;
    deliver_many(&test, 0, 1, "TypeError").await;
    test.pass(2 * HOUR + Duration::from_mins(40));
    deliver_many(&test, 1, 20, "TypeError").await;
    // 07:01. The events came at 06:56.
    test.pass(Duration::from_mins(5));
    assert_eq!(spikes(&test).await, 1);
    test.pass(Duration::from_mins(10));
    assert_eq!(spikes(&test).await, 0);
}

/// Packs all rows of the project.
async fn pack(test: &TestApp) {
    // Later events must not precede packed rows.
    test.pass(Duration::from_mins(2));
    assert!(pack_all(&test.app, test.project_id).await > 0, "no rows to pack");
}

/// Packs all possible rows of a project, and returns the number of pack steps.
async fn pack_all(app: &App, project: ProjectId) -> usize {
    let limits = PackingLimits { waits: false, ..PackingLimits::default() };
    let now = app.clock.now();
    let new_id = || ErrorId::new(app.ids.new_uuid(now));
    let mut packed = 0;
    loop {
        match ErrorStore::new(&app.store).pack_step(project, &limits, &new_id, now).await.unwrap() {
            PackOutcome::Packed { .. } => packed += 1,
            PackOutcome::Left(_) => return packed,
            PackOutcome::Lost | PackOutcome::ProjectGone => panic!("a concurrent packer"),
        }
    }
}

/// A proxy that packs a project's log before its head is read, after the concurrent reads.
struct PackBeforeHeadRead {
    upstream: Upstream,
    app: App,
    project: ProjectId,
    packed_steps: AtomicUsize,
}

impl Proxy for PackBeforeHeadRead {
    async fn respond(&self, request: Request) -> ProxyResponse {
        let body = String::from_utf8_lossy(&request.body);
        if request.target == "BatchGetItem" && body.contains("log-head#") {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let packed_steps = pack_all(&self.app, self.project).await;
            self.packed_steps.fetch_add(packed_steps, Ordering::Relaxed);
        }
        self.upstream.forward(&request).await
    }
}

#[tokio::test]
async fn spikes_are_found_during_packing() {
    let (test, _) = start().await;
    deliver_many(&test, 0, 1, "TypeError").await;
    test.pass(2 * HOUR);
    deliver_many(&test, 1, 20, "TypeError").await;
    test.pass(Duration::from_mins(2));
    let now = test.app.clock.now();
    let packer = Arc::new(PackBeforeHeadRead {
        upstream: Upstream::new(&test.engine.endpoint()),
        app: test.app_at(clock_at(now)),
        project: test.project_id,
        packed_steps: AtomicUsize::new(0),
    });
    let endpoint = proxy::serve(Arc::clone(&packer)).await;
    let (app, _) = app_over(&endpoint);
    let spikes =
        ErrorStore::new(&app.store).find_spikes(test.project_id, Hour::of(now), now).await.unwrap();
    assert!(packer.packed_steps.load(Ordering::Relaxed) > 0, "nothing was packed");
    assert_eq!(spikes.len(), 1);
}

#[tokio::test]
async fn packed_and_unpacked_events_count() {
    let (test, _) = start().await;
    let now = test.app.clock.now();
    // A weekly average of four events per hour.
    let previous: Vec<SentEvent> = (0..672)
        .map(|number| {
            let age = HOUR * (3 + u32::try_from(number).unwrap() % 150);
            SentEvent::new(number, now.minus(age), "TypeError", "cart is undefined")
        })
        .collect();
    for (half, events) in previous.chunks(336).enumerate() {
        for events in events.chunks(4) {
            join_all(events.iter().map(|event| deliver(&test, test.project_id, event))).await;
        }
        if half == 0 {
            pack(&test).await;
        }
    }
    deliver_many(&test, 1_000, 20, "TypeError").await;
    assert_eq!(spikes(&test).await, 0, "exactly five times the average");
    deliver_many(&test, 1_020, 1, "TypeError").await;
    assert_eq!(spikes(&test).await, 1);
    test.pass(Duration::from_mins(10));
    pack(&test).await;
    assert_eq!(spikes(&test).await, 0, "the spike is already announced");
}

#[tokio::test]
async fn trending_insights_are_announced_once() {
    let (test, _) = start().await;
    create_trend(&test, 0, "Too few", [9, 1]).await;
    create_trend(&test, 100, "Not above", [10, 5]).await;
    create_trend(&test, 200, "Trending", [10, 4]).await;
    announce_trends(&test.app).await;
    assert_eq!(outbox_titles(&test, "insight_trending").await, ["Trending"]);
    discard_outbox(&test).await;

    create_trend(&test, 300, "Later", [12, 3]).await;
    announce_trends(&test.app).await;
    assert_eq!(outbox_titles(&test, "insight_trending").await, [""; 0], "once a day");
    test.pass(DAY);
    announce_trends(&test.app).await;
    assert_eq!(outbox_titles(&test, "insight_trending").await, ["Later"]);
    discard_outbox(&test).await;
    test.pass(DAY);
    announce_trends(&test.app).await;
    assert_eq!(outbox_titles(&test, "insight_trending").await, [""; 0]);
}

#[tokio::test]
async fn digests_are_emailed_on_monday_morning() {
    let (test, outbound) = start().await;
    let store = &test.app.store;
    let other = local::demo::ensure_project(store, "blog", "Blog").await.unwrap();
    local::demo::ensure_project(store, "quiet", "Quiet").await.unwrap();
    create_errors(&test, 0, 5).await;
    deliver_many(&test, 100, 3, "Errorb").await;
    create_trend(&test, 0, "Checkout", [10, 4]).await;
    create_flag(&test, PROJECT, "beta").await;
    announce_trends(&test.app).await;
    deliver(&test, other, &super::actions::event(&test, 200, "TypeError")).await;
    outbound.run(&test.app).await;

    test.pass(TO_MONDAY.saturating_sub(Duration::from_millis(1)));
    announce_trends(&test.app).await;
    assert_eq!(outbox_titles(&test, "weekly_digest").await, [""; 0], "the week is not over");
    let before = outbound.emails().await.len();
    test.pass(Duration::from_millis(1));
    announce_trends(&test.app).await;
    outbound.run(&test.app).await;
    let emails = outbound.emails().await;
    assert_eq!(emails.len(), before + 1);
    assert_eq!(subjects(&emails)[0], "[2 projects] Weekly digest");
    let text = emails[0]["text"].as_str().unwrap();
    let shop = "8 events, 5 new errors, 1 trending insight, 1 changed flag\n  Shop\n  \
                https://api.example.com/console/?project=shop\n";
    assert!(text.contains(shop), "{text}");
    assert!(text.contains("\n  new error, 4 events · Shop\n"), "{text}");
    assert!(text.contains("Checkout\n  trending insight, +150% in 30 days · Shop\n"), "{text}");
    assert!(text.contains("The beta\n  changed flag · Shop\n"), "{text}");
    assert!(text.contains("1 event, 1 new error\n  Blog\n"), "{text}");
    assert!(!text.contains("Quiet"), "{text}");
    let events = outbound.events().await;
    assert!(!events.iter().any(|event| event["detail"]["id"].to_string().contains("digest")));

    // Once a week.
    for _ in 0..3 {
        test.pass(2 * HOUR);
        announce_trends(&test.app).await;
        outbound.run(&test.app).await;
    }
    assert_eq!(outbound.emails().await.len(), before + 1);
    test.pass(6 * DAY + 18 * HOUR);
    announce_trends(&test.app).await;
    assert_eq!(outbox_titles(&test, "weekly_digest").await, [""; 0], "an empty week");
}

/// Plots an error with packed and unpacked events.
#[tokio::test]
async fn plots_show_every_hour_with_events() {
    let (test, _) = start().await;
    for hour in 0..4 {
        if hour == 2 {
            assert!(pack_all(&test.app, test.project_id).await > 0);
        }
        deliver_many(&test, 10 * hour, 2, "TypeError").await;
        test.pass(HOUR);
    }
    deliver_many(&test, 100, 9, "TypeError").await;
    deliver_many(&test, 200, 3, "OtherError").await;
    let list = test.call(&list_errors::OPERATION);
    let errors = list.send(&test.app).await.body;
    let errors = errors["items"].as_array().unwrap();
    let error = errors.iter().find(|error| error["type"] == "TypeError").unwrap();
    let id = ErrorId::parse(error["errorId"].as_str().unwrap()).unwrap();
    let (store, now) = (&test.app.store, test.app.clock.now());
    let counted = async |id: ErrorId, hours: u16| {
        let store = ErrorStore::new(store);
        store.latest_events_by_hour(test.project_id, id, hours, now).await.unwrap()
    };
    assert_eq!(counted(id, 6).await, Some(vec![0, 2, 2, 2, 2, 9]));
    assert_eq!(counted(id, 2).await, Some(vec![2, 9]), "earlier events do not count");
    let missing = ErrorId::new(uuid::Uuid::max());
    assert_eq!(counted(missing, 2).await, None);
}

/// A digest is announced up to a day after the end of its week.
#[tokio::test]
async fn digests_contain_only_their_week() {
    let (test, _) = start().await;
    let announce_trend = async |title: &str| {
        let visibility = Visibility::Project(test.project_id);
        let now = test.app.clock.now();
        let trend =
            DomainEvent::new(DomainEventKind::InsightTrending, visibility, title, title, now);
        assert!(NotificationStore::new(&test.app.store).announce_once(&[trend], 30).await.unwrap());
    };
    // The first and the last moment of a week.
    test.pass(TO_MONDAY);
    create_flag(&test, PROJECT, "first").await;
    announce_trend("First trend").await;
    test.pass(DAY);
    discard_outbox(&test).await;
    test.pass((6 * DAY).saturating_sub(Duration::from_millis(1)));
    create_flag(&test, PROJECT, "last").await;
    announce_trend("Last trend").await;
    // The first moment of the next week.
    test.pass(Duration::from_millis(1));
    create_flag(&test, PROJECT, "next").await;
    announce_trend("Next trend").await;
    test.pass(HOUR);
    announce_trends(&test.app).await;
    let lines = outbox_titles(&test, "weekly_digest").await;
    let counts = "2 trending insights, 2 changed flags";
    assert_eq!(lines, [counts, "First trend", "Last trend", "The first", "The last"]);
    discard_outbox(&test).await;
    test.pass(7 * DAY);
    announce_trends(&test.app).await;
    let lines = outbox_titles(&test, "weekly_digest").await;
    assert_eq!(lines, ["1 trending insight, 1 changed flag", "Next trend", "The next"]);
}

#[tokio::test]
async fn digests_report_delayed_emails() {
    let (test, mut outbound) = start().await;
    outbound.senders.mailer.as_mut().unwrap().emails_per_hour = 1;
    create_errors(&test, 0, 1).await;
    create_flag(&test, PROJECT, "beta").await;
    create_insight(&test, 1, "Checkout").await;
    for _ in 0..8 {
        outbound.run(&test.app).await;
        test.pass(Duration::from_mins(10));
    }
    assert_eq!(outbound.emails().await.len(), 2, "one per hour");
    for digest in [true, false] {
        test.pass(if digest { TO_MONDAY.saturating_sub(Duration::from_mins(80)) } else { 7 * DAY });
        create_flag(&test, PROJECT, if digest { "gamma" } else { "delta" }).await;
        announce_trends(&test.app).await;
        for _ in 0..20 {
            outbound.run(&test.app).await;
            test.pass(HOUR);
        }
        let emails = outbound.emails().await;
        let mut digests =
            emails.iter().filter(|it| it["subject"].as_str().unwrap().contains("Weekly digest"));
        let latest = digests.next().unwrap()["text"].as_str().unwrap();
        assert_eq!(latest.contains("the hourly limit delayed 1 email."), digest, "{latest}");
    }
}

/// Interrupted runs announce everything once.
#[tokio::test]
async fn interrupted_passes_resume() {
    const PROJECTS: usize = 50;
    let (test, _) = start().await;
    for number in 0..PROJECTS {
        let slug = format!("p-{number}");
        local::demo::ensure_project(&test.app.store, &slug, &slug).await.unwrap();
        create_flag(&test, &slug, "beta").await;
    }
    discard_outbox(&test).await;
    test.pass(TO_MONDAY);
    let seed = tests::seed();
    println!("SEED={seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut announced: BTreeMap<String, usize> = BTreeMap::new();
    let (mut cuts, mut is_complete) = (0_u64, false);
    while !is_complete {
        // The time increases, so that slow machines also complete a page.
        let time = Duration::from_millis(random.random_range(1..50 + 100 * cuts));
        let deadline = Deadline::after(Duration::from_mins(1));
        let cut = tokio::time::timeout(time, announce_trends::run(&test.app, deadline)).await;
        is_complete = cut.is_ok();
        cuts += u64::from(!is_complete);
        // Pending writes still apply.
        tokio::time::sleep(Duration::from_millis(5)).await;
        for item in test.items("notifications").await {
            let sk = item["sk"].as_s().unwrap();
            if sk.starts_with("outbox#") && sk.contains("#weekly_digest#") {
                *announced.entry(sk.clone()).or_default() += 1;
            }
        }
        discard_outbox(&test).await;
    }
    println!("{cuts} interruptions");
    assert_eq!(announced.len(), 2 * PROJECTS, "two lines per project");
    assert!(announced.values().all(|times| *times == 1), "{announced:?}");
}

#[tokio::test]
async fn idle_runs_cost_few_reads() {
    let (test, _) = start().await;
    // The first run of the day checks the insights of all projects.
    announce_trends(&test.app).await;
    test.round_trips();
    announce_trends(&test.app).await;
    // 16 partitions of the packing queue, and the progress of the daily pass.
    assert_eq!(test.round_trips(), 17);
    deliver_many(&test, 0, 1, "TypeError").await;
    discard_outbox(&test).await;
    test.round_trips();
    announce_trends(&test.app).await;
    // Also the progress of the spike pass; and for each of two hours, log head, manifest and rows.
    assert_eq!(test.round_trips(), 17 + 1 + 2 * 3);
}
