//! What is fuzzed: functions of bytes that panic where something does not hold that must hold for any bytes.
//! Coverage-guided by `make fuzz`, and with the corpus and mutations of it in each run of the tests
//! (`fuzz/targets/tests/replay.rs`).

#![allow(clippy::missing_panics_doc)] // That is how a target tells what it found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cursors;
mod envelopes;
mod inflating;
mod interpreter;
mod json;
mod numbers;
mod runs;

/// One thing that is fuzzed.
#[derive(Debug)]
pub struct Target {
    /// Its name, and that of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// Tries it on some bytes, and panics where something does not hold.
    pub run: fn(&[u8]),
}

/// Everything that is fuzzed.
pub static TARGETS: [Target; 9] = [
    Target { name: "columns", run: runs::columns },
    Target { name: "cursors", run: cursors::cursors },
    Target { name: "envelopes", run: envelopes::envelopes },
    Target { name: "inflating", run: inflating::inflating },
    Target { name: "interpreter", run: interpreter::interpreter },
    Target { name: "json", run: json::json },
    Target { name: "numbers", run: numbers::numbers },
    Target { name: "rows", run: runs::rows },
    Target { name: "store_bodies", run: envelopes::store_bodies },
];
