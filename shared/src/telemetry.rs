//! Structured logs and metrics: one JSON line per request or run on standard output, where Lambda
//! collects it. The line is in the embedded metric format of AWS's monitoring as well, which makes
//! metrics of the namespace `Waymark` of it.
//!
//! The line names the key id, never the key, and nothing of the body or the headers.

use std::env;
use std::panic::{self, PanicHookInfo};
use std::time::{Duration, SystemTime};

use serde::Serializer;
use serde_json::{Value, json};
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::dynamodb::{DamagedItem, StoreError};
use crate::http::{ApiRequest, ApiResponse, Problem, root_of_trace};
use crate::projects::project::ProjectId;
use crate::timestamp::Timestamp;
use crate::usage::Usage;

/// The name of the deployed stack, a dimension of all metrics; set by `template.yaml`.
pub const STACK_VARIABLE: &str = "WAYMARK_STACK";
/// Whether the lines of requests are metrics, too: `off`, or anything else. Alarms rest on those of
/// jobs, which are always made.
pub const METRICS_VARIABLE: &str = "WAYMARK_METRICS";

/// Of a hundred requests that succeed, how many are logged; set by `template.yaml`. Nothing, or no number:
/// all.
pub const LOGGED_SUCCESSES_VARIABLE: &str = "WAYMARK_LOGGED_SUCCESSES";

/// The name of the metric that counts an operation's server errors. There is none of its successes, so
/// that an operation without errors costs no metric.
pub const SERVER_ERRORS: &str = "ServerErrors";

/// The namespace of all metrics.
const NAMESPACE: &str = "Waymark";
/// The dimensions of metrics. Requests are told apart by the log alone: AWS bills each metric
/// of each operation, and has latencies of functions and routes anyway.
const STACK: &str = "stack";
const OPERATION: &str = "operation";

/// Starts logging at the level that Lambda's logging configuration names, `INFO` by default.
/// Libraries log warnings only: their finer levels would show requests.
pub fn start() {
    let level = env::var("AWS_LAMBDA_LOG_LEVEL").ok().and_then(|level| level.parse().ok());
    let level = level.unwrap_or(LevelFilter::INFO);
    let filter = filter(level);
    let lines = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_target(false);
    // A second start, as in tests that share a process, keeps the first one's logging.
    let _ = tracing_subscriber::registry().with(lines).with(filter).try_init();
    panic::set_hook(Box::new(log_panic));
}

/// What is logged at a level.
fn filter(level: LevelFilter) -> Targets {
    Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target(env!("CARGO_CRATE_NAME"), level)
}

/// Logs where a panic happened. What it says may quote a request.
fn log_panic(panic: &PanicHookInfo<'_>) {
    tracing::error!(location = place_of(panic), "panic");
}

fn place_of(panic: &PanicHookInfo<'_>) -> String {
    panic.location().map(ToString::to_string).unwrap_or_default()
}

/// What it took to answer a request, or to run a job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResourceUsage {
    pub(crate) duration: Duration,
    pub(crate) usage: Usage,
    /// Whether it was the first of its process.
    pub(crate) is_cold_start: bool,
}

impl ResourceUsage {
    /// The figures of a line, with their units.
    fn metrics(&self) -> [Metric; 8] {
        let Usage { calls, read_units, write_units, cache_hits, cache_misses, .. } = self.usage;
        [
            ("Latency", "Milliseconds", json!(self.duration.as_secs_f64() * 1_000.0)),
            ("ColdStart", "Count", json!(u8::from(self.is_cold_start))),
            ("DynamoDbCalls", "Count", json!(calls)),
            ("DynamoDbRetries", "Count", json!(self.usage.retries())),
            ("ReadUnits", "Count", json!(read_units)),
            ("WriteUnits", "Count", json!(write_units)),
            ("CacheHits", "Count", json!(cache_hits)),
            ("CacheMisses", "Count", json!(cache_misses)),
        ]
    }
}

