//! The time that source maps add to the ingestion of an event with 30 frames.

use std::fmt::Write;
use std::time::{Duration, Instant};

use serde_json::json;

use tests::app::TestApp;
use tests::source_maps::{DEBUG_ID, bundle_of, event};

use super::{deliver, upload};

/// Returns a map of about `megabytes`, most of it sources, with a line of code per mapping.
fn large_map(megabytes: usize) -> String {
    let lines = megabytes * 1_000_000 / 45;
    let (mut source, mut mappings) = (String::new(), String::new());
    for number in 0..lines {
        writeln!(source, "export const value{number} = call({number});").unwrap();
        mappings.push_str(if number == 0 { "AAAA" } else { ",UACA" });
    }
    json!({"version": 3, "sources": ["src/large.js"], "sourcesContent": [source], "names": [],
        "mappings": mappings})
    .to_string()
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

/// Delivers events with 30 frames each, and returns the time of the first and the others.
async fn measure(test: &TestApp, debug_id: Option<&str>, from: u128) -> (Duration, Vec<Duration>) {
    let mut times = Vec::new();
    let columns: Vec<u32> = (0..30).map(|number| 11 + number * 70_000).collect();
    for number in 0..200 {
        let event = event(from + number, debug_id, "", &columns, "t");
        let began = Instant::now();
        deliver(test, event).await;
        times.push(began.elapsed());
    }
    (times.remove(0), times)
}

#[tokio::test]
#[ignore = "a measurement, to be run alone"]
async fn maps_add_little_to_ingestion() {
    let test = TestApp::start().await;
    let map = large_map(10);
    println!("map: {} MB", map.len() / 1_000_000);
    let began = Instant::now();
    assert_eq!(upload(&test, &bundle_of(&map, DEBUG_ID)).await.body["state"], "ok");
    println!("upload: {:?}", began.elapsed());
    let (_, mut without) = measure(&test, None, 1).await;
    let (first, mut with) = measure(&test, Some(DEBUG_ID), 1_000).await;
    println!("without maps: p95 {:?}", percentile(&mut without, 95));
    println!(
        "with maps: first {first:?}, p50 {:?}, p95 {:?}",
        percentile(&mut with, 50),
        percentile(&mut with, 95)
    );
}
