//! Structured logs and metrics: one JSON line per request or job on standard output, which Lambda
//! collects. The lines use CloudWatch's embedded metric format, which turns figures into metrics of
//! the namespace `Waymark`.
//!
//! A line contains the key id, but never the key, the body or the headers.

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

/// Environment variable with the name of the deployed stack, a dimension of all metrics; set by
/// `template.yaml`.
pub const STACK_VARIABLE: &str = "WAYMARK_STACK";
/// Environment variable: `off` keeps request figures in the log only. Metrics with alarms are
/// always recorded.
pub const METRICS_VARIABLE: &str = "WAYMARK_METRICS";

/// Environment variable with the percentage of successful requests to log, set by `template.yaml`.
/// All are logged if it is missing or not a number.
pub const LOGGED_SUCCESSES_VARIABLE: &str = "WAYMARK_LOGGED_SUCCESSES";

/// Metric of an operation's server errors. Successes have no metric, so an operation without errors
/// costs none.
pub const SERVER_ERRORS: &str = "ServerErrors";

/// Namespace of all metrics.
const NAMESPACE: &str = "Waymark";
/// Dimensions of metrics. Request figures have no operation dimension: AWS bills each metric per
/// operation, and already provides latencies of functions and routes.
const STACK: &str = "stack";
const OPERATION: &str = "operation";

/// Starts logging at the level of Lambda's logging configuration, `INFO` by default. Libraries log
/// warnings at most: their finer levels would show requests.
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
    // A second start keeps the first logging configuration, for example in tests that share a
    // process.
    let _ = tracing_subscriber::registry().with(lines).with(filter).try_init();
    panic::set_hook(Box::new(log_panic));
}

/// Returns the filter for a log level.
fn filter(level: LevelFilter) -> Targets {
    Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target(env!("CARGO_CRATE_NAME"), level)
}

/// Logs the location of a panic. Its message could quote a request.
fn log_panic(panic: &PanicHookInfo<'_>) {
    tracing::error!(location = location_of(panic), "panic");
}

fn location_of(panic: &PanicHookInfo<'_>) -> String {
    panic.location().map(ToString::to_string).unwrap_or_default()
}

/// Resource usage of a request or job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResourceUsage {
    pub(crate) duration: Duration,
    pub(crate) usage: Usage,
    /// `true` for the first request or job of its process.
    pub(crate) is_cold_start: bool,
}

impl ResourceUsage {
    /// Returns the figures of a line, with their units.
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

/// Logs a request and its response. Problems of the service are errors; problems of the caller are
/// not.
pub(crate) fn log_request(
    incoming: &ApiRequest,
    response: &ApiResponse,
    problem: Option<&Problem>,
    spent: &ResourceUsage,
    now: Timestamp,
) {
    let status = response.status().as_u16();
    let fields = [
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
        log(level, now, &fields, &figures);
    }
    log_throttled_calls(incoming.operation(), spent, now);
}

/// Level and metrics of a request's log line.
#[derive(Debug, PartialEq, Eq)]
struct RequestLine {
    level: Level,
    /// Dimensions of the request figures. Without dimensions, the figures are only logged.
    spent_as: &'static [&'static str],
    /// Dimensions of the server error metric, which has an alarm.
    failed_as: Option<&'static [&'static str]>,
}

