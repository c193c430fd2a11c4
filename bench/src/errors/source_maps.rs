//! Ingestion of browsers' events with 30 frames, with and without a source map of 10 MB.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use axum::body::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value as Json, json};
use source_maps::MapKey;
use source_maps::bundle::Checksum;
use source_maps::map::ParsedMap;
use source_maps::pieces::Pieces;
use source_maps::store::{SourceMapStore, StoredMap, Upload};

use local::environment;
use shared::app::{Clock, Ids};
use shared::projects::project::{Organization, Project, ProjectId};

use crate::measure::Bench;
use crate::program::Program;
use crate::progress::progress;
use crate::statistics::Sorted;
use crate::{Result, events};

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

/// The figures of resolved frames.
pub(crate) struct ResolvedFrames {
    /// The latency of an event without a map, in milliseconds.
    pub(crate) without: Sorted,
    /// The latency of an event whose map a warm process has used, in milliseconds.
    pub(crate) with: Sorted,
    /// The latency of the first event with the map in a warm process, in milliseconds.
    pub(crate) first: Sorted,
    /// The peak memory of ingest-error-events, in bytes.
    pub(crate) memory: u64,
}

impl Bench<'_> {
    /// Measures the resolution of frames during ingestion.
    pub(super) async fn resolved_frames(&self) -> Result<ResolvedFrames> {
        progress(&format!("source maps: {EVENTS} events with {FRAMES} frames"));
        let project = self.stack.project_with_dsn("mapped").await?;
        self.store_map(project.id).await?;
        let variables = environment::variables(&self.stack.endpoint());
        let (mut first, mut memory) = (Vec::new(), 0);
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for turn in 0..FIRST_USES {
            let mut process = self.start(Program::IngestErrorEvents, &variables).await?;
            for _ in 0..WARM_UPS {
                process.expect(200, event(&project, None)?).await?;
            }
            let used = process.expect(200, event(&project, Some(DEBUG_ID))?).await?;
            first.push(used.latency);
            if turn == 0 {
                for count in 0..WARM_UPS + EVENTS {
                    let plain = process.expect(200, event(&project, None)?).await?.latency;
                    let mapped = process.expect(200, event(&project, Some(DEBUG_ID))?).await?;
                    if count >= WARM_UPS {
                        without.push(plain);
                        with.push(mapped.latency);
                    }
                }
            }
            memory = memory.max(process.peak_memory()?);
            process.stop().await?;
        }
        let (without, with) = (Sorted::millis(without), Sorted::millis(with));
        Ok(ResolvedFrames { without, with, first: Sorted::millis(first), memory })
    }

    async fn store_map(&self, project: ProjectId) -> Result<()> {
        let map = large_map();
        let pieces = Pieces::of(&ParsedMap::parse(map.as_bytes())?)?;
        let (store, now) = (SourceMapStore::new(self.stack.store()), Clock::System.now());
        let new_id = || Ids::Random.new_uuid(now);
        let upload = Upload {
            organization: Organization::parse("default")?,
            checksum: Checksum::of(map.as_bytes()),
            chunks: Vec::new(),
            release: None,
            dist: None,
        };
        let lease = new_id();
        let minute = Duration::from_mins(1);
        let is_leased = store.lease(project, &upload, lease, minute, now).await?;
        let stored = StoredMap {
            map_id: new_id(),
            key: MapKey::of_debug_id(DEBUG_ID).ok_or("the debug ID is a UUID")?,
            url: "~/app.js".to_owned(),
            bytes: map.len() as u64,
            stored_bytes: pieces.bytes(),
            index: pieces.index.clone(),
        };
        store.put_pieces(project, &stored, &pieces, now).await?;
        if is_leased && store.publish(project, &upload, lease, &[stored], now).await? {
            return Ok(());
        }
        Err("the map was not published".into())
    }
}

impl ResolvedFrames {
    /// Returns the time that a used map adds, in milliseconds: the difference of the 95th
    /// percentiles.
    pub(crate) fn added(&self) -> f64 {
        self.with.percentile(95) - self.without.percentile(95)
    }

    /// Returns the time that the first use of the map adds, in milliseconds.
    pub(crate) fn added_at_first(&self) -> f64 {
        self.first.median() - self.without.median()
    }
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
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let item = json!({"type": "event", "length": event.len()});
    write!(encoder, "{}\n{item}\n{event}\n", json!({"event_id": id, "sent_at": now}))?;
    Ok(events::compressed_envelope(project, &encoder.finish()?))
}
