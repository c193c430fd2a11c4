//! The report as JSON: times in milliseconds, sizes in bytes.

use serde_json::{Value as Json, json};

use super::Figures;
use super::functions::Common;
use crate::cold::Starts;
use crate::errors::{
    Capacity, Cost, Ingestion, Large, MeasuredQuestion, QueryFigures, Timeseries, Traffic,
};
use crate::event_markers::EventMarkers;
use crate::insights::Splits;
use crate::job::JobWork;
use crate::measure::Requests;
use crate::program::Program;
use crate::statistics::{Sorted, millis};

impl Figures {
    /// Returns all figures as JSON.
    pub(crate) fn json(&self) -> Json {
        let Self { round_trips, cold, warm, tls, event_markers, errors, .. } = self;
        let EventMarkers { empty, large, purge, .. } = event_markers;
        let [mut delete, mut purging, mut update, mut split] =
            self.of_other_resources().map(|it| self.common_json(&it));
        delete["empty"] = distribution_json(empty);
        delete["of20000Events"] = distribution_json(large);
        delete["multipleOfEmpty"] = json!(event_markers.ratio());
        purging["purge"] = job_json(purge);
        update["warm"] = requests_json(&warm.update);
        split["of10"] = splits_json(&self.insights.small);
        split["of10000"] = splits_json(&self.insights.large);
        split["multipleOfSmall"] = json!(self.insights.ratio());
        let [mut ingest, mut query, mut pack, mut interpret] =
            self.of_errors().map(|it| self.common_json(&it));
        ingest["warm"] = ingestion_json(&errors.ingestion);
        query["timeseries"] = timeseries_json(&errors.timeseries);
        pack["packing"] = job_json(&errors.packing);
        pack["capacity"] = capacity_json(&errors.capacity);
        let large = errors.large.as_ref().map(large_json);
        let [mut evaluate, mut evaluate_all] =
            self.of_evaluations().map(|it| self.common_json(&it));
        let evaluations = &self.evaluations;
        evaluate["rulesAloneMicros"] = distribution_json(&evaluations.rules_alone);
        evaluate["cached"] = requests_json(&evaluations.single);
        evaluate_all["cached"] = requests_json(&evaluations.bulk);
        evaluate_all["afresh"] = distribution_json(&evaluations.uncached);
        interpret["typical"] = requests_json(&self.interpretations.typical);
        interpret["largest"] = requests_json(&self.interpretations.largest);
        let targets = self.targets();
        let targets = targets.iter().flat_map(|(function, targets)| {
            targets.iter().map(move |target| {
                json!({
                    "function": function.name(),
                    "name": target.name.trim_start(),
                    "figure": target.figure,
                    "bound": target.bound,
                    "unit": target.unit,
                    "met": target.is_met(),
                })
            })
        });
        json!({
            "cold": {
                "hello": starts_json(cold.of(Program::Hello)),
                "createFeatureFlag": starts_json(cold.of(Program::CreateFeatureFlag)),
                "createFeatureFlagOverTls": tls.as_ref().map(|tls| starts_json(&tls.create)),
                "calls": round_trips.cold,
            },
            "warm": {
                "hello": requests_json(&warm.hello),
                "helloDynamodb": requests_json(&warm.sdk),
                "createFeatureFlag": requests_json(&warm.create),
                "invalidBody": requests_json(&warm.invalid),
                "largestFlag": requests_json(&warm.largest),
                "ownCpu": self.own_cpu(),
                "ownCpuOfLargestFlag": warm.largest.cpu_beyond(&warm.largest_sdk),
                "mostRoundTrips": round_trips.most,
            },
            "firstCallOverTls": tls.as_ref().map(|tls| json!({
                "clientAndCall": distribution_json(&tls.client_and_call),
                "call": distribution_json(&tls.call),
            })),
            "peakMemory": {
                "hello": warm.memory[0],
                "helloDynamodb": warm.memory[1],
                "createFeatureFlag": warm.memory[2],
                "createFeatureFlagAfterLargestFlags": warm.memory_after_largest,
            },
            "binary": {
                "hello": self.size(Program::Hello),
                "helloDynamodb": self.size(Program::HelloDynamodb),
                "createFeatureFlag": self.size(Program::CreateFeatureFlag),
            },
            "others": {
                "packErrorLog": pack,
                "deleteEventMarkerCollection": delete,
                "evaluateFeatureFlag": evaluate,
                "evaluateFeatureFlags": evaluate_all,
                "ingestErrorEvents": ingest,
                "interpretErrorFilters": interpret,
                "purgeEventMarkers": purging,
                "queryErrorTimeseries": query,
                "largeProject": large,
                "splitInsight": split,
                "updateEmailPreferences": update,
            },
            "targets": targets.collect::<Vec<_>>(),
        })
    }

