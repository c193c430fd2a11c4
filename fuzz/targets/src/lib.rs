//! Fuzz targets: functions of bytes that panic if an invariant does not hold. `make fuzz` runs them
//! with coverage guidance. Each test run replays the corpus and mutations of it
//! (`fuzz/targets/tests/replay.rs`).

#![allow(clippy::missing_panics_doc)] // Targets report findings by panics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chunks;
mod cursors;
mod envelopes;
mod inflating;
mod interpreter;
mod json;
mod numbers;
mod recordings;
mod runs;
mod sign_ins;
mod source_maps;

/// A fuzz target.
#[derive(Debug)]
pub struct Target {
    /// The target's name, and that of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// Runs the target on bytes. Panics if an invariant does not hold.
    pub run: fn(&[u8]),
}

/// All fuzz targets.
pub static TARGETS: [Target; 13] = [
    Target { name: "chunks", run: chunks::chunks },
    Target { name: "columns", run: runs::columns },
    Target { name: "cursors", run: cursors::cursors },
    Target { name: "envelopes", run: envelopes::envelopes },
    Target { name: "inflating", run: inflating::inflating },
    Target { name: "interpreter", run: interpreter::interpreter },
    Target { name: "json", run: json::json },
    Target { name: "numbers", run: numbers::numbers },
    Target { name: "recordings", run: recordings::recordings },
    Target { name: "rows", run: runs::rows },
    Target { name: "sign_ins", run: sign_ins::sign_ins },
    Target { name: "source_maps", run: source_maps::source_maps },
    Target { name: "store_bodies", run: envelopes::store_bodies },
];
