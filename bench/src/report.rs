//! The report: a list of figures, printed as text and written as JSON.

#![allow(clippy::print_stdout)] // Printing is the purpose of a benchmark.

use std::fmt::{self, Display};

use serde_json::{Value as Json, json};

use crate::process::Requests;
use crate::program::Program;
use crate::statistics::{Sorted, megabytes};

/// Prints the names of the measured functions, for `make bench` to build.
pub(crate) fn list_functions() {
    Program::functions().for_each(|function| println!("{function}"));
}

/// An upper bound of a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    bound: f64,
    /// `true` if a figure equal to the bound meets the target.
    inclusive: bool,
}

#[allow(clippy::unnecessary_wraps)] // The form of a figure's optional target.
pub(crate) const fn under(bound: f64) -> Option<Target> {
    Some(Target { bound, inclusive: false })
}

#[allow(clippy::unnecessary_wraps)] // The form of a figure's optional target.
pub(crate) const fn at_most(bound: f64) -> Option<Target> {
    Some(Target { bound, inclusive: true })
}

/// A measured figure.
struct Figure {
    /// The program or the subject.
    group: String,
    name: String,
    value: f64,
    unit: &'static str,
    target: Option<Target>,
}

impl Figure {
    /// `true` if the figure has no target or meets it. NaN meets none.
    fn is_met(&self) -> bool {
        self.target.is_none_or(|Target { bound, inclusive }| {
            self.value < bound || (inclusive && self.value <= bound)
        })
    }

    fn json(&self) -> Json {
        json!({
            "group": self.group,
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "target": self.target.map(|target| target.bound),
            "met": self.target.map(|_| self.is_met()),
        })
    }
}

impl Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, unit, .. } = self;
        let decimals = if value.fract() == 0.0 { 0 } else { 3 };
        write!(f, "  {name:<50} {value:>12.decimals$} {unit:<4}")?;
        let Some(Target { bound, inclusive }) = self.target else { return Ok(()) };
        let verdict = if self.is_met() { "ok" } else { "MISSED" };
        write!(f, " {verdict}: {} {bound}", if inclusive { "at most" } else { "under" })
    }
}

/// All figures.
#[derive(Default)]
pub(crate) struct Report(Vec<Figure>);

impl Report {
    pub(crate) fn add(
        &mut self,
        group: impl Display,
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
        target: Option<Target>,
    ) {
        let (group, name) = (group.to_string(), name.into());
        self.0.push(Figure { group, name, value, unit, target });
    }

    /// Adds percentiles of times in milliseconds. The target is for the median.
    pub(crate) fn add_times(
        &mut self,
        group: impl Display,
        name: &str,
        times: &Sorted,
        target: Option<Target>,
    ) {
        self.add(&group, format!("{name}, p50"), times.median(), "ms", target);
        for percent in [90, 99] {
            let name = format!("{name}, p{percent}");
            self.add(&group, name, times.percentile(percent), "ms", None);
        }
    }

    /// Adds latency and processor time of warm requests. The target is for the median latency.
    pub(crate) fn add_requests(
        &mut self,
        group: impl Display,
        name: &str,
        requests: &Requests,
        target: Option<Target>,
    ) {
        self.add_times(&group, name, &requests.latency(), target);
        self.add(group, format!("{name}, CPU time"), requests.median_cpu(), "ms", None);
    }

    /// Adds a peak memory in bytes. The target is in MB.
    pub(crate) fn add_memory(&mut self, group: impl Display, bytes: u64, target: Option<Target>) {
        self.add(group, "peak memory", megabytes(bytes), "MB", target);
    }

    /// Prints all figures by group. Returns `true` if all targets are met.
    pub(crate) fn print(&self) -> bool {
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        println!("{}, {processors} processors, embedded DynamoDB", std::env::consts::ARCH);
        let mut figures: Vec<&Figure> = self.0.iter().collect();
        figures.sort_by_key(|figure| &figure.group);
        for group in figures.chunk_by(|one, other| one.group == other.group) {
            println!("\n{}", group.first().map_or("", |figure| &figure.group));
            for figure in group {
                println!("{figure}");
            }
        }
        let missed = self.0.iter().filter(|figure| !figure.is_met()).count();
        let targets = self.0.iter().filter(|figure| figure.target.is_some()).count();
        println!("\n{missed} of {targets} targets missed");
        missed == 0
    }

    /// Returns all figures as JSON.
    pub(crate) fn json(&self) -> Json {
        self.0.iter().map(Figure::json).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_figures_within_their_targets_meet_them() {
        let is_met = |value, target| {
            let mut report = Report::default();
            report.add("group", "name", value, "ms", target);
            let printed = report.print();
            assert_eq!(report.json()[0]["met"], json!(target.map(|_| printed)));
            printed
        };
        assert!(is_met(2.0, None) && is_met(f64::NAN, None));
        assert!(is_met(1.9, under(2.0)) && !is_met(2.0, under(2.0)));
        assert!(is_met(2.0, at_most(2.0)) && !is_met(2.1, at_most(2.0)));
        assert!(!is_met(f64::NAN, at_most(2.0)));
    }
}