    fn common_json(&self, common: &Common<'_>) -> Json {
        json!({
            "cold": starts_json(self.cold.of(common.program)),
            "multipleOfHello": self.cold_ratio(common.program),
            "mostRoundTrips": common.round_trips,
            "peakMemory": common.memory,
            "binary": self.size(common.program),
        })
    }
}

fn splits_json(splits: &Splits) -> Json {
    let cost = &splits.cost;
    json!({
        "latency": distribution_json(&splits.latency),
        "cpu": distribution_json(&cost.cpu),
        "dynamodb": distribution_json(&cost.dynamodb),
        "mostRoundTrips": cost.sent.calls,
        "mostActions": cost.sent.actions,
        "largestTransaction": cost.sent.transaction,
        "largestItem": cost.sent.item,
    })
}

fn starts_json(starts: &Starts) -> Json {
    json!({"answer": distribution_json(&starts.response), "cpu": distribution_json(&starts.cpu)})
}

fn requests_json(requests: &Requests) -> Json {
    json!({"latency": distribution_json(&requests.latency), "cpu": requests.median_cpu()})
}

fn distribution_json(figures: &Sorted) -> Json {
    json!({
        "min": figures.min(),
        "p50": figures.median(),
        "p90": figures.percentile(90),
        "p99": figures.percentile(99),
    })
}

fn job_json(work: &JobWork) -> Json {
    json!({
        "events": work.events,
        "runs": work.invocations,
        "time": millis(work.time),
        "eventsPerSecond": work.events_per_second(),
        "cpuOf1000Events": work.cpu_of_1000(),
    })
}

fn ingestion_json(ingestion: &Ingestion) -> Json {
    json!({
        "event": ingestion.event_bytes,
        "body": ingestion.body_bytes,
        "latency": distribution_json(&ingestion.latency),
        "eventsPerSecond": ingestion.events_per_second,
        "cpu": ingestion.cpu,
        "dynamodb": distribution_json(&ingestion.dynamodb),
        "traffic": traffic_json(ingestion.traffic),
    })
}

fn capacity_json(capacity: &Capacity) -> Json {
    let cost = |cost: &Cost| {
        json!({
            "eventsOfADay": cost.events_of_a_day,
            "hours": cost.lasting.as_secs() / 3_600,
            "deliveryUnits": cost.delivery,
            "packingUnits": cost.packing,
        })
    };
    json!({
        "loads": capacity.loads.iter().map(cost).collect::<Vec<_>>(),
        "unitsOfADifferentKilobyte": capacity.of_flood,
    })
}

fn large_json(large: &Large) -> Json {
    json!({
        "events": large.events,
        "runs": large.run_bytes,
        "questions": questions_json(&large.questions),
    })
}

fn questions_json(questions: &[MeasuredQuestion]) -> Json {
    let question = |question: &MeasuredQuestion| {
        json!({
            "name": question.name,
            "latency": distribution_json(&question.latency),
            "peakMemory": question.memory,
        })
    };
    questions.iter().map(question).collect()
}

fn timeseries_json(timeseries: &Timeseries) -> Json {
    let Timeseries { loaded, unfiltered, filtered, random, .. } = timeseries;
    json!({
        "events": loaded.events(),
        "rows": loaded.rows,
        "runs": loaded.run_bytes,
        "runBytesPerEvent": timeseries.run_bytes_per_event(),
        "unfiltered": query_json(unfiltered),
        "filtered": query_json(filtered),
        "random": questions_json(random),
    })
}

fn query_json(query: &QueryFigures) -> Json {
    json!({
        "latency": distribution_json(&query.latency),
        "cpu": distribution_json(&query.cpu),
        "dynamodb": distribution_json(&query.dynamodb),
        "traffic": traffic_json(query.traffic),
        "postgresql": query.postgres.as_ref().map(distribution_json),
        "multipleOfPostgresql": query.ratio(),
    })
}

fn traffic_json(traffic: Traffic) -> Json {
    json!({
        "calls": traffic.calls,
        "readUnits": traffic.read_units,
        "writeUnits": traffic.write_units,
    })
}
