//! The common figures of the functions, side by side.

use super::Figures;
use super::units::{mb, ms, times};
use crate::program::Program;
use crate::statistics::Sorted;

/// The minimum width of a column, in characters.
const COLUMN_WIDTH: usize = 14;
/// The memory target of an ordinary function, in MB.
const USUAL_MEMORY: f64 = 20.0;
/// The memory target of evaluate-feature-flags with 1,000 flags, in MB.
const MEMORY_OF_A_BULK_EVALUATION: f64 = 24.0;
/// The memory target of query-error-timeseries, in MB.
const MEMORY_OF_A_LARGE_QUERY: f64 = 128.0;

/// The figures that all functions have.
pub(super) struct Common<'f> {
    pub(super) program: Program,
    /// The latency of a typical request, in milliseconds.
    pub(super) latency: Option<&'f Sorted>,
    /// The processor time of a typical request, in milliseconds.
    pub(super) cpu: Option<f64>,
    /// The maximum number of round trips of a warm request; `None` if not counted, as for a job.
    pub(super) round_trips: Option<usize>,
    /// The peak memory, in bytes.
    pub(super) memory: u64,
    /// The memory target, in MB; `None` without a target.
    pub(super) memory_bound: Option<f64>,
}

impl Figures {
    /// Returns create-feature-flag's processor time beyond its DynamoDB call, in milliseconds.
    pub(super) fn own_cpu(&self) -> f64 {
        self.warm.create.cpu_beyond(&self.warm.sdk)
    }

    pub(super) fn create_feature_flag(&self) -> Common<'_> {
        let [.., memory] = self.warm.memory;
        Common {
            program: Program::CreateFeatureFlag,
            latency: Some(&self.warm.create.latency),
            cpu: Some(self.warm.create.median_cpu()),
            round_trips: Some(self.round_trips.most),
            memory,
            memory_bound: Some(USUAL_MEMORY),
        }
    }

    /// Returns the figures of the functions that evaluate flags.
    pub(super) fn of_evaluations(&self) -> [Common<'_>; 2] {
        let evaluations = &self.evaluations;
        [
            Common {
                program: Program::EvaluateFeatureFlag,
                latency: Some(&evaluations.single.latency),
                cpu: Some(evaluations.single.median_cpu()),
                round_trips: Some(evaluations.calls),
                memory: evaluations.memory_of_single,
                memory_bound: Some(USUAL_MEMORY),
            },
            Common {
                program: Program::EvaluateFeatureFlags,
                latency: Some(&evaluations.bulk.latency),
                cpu: Some(evaluations.bulk.median_cpu()),
                round_trips: None,
                memory: evaluations.memory,
                memory_bound: Some(MEMORY_OF_A_BULK_EVALUATION),
            },
        ]
    }

    /// Returns the figures of the functions for event markers, email preferences and insights.
    pub(super) fn of_other_resources(&self) -> [Common<'_>; 4] {
        let Self { round_trips, warm, event_markers, insights, .. } = self;
        [
            Common {
                program: Program::DeleteEventMarkerCollection,
                latency: Some(&event_markers.empty),
                cpu: None,
                round_trips: Some(round_trips.most_of_delete),
                memory: event_markers.memory,
                memory_bound: Some(USUAL_MEMORY),
            },
            Common {
                program: Program::PurgeEventMarkers,
                latency: None,
                cpu: None,
                round_trips: None,
                memory: event_markers.purge.memory,
                memory_bound: Some(USUAL_MEMORY),
            },
            Common {
                program: Program::UpdateEmailPreferences,
                latency: Some(&warm.update.latency),
                cpu: Some(warm.update.median_cpu()),
                round_trips: Some(round_trips.most_of_update),
                memory: warm.memory_of_update,
                memory_bound: Some(USUAL_MEMORY),
            },
            Common {
                program: Program::SplitInsight,
                latency: Some(&insights.small.latency),
                cpu: Some(insights.small.cost.cpu.median()),
                round_trips: Some(insights.sent().calls),
                memory: insights.memory,
                memory_bound: Some(USUAL_MEMORY),
            },
        ]
    }

    /// Returns the figures of the functions for errors. The typical timeseries query is unfiltered.
    pub(super) fn of_errors(&self) -> [Common<'_>; 4] {
        let Self { errors, interpretations, .. } = self;
        let (ingestion, timeseries) = (&errors.ingestion, &errors.timeseries);
        [
            Common {
                program: Program::IngestErrorEvents,
                latency: Some(&ingestion.latency),
                cpu: Some(ingestion.cpu),
                round_trips: Some(ingestion.traffic.calls),
                memory: ingestion.memory,
                memory_bound: Some(USUAL_MEMORY),
            },
            Common {
                program: Program::QueryErrorTimeseries,
                latency: Some(&timeseries.unfiltered.latency),
                cpu: Some(timeseries.unfiltered.cpu.median()),
                round_trips: Some(timeseries.unfiltered.traffic.calls),
                memory: timeseries.memory,
                memory_bound: Some(MEMORY_OF_A_LARGE_QUERY),
            },
            Common {
                program: Program::PackErrorLog,
                latency: None,
                cpu: None,
                round_trips: None,
                memory: errors.packing.memory,
                memory_bound: None,
            },
            Common {
                program: Program::InterpretErrorFilters,
                latency: Some(&interpretations.typical.latency),
                cpu: Some(interpretations.typical.median_cpu()),
                round_trips: None,
                memory: interpretations.memory,
                memory_bound: Some(USUAL_MEMORY),
            },
        ]
    }

    /// Returns the median cold start as a multiple of hello's.
    pub(super) fn cold_ratio(&self, program: Program) -> f64 {
        let median = |program| self.cold.of(program).response.median();
        median(program) / median(Program::Hello)
    }

    /// Returns the size of a binary, in bytes.
    pub(super) fn size(&self, program: Program) -> u64 {
        self.sizes[&program]
    }

    /// Prints the functions side by side.
    pub(super) fn print_functions(&self, functions: &[Common<'_>]) {
        let line = |name: &str, figure: &dyn Fn(&Common<'_>) -> Option<String>| {
            let columns = functions.iter().map(|it| {
                let figure = figure(it).unwrap_or_else(|| "–".to_owned());
                format!("{figure:>0$}", it.program.name().len().max(COLUMN_WIDTH) + 1)
            });
            println!("{name:<36}{}", columns.collect::<String>());
        };
        let latency = |percent| {
            move |it: &Common<'_>| it.latency.map(|latency| ms(latency.percentile(percent)))
        };
        let starts = |it: &Common<'_>| self.cold.of(it.program);
        println!();
        line("", &|it| Some(it.program.name()));
        line("cold start to first response", &|it| Some(ms(starts(it).response.median())));
        line("  as a multiple of hello's", &|it| Some(times(self.cold_ratio(it.program))));
        line("  fastest", &|it| Some(ms(starts(it).response.min())));
        line("  90th percentile", &|it| Some(ms(starts(it).response.percentile(90))));
        line("  CPU time, median", &|it| Some(ms(starts(it).cpu.median())));
        line("warm request, p50", &latency(50));
        line("  p99", &latency(99));
        line("  CPU time", &|it| it.cpu.map(ms));
        line("  round trips, most", &|it| it.round_trips.map(|most| most.to_string()));
        line("peak memory", &|it| Some(mb(it.memory)));
        line("binary", &|it| Some(mb(self.size(it.program))));
    }
}