/// Logs one request and its answer. Problems of the service are errors, those of the caller are not.
pub(crate) fn log_request(
    incoming: &ApiRequest,
    answer: &ApiResponse,
    problem: Option<&Problem>,
    spent: &ResourceUsage,
    now: Timestamp,
) {
    let status = answer.status().as_u16();
    let members = [
        ("message", json!("request")),
        ("requestId", json!(incoming.request_id())),
        ("traceId", json!(incoming.trace_id())),
        (OPERATION, json!(incoming.operation())),
        ("method", json!(incoming.method().as_str())),
        ("status", json!(status)),
        ("code", json!(problem.map(|problem| problem.code().as_str()))),
        ("cause", json!(problem.and_then(Problem::cause))),
        ("keyId", json!(incoming.key_id())),
        ("projectId", json!(incoming.project_id())),
    ];
    let are_metrics = env::var(METRICS_VARIABLE).map_or(true, |setting| setting != "off");
    let is_in_sample = is_in_sample(incoming.request_id(), logged_successes());
    if let Some(RequestLine { level, spent_as, failed_as }) =
        RequestLine::of(status, is_in_sample, are_metrics)
    {
        let (spent, failed) = (spent.metrics(), [(SERVER_ERRORS, "Count", json!(1))]);
        let mut figures = vec![LogMetrics { metrics: &spent, dimensions: spent_as }];
        figures.extend(failed_as.map(|dimensions| LogMetrics { metrics: &failed, dimensions }));
        log(level, now, &members, &figures);
    }
    log_throttled_calls(incoming.operation(), spent, now);
}

/// How a request is logged, if it is.
#[derive(Debug, PartialEq, Eq)]
struct RequestLine {
    level: Level,
    /// The dimensions of the metrics that its figures are. Without any they are in the log alone.
    spent_as: &'static [&'static str],
    /// Those of the metric that counts it as a server error, which its alarm rests on.
    failed_as: Option<&'static [&'static str]>,
}

impl RequestLine {
    /// Only successes may be left out, and only figures may be no metrics: a server error always counts.
    fn of(status: u16, is_in_sample: bool, are_metrics: bool) -> Option<Self> {
        let is_failure = status >= 500;
        if status < 400 && !is_in_sample {
            return None;
        }
        Some(Self {
            level: if is_failure { COUNTED } else { Level::INFO },
            spent_as: if are_metrics { &[STACK] } else { &[] },
            failed_as: is_failure.then_some(&[STACK, OPERATION]),
        })
    }
}

/// How many of a hundred successes are logged.
fn logged_successes() -> u32 {
    let setting = env::var(LOGGED_SUCCESSES_VARIABLE).ok();
    setting.and_then(|setting| setting.parse().ok()).unwrap_or(100)
}

/// Whether a request is among those of a hundred that are logged. Its id decides, so that nothing is drawn
/// for each.
fn is_in_sample(request_id: &str, percent: u32) -> bool {
    crc32fast::hash(request_id.as_bytes()) % 100 < percent
}

/// Logs one run of a scheduled job. Its figures are no metrics: they would be mixed with those of
/// requests.
pub(crate) fn log_job(
    operation: &str,
    context: &lambda_runtime::Context,
    error: Option<&StoreError>,
    spent: &ResourceUsage,
    now: Timestamp,
) {
    let members = [
        ("message", json!("job")),
        ("requestId", json!(context.request_id)),
        ("traceId", json!(context.xray_trace_id.as_deref().and_then(root_of_trace))),
        (OPERATION, json!(operation)),
        ("cause", json!(error.map(ToString::to_string))),
    ];
    let level = if error.is_some() { Level::ERROR } else { Level::INFO };
    log(level, now, &members, &[LogMetrics { metrics: &spent.metrics(), dimensions: &[] }]);
    log_throttled_calls(operation, spent, now);
}

/// The metric that counts DynamoDB calls which were throttled after all retries.
const THROTTLED_CALLS: &str = "ThrottledCalls";

/// Logs and counts the throttled DynamoDB calls of a request or a run, if there were any.
fn log_throttled_calls(operation: &str, spent: &ResourceUsage, now: Timestamp) {
    if spent.usage.throttled > 0 {
        let members = [("message", json!("throttled by DynamoDB")), (OPERATION, json!(operation))];
        let metrics = &[(THROTTLED_CALLS, "Count", json!(spent.usage.throttled))];
        log(COUNTED, now, &members, &[LogMetrics { metrics, dimensions: &[STACK] }]);
    }
}

