//! The targets of the benchmark.

use super::Figures;
use super::functions::Common;
use super::units::{kilobytes, megabytes, whole};
use crate::errors::{Capacity, Cost, MeasuredQuestion, QueryFigures};
use crate::evaluation::Evaluations;
use crate::measure::Tls;
use crate::program::Program;

/// An upper bound of a figure.
pub(super) struct Target {
    pub(super) name: &'static str,
    pub(super) figure: f64,
    pub(super) bound: f64,
    /// `true` if a figure equal to the bound meets the target.
    inclusive: bool,
    pub(super) unit: &'static str,
}

impl Target {
    fn under(bound: f64, unit: &'static str, name: &'static str, figure: f64) -> Self {
        Self { name, figure, bound, inclusive: false, unit }
    }

    fn at_most(bound: f64, unit: &'static str, name: &'static str, figure: f64) -> Self {
        Self { name, figure, bound, inclusive: true, unit }
    }

    pub(super) fn is_met(&self) -> bool {
        self.figure < self.bound || (self.inclusive && self.figure <= self.bound)
    }

    fn print(&self) {
        let Self { name, figure, bound, inclusive, unit } = self;
        let verdict = if self.is_met() { "ok" } else { "MISSED" };
        let relation = if *inclusive { "at most" } else { "under" };
        let figure = format!("{figure:.2} {unit:<2}");
        let bound = format!("{relation} {bound} {unit}");
        println!("    {verdict:<7} {name:<46} {figure:>10}   {}", bound.trim_end());
    }
}

