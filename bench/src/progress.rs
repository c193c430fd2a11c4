//! Progress messages.

#![allow(clippy::print_stderr)] // The output of a benchmark.

use std::sync::LazyLock;
use std::time::Instant;

static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Prints a progress message with the elapsed time.
pub(crate) fn progress(text: &str) {
    let seconds = STARTED.elapsed().as_secs();
    eprintln!("bench: {:>2}:{:02} {text}", seconds / 60, seconds % 60);
}