/// Logs a metric by itself.
pub fn log_metric(
    operation: &str,
    name: &'static str,
    unit: &'static str,
    value: f64,
    now: Timestamp,
) {
    let members = [("message", json!("metric")), (OPERATION, json!(operation))];
    let metrics = &[(name, unit, json!(value))];
    log(Level::INFO, now, &members, &[LogMetrics { metrics, dimensions: &[STACK, OPERATION] }]);
}

/// The name of the metric that counts items that were left out since they cannot be read.
pub const DAMAGED_ITEMS: &str = "DamagedItems";

/// The level of lines that alarms rest on: there is no `LogLevel` that leaves them out.
const COUNTED: Level = Level::ERROR;

/// Logs something that an alarm counts for the stack.
fn log_counted(metric: &'static str, members: &[Member], now: Timestamp) {
    let metrics = &[(metric, "Count", json!(1))];
    log(COUNTED, now, members, &[LogMetrics { metrics, dimensions: &[STACK] }]);
}

/// Logs an item that was left out, by its key, and counts it.
pub fn log_damaged_item(item: &DamagedItem) {
    log_counted(DAMAGED_ITEMS, &members_of(item), SystemTime::now().into());
}

/// The name of the metric that counts senders which had a request refused for a quota: once a minute for
/// each sandbox that refused some.
pub const SENDERS_OVER_QUOTA: &str = "SendersOverQuota";
/// The name of the metric that counts how often a project was found to have no room for further errors:
/// once a minute for each sandbox.
pub const ERRORS_AT_CAP: &str = "ErrorsAtCap";

/// The name of the metric that counts how often a function served flags that it could not read anew in
/// time: at most once a second for each thing that it remembers.
pub const STALE_FLAGS: &str = "StaleFlags";

/// Logs that flags which were the project's at some time are served, and why, and counts it.
pub fn log_stale_flags(project: ProjectId, as_of: Timestamp, cause: &str, now: Timestamp) {
    let members = [
        ("message", json!("stale flags")),
        ("projectId", json!(project)),
        ("asOf", json!(as_of)),
        ("cause", json!(cause)),
    ];
    log_counted(STALE_FLAGS, &members, now);
}

/// The name of the metric that counts how often a function read flags with more patterns than it remembers
/// compiled.
pub const PATTERNS_NOT_KEPT: &str = "PatternsNotKept";

/// Logs that a bound was met by somebody, named by what it is and its id, and counts it.
pub fn log_bound_met(metric: &'static str, by: &str, now: Timestamp) {
    log_counted(metric, &[("message", json!("bound met")), ("by", json!(by))], now);
}

fn members_of(item: &DamagedItem) -> [Member; 4] {
    [
        ("message", json!("damaged item")),
        ("table", json!(item.table)),
        ("key", json!(item.key)),
        ("attribute", json!(item.attribute)),
    ]
}

/// A member of a line.
type Member = (&'static str, Value);
/// A figure of a line: its name, its unit and its value.
type Metric = (&'static str, &'static str, Value);

/// Figures of a line; with dimensions they are metrics, too.
#[derive(Clone, Copy)]
struct LogMetrics<'f> {
    metrics: &'f [Metric],
    dimensions: &'f [&'static str],
}

