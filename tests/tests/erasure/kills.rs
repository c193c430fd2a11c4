//! erase-data as a process that is killed again and again.

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

/// How many processes are killed.
const KILLS: usize = 20;
/// For how long a process lives, in milliseconds: a fraction of what all stages take.
const LIFE: std::ops::Range<u64> = 20..250;
/// How much longer an answer of the engine takes: most of what a process does is to wait for it then.
const SLOWER: Duration = Duration::from_millis(25);
/// How long ago the projects begin to be filled, which takes two days and two hours of the test's clock: stored
/// answers have expired by now.
const AGO: Duration = Duration::from_hours(80);

/// Ends by hand what an erasure waits for between stages. That is fair: all that is left out is the wait.
async fn end_pause(test: &TestApp, erasure: &Erasure) {
    let (key, over) = (format!("erasure#{}", erasure.subject), erasure.requested_at.to_string());
    let over = AttributeValue::S(over);
    test.tamper("projects", [("idOrSlug", &key)], "notBefore", over).await;
}

/// Lets the job run that removes event markers, which the erasure waits for.
async fn purge(test: &TestApp) {
    let app = test.app_at(clock_at(Clock::System.now().plus(5 * MINUTE)));
    (purge_event_markers::JOB.run)(&app, Deadline::after(MINUTE)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn wherever_it_is_killed_nothing_is_left_and_nothing_of_others_is_missing() {
    let seed = seed();
    println!("SEED={seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let (test, before, erased) = filled_at(Clock::System.now().minus(AGO)).await;
    assert!(test.app.store.erase_project(&erased, test.app.clock.now()).await.unwrap());
    let endpoint = proxy::serve(Arc::new(Slow::before(&test.engine.endpoint(), SLOWER))).await;
    let start = || Process::start(erase_data::JOB.name, &endpoint, &[], &log);
    let left = async || test.app.store.list_erasures().await.unwrap().pop();

    let (mut amid, mut stages) = (0, BTreeSet::new());
    for _ in 0..KILLS {
        let Some(erasure) = left().await else { break };
        stages.insert(erasure.stage.as_str());
        end_pause(&test, &erasure).await;
        let life = Duration::from_millis(random.random_range(LIFE));
        amid += usize::from(start().await.kill_after(life, "{}".to_owned()).await);
        purge(&test).await;
    }
    println!("{amid} of {KILLS} processes were killed amid their work, at {stages:?}");
    assert!(2 * amid > KILLS && stages.len() > 2, "{amid} of {KILLS}, at {stages:?}");

    let process = start().await;
    for _ in 0..20 {
        let Some(erasure) = left().await else { break };
        end_pause(&test, &erasure).await;
        process.invoke("{}".to_owned()).await;
        purge(&test).await;
    }
    assert_nothing_but(&test, &before, &erased).await;
}