impl RequestLine {
    /// Returns `None` only for successes outside the sample. A server error always counts.
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

/// Returns the percentage of successes to log.
fn logged_successes() -> u32 {
    let setting = env::var(LOGGED_SUCCESSES_VARIABLE).ok();
    setting.and_then(|setting| setting.parse().ok()).unwrap_or(100)
}

/// Returns `true` if the request is in the sample. The request id decides, so no random number is
/// needed.
fn is_in_sample(request_id: &str, percent: u32) -> bool {
    crc32fast::hash(request_id.as_bytes()) % 100 < percent
}

/// Logs one invocation of a scheduled job. Its figures are only logged: as metrics, they would mix
/// with those of requests.
pub(crate) fn log_job(
    operation: &str,
    context: &lambda_runtime::Context,
    error: Option<&StoreError>,
    spent: &ResourceUsage,
    now: Timestamp,
) {
    let fields = [
        ("message", json!("job")),
        ("requestId", json!(context.request_id)),
        ("traceId", json!(context.xray_trace_id.as_deref().and_then(root_of_trace))),
        (OPERATION, json!(operation)),
        ("cause", json!(error.map(ToString::to_string))),
    ];
    let level = if error.is_some() { Level::ERROR } else { Level::INFO };
    log(level, now, &fields, &[LogMetrics { metrics: &spent.metrics(), dimensions: &[] }]);
    log_throttled_calls(operation, spent, now);
}

/// Metric of DynamoDB calls that were still throttled after all retries.
const THROTTLED_CALLS: &str = "ThrottledCalls";

/// Logs and counts the throttled DynamoDB calls of a request or job, if any.
fn log_throttled_calls(operation: &str, spent: &ResourceUsage, now: Timestamp) {
    if spent.usage.throttled > 0 {
        let fields = [("message", json!("throttled by DynamoDB")), (OPERATION, json!(operation))];
        let metrics = &[(THROTTLED_CALLS, "Count", json!(spent.usage.throttled))];
        log(COUNTED, now, &fields, &[LogMetrics { metrics, dimensions: &[STACK] }]);
    }
}

/// Logs a single metric.
pub fn log_metric(
    operation: &str,
    name: &'static str,
    unit: &'static str,
    value: f64,
    now: Timestamp,
) {
    let fields = [("message", json!("metric")), (OPERATION, json!(operation))];
    let metrics = &[(name, unit, json!(value))];
    log(Level::INFO, now, &fields, &[LogMetrics { metrics, dimensions: &[STACK, OPERATION] }]);
}

/// Logs a count of a job, unless it is zero: CloudWatch bills a metric for each hour with a value.
pub fn log_count(operation: &str, name: &'static str, count: f64, now: Timestamp) {
    if count > 0.0 {
        log_metric(operation, name, "Count", count, now);
    }
}

/// Metric of unreadable items that were skipped.
pub const DAMAGED_ITEMS: &str = "DamagedItems";

/// Level of the lines with alarm metrics: every `LogLevel` includes it.
const COUNTED: Level = Level::ERROR;

/// Logs an event and counts it in a metric of the stack, which has an alarm.
fn log_counted(metric: &'static str, fields: &[Field], now: Timestamp) {
    let metrics = &[(metric, "Count", json!(1))];
    log(COUNTED, now, fields, &[LogMetrics { metrics, dimensions: &[STACK] }]);
}

/// Logs a skipped item by its key and counts it.
pub fn log_damaged_item(item: &DamagedItem) {
    log_counted(DAMAGED_ITEMS, &fields_of(item), SystemTime::now().into());
}

/// Metric of senders over their quota. Counted once per sender, minute and execution environment.
pub const SENDERS_OVER_QUOTA: &str = "SendersOverQuota";
/// Metric of projects that reached their error limit. Counted once per project, minute and
/// execution environment.
pub const ERRORS_AT_CAP: &str = "ErrorsAtCap";

/// Metric of reads that returned stale flags because current flags were not available in time.
pub const STALE_FLAGS: &str = "StaleFlags";

/// Logs and counts that stale flags of a project were served, with their age and the reason.
pub fn log_stale_flags(project: ProjectId, as_of: Timestamp, cause: &str, now: Timestamp) {
    let fields = [
        ("message", json!("stale flags")),
        ("projectId", json!(project)),
        ("asOf", json!(as_of)),
        ("cause", json!(cause)),
    ];
    log_counted(STALE_FLAGS, &fields, now);
}

/// Metric of flag reads with more patterns than the cache of compiled patterns holds.
pub const PATTERNS_NOT_CACHED: &str = "PatternsNotCached";

/// Logs and counts that a limit was reached. `by` is the kind and id of the sender or project.
pub fn log_bound_met(metric: &'static str, by: &str, now: Timestamp) {
    log_counted(metric, &[("message", json!("bound met")), ("by", json!(by))], now);
}

/// Metric of replay segments and feedback items without a usable content.
pub const MALFORMED_RECORDINGS: &str = "MalformedRecordings";

/// Logs and counts an item of a delivery that was dropped. `by` is the kind and ID of the sender.
pub fn log_malformed_recording(reason: &str, by: &str, now: Timestamp) {
    let fields = [("message", json!(reason)), ("by", json!(by))];
    log_counted(MALFORMED_RECORDINGS, &fields, now);
}

fn fields_of(item: &DamagedItem) -> [Field; 4] {
    [
        ("message", json!("damaged item")),
        ("table", json!(item.table)),
        ("key", json!(item.key)),
        ("attribute", json!(item.attribute)),
    ]
}

/// A field of a line.
type Field = (&'static str, Value);
/// A figure of a line: name, unit and value.
type Metric = (&'static str, &'static str, Value);

/// Figures of a line. With dimensions, they are also metrics.
#[derive(Clone, Copy)]
struct LogMetrics<'f> {
    metrics: &'f [Metric],
    dimensions: &'f [&'static str],
}