#[allow(clippy::print_stdout)] // The line has a form that no logging library writes.
fn log(level: Level, now: Timestamp, members: &[Member], figures: &[LogMetrics<'_>]) {
    let is_logged = match level {
        Level::ERROR => tracing::enabled!(Level::ERROR),
        _ => tracing::enabled!(Level::INFO),
    };
    if is_logged {
        let stack = env::var(STACK_VARIABLE).unwrap_or_default();
        println!("{}", line(level, now, members, figures, &stack));
    }
}

/// A line of the log.
fn line(
    level: Level,
    now: Timestamp,
    members: &[Member],
    figures: &[LogMetrics<'_>],
    stack: &str,
) -> String {
    let mut all = vec![("timestamp", json!(now)), ("level", json!(level.as_str()))];
    all.extend(members.iter().filter(|(_, value)| !value.is_null()).cloned());
    let metrics = figures.iter().flat_map(|figures| figures.metrics);
    all.extend(metrics.map(|(name, _, value)| (*name, value.clone())));
    let directives: Vec<Value> = figures
        .iter()
        .filter(|figures| !figures.dimensions.is_empty())
        .map(|LogMetrics { metrics, dimensions }| {
            let described =
                metrics.iter().map(|(name, unit, _)| json!({"Name": name, "Unit": unit}));
            json!({
                "Namespace": NAMESPACE,
                "Dimensions": [dimensions],
                "Metrics": described.collect::<Vec<_>>(),
            })
        })
        .collect();
    if !directives.is_empty() {
        all.push((STACK, json!(stack)));
        all.push(("_aws", json!({"Timestamp": now.as_millis(), "CloudWatchMetrics": directives})));
    }
    // Members in the order in which people read them.
    let mut line = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut line);
    match serializer.collect_map(all) {
        Ok(()) => String::from_utf8_lossy(&line).into_owned(),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_millis(1_795_234_560_007)
    }

    fn spent() -> ResourceUsage {
        ResourceUsage {
            duration: Duration::from_micros(1_500),
            usage: Usage { calls: 2, read_units: 0.5, cache_hits: 3, ..Usage::default() },
            is_cold_start: true,
        }
    }

    #[test]
    fn a_line_begins_with_what_people_look_for_and_leaves_out_what_there_is_not() {
        let members = [("message", json!("request")), ("code", Value::Null)];
        let metrics = &[("Latency", "Milliseconds", json!(1.5))];
        let figures = [LogMetrics { metrics, dimensions: &[] }];
        let line = line(Level::INFO, now(), &members, &figures, "shop");
        assert_eq!(
            line,
            r#"{"timestamp":"2026-11-21T04:16:00.007Z","level":"INFO","message":"request","Latency":1.5}"#
        );
    }

    #[test]
    fn every_metric_is_described_and_a_number_and_every_dimension_a_text() {
        let members = [("operation", json!("split-insight"))];
        let metrics = &spent().metrics();
        let figures = [LogMetrics { metrics, dimensions: &[STACK, OPERATION] }];
        let line = line(Level::ERROR, now(), &members, &figures, "shop");
        let line: Value = serde_json::from_str(&line).unwrap();
        let description = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(line["_aws"]["Timestamp"], 1_795_234_560_007_i64);
        assert_eq!(description["Namespace"], "Waymark");
        for dimension in description["Dimensions"][0].as_array().unwrap() {
            assert!(line[dimension.as_str().unwrap()].is_string(), "{dimension}");
        }
        let metrics = description["Metrics"].as_array().unwrap();
        assert_eq!(metrics.len(), 8);
        for metric in metrics {
            assert!(line[metric["Name"].as_str().unwrap()].is_number(), "{metric}");
        }
        assert_eq!((&line["stack"], &line["level"]), (&json!("shop"), &json!("ERROR")));
        assert_eq!((&line["Latency"], &line["ColdStart"]), (&json!(1.5), &json!(1)));
        assert_eq!((&line["ReadUnits"], &line["CacheHits"]), (&json!(0.5), &json!(3)));
    }

    #[test]
    fn a_damaged_item_is_counted_for_the_stack_and_named() {
        let item =
            DamagedItem { table: "errors", key: "pk a, sk b".to_owned(), attribute: "title" };
        let metrics = &[(DAMAGED_ITEMS, "Count", json!(1))];
        let figures = [LogMetrics { metrics, dimensions: &[STACK] }];
        let line = line(Level::ERROR, now(), &members_of(&item), &figures, "shop");
        let line: Value = serde_json::from_str(&line).unwrap();
        let told = [&line["table"], &line["key"], &line["attribute"], &line["level"]];
        assert_eq!(told, ["errors", "pk a, sk b", "title", "ERROR"]);
        let described = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(described["Dimensions"], json!([["stack"]]));
        assert_eq!(described["Metrics"], json!([{"Name": "DamagedItems", "Unit": "Count"}]));
        assert_eq!(line["DamagedItems"], 1);
    }

    #[test]
    fn an_error_is_counted_for_its_operation_beside_the_figures_of_the_stack() {
        let (spent, failed) = (spent().metrics(), [(SERVER_ERRORS, "Count", json!(1))]);
        let figures = [
            LogMetrics { metrics: &spent, dimensions: &[] },
            LogMetrics { metrics: &failed, dimensions: &[STACK, OPERATION] },
        ];
        let members = [(OPERATION, json!("get-error"))];
        let line = line(Level::ERROR, now(), &members, &figures, "shop");
        let line: Value = serde_json::from_str(&line).unwrap();
        let directives = line["_aws"]["CloudWatchMetrics"].as_array().unwrap();
        assert_eq!(directives.len(), 1, "figures without dimensions are no metrics");
        assert_eq!(directives[0]["Dimensions"], json!([["stack", "operation"]]));
        assert_eq!(directives[0]["Metrics"], json!([{"Name": "ServerErrors", "Unit": "Count"}]));
        assert_eq!((&line["ServerErrors"], &line["Latency"]), (&json!(1), &json!(1.5)));
    }

    #[test]
    fn a_server_error_is_counted_whatever_is_left_out_of_the_log() {
        let line = |status, is_in_sample, are_metrics| {
            let line = RequestLine::of(status, is_in_sample, are_metrics)?;
            Some((line.level, line.spent_as, line.failed_as))
        };
        let (stack, none): (&[&str], &[&str]) = (&[STACK], &[]);
        let failed: &[&str] = &[STACK, OPERATION];
        for (status, is_in_sample, are_metrics, expected) in [
            (200, true, true, Some((Level::INFO, stack, None))),
            (200, true, false, Some((Level::INFO, none, None))),
            (304, false, true, None),
            (200, false, false, None),
            (404, false, true, Some((Level::INFO, stack, None))),
            (404, false, false, Some((Level::INFO, none, None))),
            (500, true, true, Some((Level::ERROR, stack, Some(failed)))),
            (503, false, true, Some((Level::ERROR, stack, Some(failed)))),
            (503, false, false, Some((Level::ERROR, none, Some(failed)))),
        ] {
            let settings = (status, is_in_sample, are_metrics);
            assert_eq!(line(status, is_in_sample, are_metrics), expected, "{settings:?}");
        }
        assert!(!is_in_sample("any-request", 0), "LoggedSuccesses=0 leaves out all successes");
    }

    #[test]
    fn what_alarms_count_is_logged_at_every_level() {
        for level in [LevelFilter::INFO, LevelFilter::WARN, LevelFilter::ERROR] {
            let filter = filter(level);
            assert!(filter.would_enable(env!("CARGO_CRATE_NAME"), &COUNTED), "{level}");
        }
        let requests = filter(LevelFilter::WARN);
        assert!(!requests.would_enable(env!("CARGO_CRATE_NAME"), &Level::INFO));
    }

    #[test]
    fn a_sample_of_successes_is_about_as_large_as_it_is_to_be() {
        let ids: Vec<String> = (0..10_000).map(|number| format!("request-{number}")).collect();
        let sampled = |percent| ids.iter().filter(|id| is_in_sample(id, percent)).count();
        assert_eq!((sampled(0), sampled(100)), (0, 10_000));
        assert!((900..1_100).contains(&sampled(10)), "{}", sampled(10));
    }

    /// docs/operations.md, "What it costs", counts with these sizes.
    #[test]
    fn a_line_of_a_request_has_as_many_bytes_as_the_guide_says() {
        let members = [
            ("message", json!("request")),
            ("requestId", json!("8f14e45f-ea2c-4c5b-9d51-5f1c2f0a1b2c")),
            ("traceId", json!("1-692138f0-0123456789abcdef01234567")),
            (OPERATION, json!("ingest-error-events")),
            ("method", json!("POST")),
            ("status", json!(200)),
            ("projectId", json!("019aa3c5-0000-7000-8000-000000000000")),
        ];
        let spent = ResourceUsage { duration: Duration::from_micros(8_123), ..spent() }.metrics();
        let bytes = |dimensions: &'static [&'static str]| {
            let figures = [LogMetrics { metrics: &spent, dimensions }];
            line(Level::INFO, now(), &members, &figures, "waymark").len()
        };
        let (with_metrics, without) = (bytes(&[STACK]), bytes(&[]));
        assert_eq!((with_metrics.div_ceil(10), without.div_ceil(10)), (87, 42));
    }

    #[test]
    fn a_panic_is_told_by_its_place_alone() {
        static TOLD: Mutex<String> = Mutex::new(String::new());
        panic::set_hook(Box::new(|panic| *TOLD.lock().unwrap() = place_of(panic)));
        let body = "é secret";
        assert!(panic::catch_unwind(|| body[..1].len()).is_err());
        let told = TOLD.lock().unwrap();
        assert!(told.contains("telemetry.rs:") && !told.contains("secret"), "{told}");
    }
}
