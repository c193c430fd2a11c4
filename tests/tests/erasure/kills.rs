//! erase-data as a process that is killed repeatedly.

#![allow(clippy::print_stdout)]

use std::sync::Arc;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use shared::app::Clock;
use shared::projects::erasure::Erasure;
use tests::app::clock_at;
use tests::process::Process;
use tests::proxy::{self, Slow};
use tests::seed;

use super::projects::{assert_nothing_but, filled_at};
use super::*;

/// Least number of killed processes.
const KILLS: usize = 20;
/// A busy machine needs more of them to reach a third stage.
const MAX_KILLS: usize = 100;
/// Lifetime of a process in milliseconds: a fraction of the time for all stages.
const LIFE: std::ops::Range<u64> = 20..250;
/// Delay of the engine's responses, so that processes spend most of their time waiting for them.
const DELAY: Duration = Duration::from_millis(25);
/// Age of the first test data. Filling the projects takes 50 hours of the test clock, so stored
/// responses have expired by now.
const START_AGE: Duration = Duration::from_hours(80);

/// Ends the wait of an erasure between two stages.
async fn skip_wait(test: &TestApp, erasure: &Erasure) {
    let (key, over) = (format!("erasure#{}", erasure.subject), erasure.requested_at.to_string());
    let over = AttributeValue::S(over);
    test.tamper("projects", [("idOrSlug", &key)], "notBefore", over).await;
}

/// Runs purge-event-markers, for which the erasure waits.
async fn purge(test: &TestApp) {
    let app = test.app_at(clock_at(Clock::System.now().plus(5 * MINUTE)));
    (purge_event_markers::JOB.run)(&app, Deadline::after(MINUTE)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_erasures_complete_without_other_losses() {
    let seed = seed();
    println!("SEED={seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let (test, before, erased) = filled_at(Clock::System.now().minus(START_AGE)).await;
    assert!(test.app.store.erase_project(&erased, test.app.clock.now()).await.unwrap());
    let endpoint = proxy::serve(Arc::new(Slow::before(&test.engine.endpoint(), DELAY))).await;
    let start = || Process::start(erase_data::JOB.name, &endpoint, &[], &log);
    let next_erasure = async || test.app.store.list_erasures().await.unwrap().pop();

    let (mut killed, mut interrupted, mut stages) = (0, 0, BTreeSet::new());
    while killed < KILLS || (stages.len() <= 2 && killed < MAX_KILLS) {
        let Some(erasure) = next_erasure().await else { break };
        killed += 1;
        stages.insert(erasure.stage.as_str());
        skip_wait(&test, &erasure).await;
        let life = Duration::from_millis(random.random_range(LIFE));
        interrupted += usize::from(start().await.kill_after(life, "{}".to_owned()).await);
        purge(&test).await;
    }
    println!("{interrupted} of {killed} processes were interrupted, in {stages:?}");
    assert!(
        2 * interrupted > KILLS && stages.len() > 2,
        "{interrupted} of {killed}, at {stages:?}"
    );

    let process = start().await;
    for _ in 0..20 {
        let Some(erasure) = next_erasure().await else { break };
        skip_wait(&test, &erasure).await;
        process.invoke("{}".to_owned()).await;
        purge(&test).await;
    }
    assert_nothing_but(&test, &before, &erased).await;
}