#[allow(clippy::print_stdout)] // No logging library writes this format.
fn log(level: Level, now: Timestamp, fields: &[Field], figures: &[LogMetrics<'_>]) {
    let is_logged = match level {
        Level::ERROR => tracing::enabled!(Level::ERROR),
        _ => tracing::enabled!(Level::INFO),
    };
    if is_logged {
        let stack = env::var(STACK_VARIABLE).unwrap_or_default();
        println!("{}", line(level, now, fields, figures, &stack));
    }
}

/// Returns a line of the log.
fn line(
    level: Level,
    now: Timestamp,
    fields: &[Field],
    figures: &[LogMetrics<'_>],
    stack: &str,
) -> String {
    let mut all = vec![("timestamp", json!(now)), ("level", json!(level.as_str()))];
    all.extend(fields.iter().filter(|(_, value)| !value.is_null()).cloned());
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
    // Fields keep the order in which people read them.
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
    fn lines_start_with_key_fields_and_omit_nulls() {
        let fields = [("message", json!("request")), ("code", Value::Null)];
        let metrics = &[("Latency", "Milliseconds", json!(1.5))];
        let figures = [LogMetrics { metrics, dimensions: &[] }];
        let line = line(Level::INFO, now(), &fields, &figures, "shop");
        assert_eq!(
            line,
            r#"{"timestamp":"2026-11-21T04:16:00.007Z","level":"INFO","message":"request","Latency":1.5}"#
        );
    }

    #[test]
    fn metrics_are_numbers_and_dimensions_are_texts() {
        let fields = [("operation", json!("split-insight"))];
        let metrics = &spent().metrics();
        let figures = [LogMetrics { metrics, dimensions: &[STACK, OPERATION] }];
        let line = line(Level::ERROR, now(), &fields, &figures, "shop");
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
    fn damaged_items_are_counted_and_named() {
        let item =
            DamagedItem { table: "errors", key: "pk a, sk b".to_owned(), attribute: "title" };
        let metrics = &[(DAMAGED_ITEMS, "Count", json!(1))];
        let figures = [LogMetrics { metrics, dimensions: &[STACK] }];
        let line = line(Level::ERROR, now(), &fields_of(&item), &figures, "shop");
        let line: Value = serde_json::from_str(&line).unwrap();
        let logged = [&line["table"], &line["key"], &line["attribute"], &line["level"]];
        assert_eq!(logged, ["errors", "pk a, sk b", "title", "ERROR"]);
        let described = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(described["Dimensions"], json!([["stack"]]));
        assert_eq!(described["Metrics"], json!([{"Name": "DamagedItems", "Unit": "Count"}]));
        assert_eq!(line["DamagedItems"], 1);
    }

    #[test]
    fn server_errors_are_counted_by_operation() {
        let (spent, failed) = (spent().metrics(), [(SERVER_ERRORS, "Count", json!(1))]);
        let figures = [
            LogMetrics { metrics: &spent, dimensions: &[] },
            LogMetrics { metrics: &failed, dimensions: &[STACK, OPERATION] },
        ];
        let fields = [(OPERATION, json!("get-error"))];
        let line = line(Level::ERROR, now(), &fields, &figures, "shop");
        let line: Value = serde_json::from_str(&line).unwrap();
        let directives = line["_aws"]["CloudWatchMetrics"].as_array().unwrap();
        assert_eq!(directives.len(), 1, "figures without dimensions are not metrics");
        assert_eq!(directives[0]["Dimensions"], json!([["stack", "operation"]]));
        assert_eq!(directives[0]["Metrics"], json!([{"Name": "ServerErrors", "Unit": "Count"}]));
        assert_eq!((&line["ServerErrors"], &line["Latency"]), (&json!(1), &json!(1.5)));
    }

    #[test]
    fn server_errors_are_always_counted() {
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
    fn alarm_lines_are_logged_at_every_level() {
        for level in [LevelFilter::INFO, LevelFilter::WARN, LevelFilter::ERROR] {
            let filter = filter(level);
            assert!(filter.would_enable(env!("CARGO_CRATE_NAME"), &COUNTED), "{level}");
        }
        let requests = filter(LevelFilter::WARN);
        assert!(!requests.would_enable(env!("CARGO_CRATE_NAME"), &Level::INFO));
    }

    #[test]
    fn samples_match_their_percentage() {
        let ids: Vec<String> = (0..10_000).map(|number| format!("request-{number}")).collect();
        let sampled = |percent| ids.iter().filter(|id| is_in_sample(id, percent)).count();
        assert_eq!((sampled(0), sampled(100)), (0, 10_000));
        assert!((900..1_100).contains(&sampled(10)), "{}", sampled(10));
    }

    /// docs/capacity.md, "Logs, metrics and traces", uses these sizes.
    #[test]
    fn request_lines_have_the_documented_size() {
        let fields = [
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
            line(Level::INFO, now(), &fields, &figures, "waymark").len()
        };
        let (with_metrics, without) = (bytes(&[STACK]), bytes(&[]));
        assert_eq!((with_metrics.div_ceil(10), without.div_ceil(10)), (87, 42));
    }

    #[test]
    fn panics_are_logged_by_location_only() {
        static LOCATION: Mutex<String> = Mutex::new(String::new());
        panic::set_hook(Box::new(|panic| *LOCATION.lock().unwrap() = location_of(panic)));
        let body = "é secret";
        assert!(panic::catch_unwind(|| body[..1].len()).is_err());
        let logged = LOCATION.lock().unwrap();
        assert!(logged.contains("telemetry.rs:") && !logged.contains("secret"), "{logged}");
    }
}
