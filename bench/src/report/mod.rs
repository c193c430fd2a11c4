//! The report of the benchmark, as text and as JSON.

// Printing is the purpose of a benchmark.
#![allow(clippy::print_stdout)]

mod create_feature_flag;
mod errors;
mod evaluation;
mod functions;
mod json;
mod other_resources;
mod targets;
mod units;

use std::collections::BTreeMap;

use crate::cold::Cold;
use crate::errors::Errors;
use crate::evaluation::Evaluations;
use crate::event_markers::EventMarkers;
use crate::insights::Insights;
use crate::interpretation::Interpretations;
use crate::measure::{RoundTrips, Tls, Warm};
use crate::program::Program;

/// The placeholder of a figure that only `make bench-all` measures.
const NOT_MEASURED: &str = "–   (make bench-all)";

/// Prints the names of the measured functions, for `make bench` to build.
pub(crate) fn list_functions() {
    Program::functions().for_each(|function| println!("{}", function.name()));
}

/// All figures.
pub(crate) struct Figures {
    pub(crate) round_trips: RoundTrips,
    pub(crate) cold: Cold,
    pub(crate) warm: Warm,
    /// `None` without `--all`.
    pub(crate) tls: Option<Tls>,
    pub(crate) event_markers: EventMarkers,
    pub(crate) insights: Insights,
    pub(crate) errors: Errors,
    pub(crate) evaluations: Evaluations,
    pub(crate) interpretations: Interpretations,
    /// The size of each binary, in bytes.
    pub(crate) sizes: BTreeMap<Program, u64>,
}

impl Figures {
    /// Prints all figures and targets. Returns `true` if all targets are met.
    pub(crate) fn print(&self) -> bool {
        self.print_comparison();
        self.print_more();
        self.print_functions(&self.of_evaluations());
        self.print_evaluations();
        self.print_functions(&self.of_other_resources());
        self.print_event_markers();
        self.print_splits();
        self.print_functions(&self.of_errors());
        self.print_errors();
        self.print_interpretations();
        self.print_targets()
    }
}
