//! What is said of every function but create-feature-flag: the same figures, side by side.

use super::Figures;
use super::units::{mb, ms, times};
use crate::program::Program;
use crate::statistics::Sorted;

/// The least width of a column.
const COLUMN_WIDTH: usize = 14;
/// The most memory of a function that does nothing out of the ordinary, in MB.
const USUAL_MEMORY: f64 = 20.0;
/// The most memory of evaluate-feature-flags with 1,000 flags, in MB.
const MEMORY_OF_A_BULK_EVALUATION: f64 = 24.0;
/// The most memory of query-error-timeseries, in MB.
const MEMORY_OF_A_LARGE_QUERY: f64 = 128.0;

/// What was measured of every function.
pub(super) struct Common<'f> {
    pub(super) program: Program,
    /// How long a usual request takes.
    pub(super) latency: Option<&'f Sorted>,
    /// The processor time of a usual request, in milliseconds.
    pub(super) cpu: Option<f64>,
    /// The most round trips of a warm request; `None` for a job, which makes as many as it needs, and
    /// where none is made.
    pub(super) round_trips: Option<usize>,
    pub(super) memory: u64,
    /// How much memory it may take, in MB; `None` where nothing is promised.
    pub(super) memory_bound: Option<f64>,
}

impl Figures {
    /// How much more processor time create-feature-flag takes than its calls of DynamoDB alone.
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

    /// Functions that evaluate flags.
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

    /// Functions for event markers, email preferences and insights.
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

    /// Functions for errors. Of a query, the usual request is the unfiltered one.
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

    /// The median cold start, as a multiple of hello's.
    pub(super) fn cold_ratio(&self, program: Program) -> f64 {
        let median = |program| self.cold.of(program).answer.median();
        median(program) / median(Program::Hello)
    }

    /// The bytes of a binary.
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
        line("cold start to first answer or run", &|it| Some(ms(starts(it).answer.median())));
        line("  as a multiple of hello's", &|it| Some(times(self.cold_ratio(it.program))));
        line("  fastest", &|it| Some(ms(starts(it).answer.min())));
        line("  90th percentile", &|it| Some(ms(starts(it).answer.percentile(90))));
        line("  CPU time, median", &|it| Some(ms(starts(it).cpu.median())));
        line("warm request, p50", &latency(50));
        line("  p99", &latency(99));
        line("  CPU time", &|it| it.cpu.map(ms));
        line("  round trips, most", &|it| it.round_trips.map(|most| most.to_string()));
        line("peak memory", &|it| Some(mb(it.memory)));
        line("binary", &|it| Some(mb(self.size(it.program))));
    }
}
