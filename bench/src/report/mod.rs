//! What the benchmark says.

// A benchmark is a program whose purpose is to print.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod create_feature_flag;
mod errors;
mod evaluation;
mod functions;
mod json;
mod other_resources;
mod targets;
mod units;

use crate::cold::Cold;
use crate::errors::Errors;
use crate::evaluation::Evaluations;
use crate::event_markers::EventMarkers;
use crate::insights::Insights;
use crate::interpretation::Interpretations;
use crate::measure::{RoundTrips, Tls, Warm};

pub(crate) use units::grouped;

/// Tells that something goes on.
pub(crate) fn progress(text: &str) {
    eprintln!("bench: {text}");
}

/// Everything that was measured.
pub(crate) struct Figures {
    pub(crate) round_trips: RoundTrips,
    pub(crate) cold: Cold,
    pub(crate) warm: Warm,
    pub(crate) tls: Tls,
    pub(crate) event_markers: EventMarkers,
    pub(crate) insights: Insights,
    pub(crate) errors: Errors,
    pub(crate) evaluations: Evaluations,
    pub(crate) interpretations: Interpretations,
    /// The bytes of hello, hello-dynamodb and create-feature-flag.
    pub(crate) sizes: [u64; 3],
    /// The bytes of evaluate-feature-flag and evaluate-feature-flags.
    pub(crate) evaluation_sizes: [u64; 2],
    /// The bytes of delete-event-marker-collection, purge-event-markers,
    /// update-email-preferences and split-insight.
    pub(crate) other_sizes: [u64; 4],
    /// The bytes of ingest-error-events, query-error-timeseries, compact-error-segments and
    /// interpret-error-filters.
    pub(crate) error_sizes: [u64; 4],
}

impl Figures {
    /// Prints all figures and targets, and answers whether all targets are met.
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
