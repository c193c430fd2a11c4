//! Ingestion of browsers' events with 30 frames, with and without a source map of 10 MB.

use std::fmt::Write;

use axum::body::Bytes;
use serde_json::{Value as Json, json};
use shared::app::{Clock, Ids};
use shared::projects::project::{Project, ProjectId};
use source_maps::MapKey;
use source_maps::bundle::{BundledMap, Checksum, PreparedMap};
use source_maps::map::ParsedMap;
use source_maps::pieces::Pieces;
use source_maps::store::{ProjectMaps, StoredMap, Upload};

use super::delivery::envelope;
use crate::Result;
use crate::process::Process;
use crate::program::{Program, Programs};
use crate::progress::progress;
use crate::report::{Report, at_most, under};
use crate::stack::Stack;
use crate::statistics::{Sorted, megabytes};

/// The number of timed events of each kind.
const EVENTS: usize = 500;
/// The number of unmeasured events of each kind before them.
const WARM_UPS: usize = 50;
/// The number of processes whose first use of the map is timed.
const FIRST_USES: usize = 10;
/// The number of lines of the map's source, which make it about 10 MB.
const LINES: u32 = 222_222;
/// Characters of generated code per line of the source.
const CHARACTERS: u32 = 10;
const FRAMES: u32 = 30;
const DEBUG_ID: &str = "d0c3f1b2-7a44-4f0e-9a3b-0c5d6e7f8a9b";

/// Measures the resolution of frames during ingestion.
pub(crate) async fn source_maps(programs: &Programs, report: &mut Report) -> Result<()> {
    progress(&format!("source maps: {EVENTS} events with {FRAMES} frames"));
    let stack = Stack::start().await?;
    let project = stack.project_with_dsn("mapped").await?;
    store_map(&stack, project.id).await?;
    let program = Program::IngestErrorEvents;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    let (mut first, mut memory) = (Vec::new(), 0);
    for turn in 0..FIRST_USES {
        let mut process = Process::start(programs, program, &stack.endpoint(), &[]).await?;
        for _ in 0..WARM_UPS {
            process.expect(200, event(&project, None)?).await?;
        }
        first.push(process.expect(200, event(&project, Some(DEBUG_ID))?).await?.latency);
        if turn == 0 {
            for count in 0..WARM_UPS + EVENTS {
                let plain = process.expect(200, event(&project, None)?).await?.latency;
                let mapped = process.expect(200, event(&project, Some(DEBUG_ID))?).await?.latency;
                if count >= WARM_UPS {
                    without.push(plain);
                    with.push(mapped);
                }
            }
        }
        memory = memory.max(process.peak_memory()?);
        process.stop().await?;
    }
    let (without, with) = (Sorted::millis(without), Sorted::millis(with));
    let added = with.percentile(95) - without.percentile(95);
    let added_at_first = Sorted::millis(first).median() - without.median();
    report.add_times(program, "30 frames without a source map", &without, None);
    report.add_times(program, "30 frames with a map of 10 MB", &with, None);
    report.add(program, "a map of 10 MB, added to p95", added, "ms", at_most(5.0));
    report.add(program, "a map of 10 MB, added at first", added_at_first, "ms", at_most(60.0));
    let memory = megabytes(memory);
    report.add(program, "a map of 10 MB, peak memory", memory, "MB", under(256.0));
    Ok(())
}

async fn store_map(stack: &Stack, project: ProjectId) -> Result<()> {
    let map = large_map();
    let pieces = Pieces::of(&ParsedMap::parse(map.as_bytes())?)?;
    let (store, now) = (ProjectMaps::new(stack.store(), project), Clock::System.now());
    let upload = Upload {
        organization: "default".to_owned(),
        checksum: Checksum::of(map.as_bytes()),
        chunks: Vec::new(),
        release: None,
        dist: None,
    };
    let key = MapKey::of_debug_id(DEBUG_ID).ok_or("the debug ID is no UUID")?;
    let map = BundledMap {
        url: "~/app.js".to_owned(),
        bytes: map.len() as u64,
        keys: [key.clone()].into(),
    };
    let prepared = PreparedMap { map, pieces };
    let stored = StoredMap { map_id: Ids::Random.new_uuid(now), key: &key, prepared: &prepared };
    store.begin(&upload, now).await?;
    store.put_pieces(stored, now).await?;
    if store.publish(&upload, &[stored], now).await? {
        return Ok(());
    }
    Err("the map was not published".into())
}

/// Returns a map of about 10 MB, most of it sources, with a mapping per line.
fn large_map() -> String {
    let mut source = String::new();
    let mut mappings = "AAAA".to_owned();
    for number in 0..LINES {
        let _ = writeln!(source, "export const value{number} = call({number});");
        mappings.push_str(",UACA");
    }
    json!({"version": 3, "sources": ["src/large.js"], "sourcesContent": [source], "names": [],
        "mappings": mappings})
    .to_string()
}

/// Returns a delivery of an event with frames in all parts of a script.
fn event(project: &Project, debug_id: Option<&str>) -> Result<Bytes> {
    let now = Clock::System.now();
    let id = Ids::Random.new_uuid(now).simple().to_string();
    let script = "https://shop.example.com/app.js";
    let between = LINES * CHARACTERS / FRAMES;
    let frame = |number| {
        json!({"filename": script, "function": "t", "in_app": true, "lineno": 1,
            "colno": 1 + number * between})
    };
    let frames: Vec<Json> = (0..FRAMES).map(frame).collect();
    let image = |id| json!({"type": "sourcemap", "code_file": script, "debug_id": id});
    let images: Vec<Json> = debug_id.into_iter().map(image).collect();
    let event = json!({
        "event_id": id, "timestamp": now, "platform": "javascript",
        "debug_meta": {"images": images},
        "exception": {"values": [{"type": "TypeError", "value": "x is undefined",
            "stacktrace": {"frames": frames}}]},
    })
    .to_string();
    envelope(project, &id, &event, now)
}