impl Figures {
    /// Returns all targets, by function.
    pub(super) fn targets(&self) -> Vec<(Program, Vec<Target>)> {
        let create = self.create_feature_flag();
        let [evaluate, evaluate_all] = self.of_evaluations();
        let [delete, purge, update, split] = self.of_other_resources();
        let [ingest, query, pack, interpret] = self.of_errors();
        let of = |common: &Common<'_>, own: Vec<Target>| {
            let mut targets = self.common_targets(common);
            targets.extend(own);
            (common.program, targets)
        };
        let mut of_create = vec![one_round_trip(&create)];
        of_create.extend(self.create_targets());
        let of_delete = vec![
            one_round_trip(&delete),
            Target::at_most(
                1.5,
                "×",
                "20,000 events, as a multiple of none",
                self.event_markers.ratio(),
            ),
        ];
        let mut targets = vec![
            of(&create, of_create),
            of(&evaluate, self.evaluation_targets()),
            of(&evaluate_all, self.bulk_targets()),
            of(&delete, of_delete),
            of(&purge, Vec::new()),
            of(&update, vec![one_round_trip(&update)]),
            of(&split, self.split_targets()),
            of(&ingest, self.ingestion_targets()),
            of(&query, self.query_targets()),
            of(&pack, self.packing_targets()),
            of(&interpret, self.interpretation_targets()),
        ];
        targets.extend(self.random_targets());
        targets.extend(self.large_targets());
        targets
    }

    fn common_targets(&self, common: &Common<'_>) -> Vec<Target> {
        let Common { program, memory, memory_bound, .. } = *common;
        let ratio = self.cold_ratio(program);
        let mut targets =
            vec![Target::at_most(4.0, "×", "cold start, as a multiple of hello's", ratio)];
        let memory = |bound| Target::under(bound, "MB", "peak memory", megabytes(memory));
        targets.extend(memory_bound.map(memory));
        targets.push(Target::under(8.0, "MB", "release binary", megabytes(self.size(program))));
        targets
    }

    fn create_targets(&self) -> Vec<Target> {
        let first_call = |tls: &Tls| {
            let figure = tls.client_and_call.median();
            Target::under(10.0, "ms", "first DynamoDB call over TLS, client included", figure)
        };
        let mut targets: Vec<Target> = self.tls.iter().map(first_call).collect();
        targets.push(Target::under(0.3, "ms", "own CPU time of a warm request", self.own_cpu()));
        targets
    }

    fn split_targets(&self) -> Vec<Target> {
        let (ratio, sent) = (self.insights.ratio(), self.insights.sent());
        let megabytes = kilobytes(sent.transaction) / 1e3;
        vec![
            Target::at_most(4.0, "×", "a large split, as a multiple of a small one", ratio),
            Target::under(400.0, "kB", "largest item", kilobytes(sent.item)),
            Target::at_most(100.0, "", "most actions of a transaction", whole(sent.actions)),
            Target::under(4.0, "MB", "largest transaction", megabytes),
        ]
    }

    fn ingestion_targets(&self) -> Vec<Target> {
        let ingestion = &self.errors.ingestion;
        let (latency, rate) = (ingestion.latency.median(), ingestion.events_per_second);
        let units = ingestion.traffic.write_units;
        let maps = &self.errors.resolved_frames;
        vec![
            Target::under(10.0, "ms", "an event of 4 kB, warm, p50", latency),
            Target::at_most(2.5, "ms", "  sequential: 400 per second", 1_000.0 / rate),
            Target::at_most(9.0, "", "  write units, known error", units),
            Target::at_most(5.0, "ms", "30 frames with a source map, added to p95", maps.added()),
            Target::at_most(60.0, "ms", "  added by its first use", maps.added_at_first()),
            Target::under(256.0, "MB", "  peak memory", megabytes(maps.memory)),
        ]
    }

    fn query_targets(&self) -> Vec<Target> {
        let (unfiltered, filtered) =
            (&self.errors.timeseries.unfiltered, &self.errors.timeseries.filtered);
        let p50 = |query: &QueryFigures| query.latency.median();
        let mut targets = vec![
            Target::under(24.0, "ms", "30 days of 10 projects, p50", p50(unfiltered)),
            Target::under(72.0, "ms", "  filtered, p50", p50(filtered)),
        ];
        let beside = |bound, name| move |ratio| Target::under(bound, "×", name, ratio);
        let compared = "30 days, as a multiple of PostgreSQL's time";
        targets.extend(unfiltered.ratio().map(beside(0.07, compared)));
        targets.extend(filtered.ratio().map(beside(0.58, "  filtered, as a multiple of its time")));
        targets
    }

    fn packing_targets(&self) -> Vec<Target> {
        let bytes = self.errors.timeseries.run_bytes_per_event();
        let mut targets = vec![Target::at_most(14.0, "B", "run bytes per event", bytes)];
        let Capacity { loads, of_flood } = &self.errors.capacity;
        for Cost { events_of_a_day, packing, .. } in loads {
            let (bound, name) = match events_of_a_day {
                ..100 => (1.0, "write units per event, at 24 a day"),
                100..1_000 => (0.15, "  at 300 a day"),
                1_000..100_000 => (0.12, "  at 1,000 a day"),
                100_000..1_000_000 => (0.05, "  at 100,000 a day"),
                _ => (0.05, "  at 15 million a day"),
            };
            targets.push(Target::at_most(bound, "", name, *packing));
        }
        targets.push(Target::at_most(3.0, "", "  per kB of unique attributes", *of_flood));
        targets
    }

    /// Returns the targets of random questions; empty if they were not measured.
    fn random_targets(&self) -> Vec<(Program, Vec<Target>)> {
        let targets = |question: &MeasuredQuestion| {
            let bound = if question.name.ends_with("filtered") { 800.0 } else { 300.0 };
            let p95 = question.latency.percentile(95);
            let targets = vec![
                Target::at_most(bound, "ms", "1.5 million events, p95", p95),
                Target::under(128.0, "MB", "  peak memory", megabytes(question.memory)),
                Target::under(8.0, "MB", "release binary", megabytes(self.size(question.program))),
            ];
            (question.program, targets)
        };
        self.errors.timeseries.random.iter().map(targets).collect()
    }

    /// Returns the targets of the large project's queries; empty if they were not measured.
    fn large_targets(&self) -> Vec<(Program, Vec<Target>)> {
        let questions = self.errors.large.iter().flat_map(|large| &large.questions);
        let targets = |question: &MeasuredQuestion| {
            let p95 = question.latency.percentile(95);
            let memory = megabytes(question.memory);
            let targets = vec![
                Target::at_most(500.0, "ms", "10 million events, p95", p95),
                Target::at_most(256.0, "MB", "  peak memory", memory),
            ];
            (question.program, targets)
        };
        questions.map(targets).collect()
    }

    fn evaluation_targets(&self) -> Vec<Target> {
        let Evaluations { rules_alone, calls, .. } = &self.evaluations;
        let calls = whole(*calls);
        vec![
            Target::under(5.0, "µs", "the rules alone", rules_alone.median()),
            Target::at_most(0.0, "", "DynamoDB round trips while cached", calls),
        ]
    }

    fn bulk_targets(&self) -> Vec<Target> {
        let bulk = self.evaluations.bulk.latency.median();
        vec![Target::under(5.0, "ms", "1,000 flags in one response, p50", bulk)]
    }

    fn interpretation_targets(&self) -> Vec<Target> {
        let (typical, largest) = (&self.interpretations.typical, &self.interpretations.largest);
        vec![
            Target::under(1.0, "ms", "CPU time of a typical query", typical.median_cpu()),
            Target::under(10.0, "ms", "  of the largest request", largest.median_cpu()),
        ]
    }

    /// Prints all targets. Returns `true` if all are met.
    pub(super) fn print_targets(&self) -> bool {
        println!("\nTargets");
        let functions = self.targets();
        for (function, targets) in &functions {
            println!("  {}", function.name());
            targets.iter().for_each(Target::print);
        }
        functions.iter().flat_map(|(_, targets)| targets).all(Target::is_met)
    }
}

/// Returns the target of at most one round trip per warm request.
fn one_round_trip(common: &Common<'_>) -> Target {
    let most = common.round_trips.map_or(f64::INFINITY, whole);
    Target::at_most(1.0, "", "DynamoDB round trips of a warm request", most)
}
