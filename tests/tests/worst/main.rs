//! The most expensive requests that the limits of each operation allow, also before anybody is let in: how
//! much CPU time and memory each takes. `make worst` has them all within 250 ms and 128 MB, optimized as
//! functions are but for LTO; here, without optimization, time has a bound of its own, and memory the same.
//!
//! Time is that of the thread which reads the event, answers it and speaks with DynamoDB. The engine has
//! threads of its own, but no memory of its own: what it holds in Rust counts as the function's. What zstd
//! allocates in C does not; its window has at most 8 MiB.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod errors;
mod flags;
mod hostile;
mod ingestion;
mod insights;
mod markers;
mod others;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use lambda_http::Body;
use peak_alloc::PeakAlloc;
use serde_json::Value;
use shared::app::{App, Clock, Ids};
use shared::http::CursorKey;
use tests::app::{PATIENCE, START, TestApp};
use tests::call::{Call, Reply};
use tests::operation_specs::{OPERATION_SPECS, operation_of};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The most CPU time of a request, optimized.
const MOST_CPU: Duration = Duration::from_millis(250);
/// The most CPU time without optimization, where most requests take less than a tenth of it.
const MOST_CPU_UNOPTIMIZED: Duration = Duration::from_secs(3);
/// The most memory of a request, its event included.
const MOST_BYTES: usize = 128_000_000;
/// How often a request may be tried: beside others on its core, one takes longer.
const TRIES: usize = 3;

/// How a request is to be answered.
#[derive(Clone, Copy)]
enum Expected {
    Status(u16),
    /// With a refusal.
    Refusal,
    /// By no server error.
    Anything,
}

/// A request, and how it is to be answered.
struct Case {
    name: String,
    call: Call,
    expected: Expected,
    /// Whether it can be sent again and does the same.
    repeats: bool,
}

impl Case {
    /// A request that is carried out, and does the same when it is sent again.
    fn of(name: &str, status: u16, call: Call) -> Self {
        Self { name: name.to_owned(), call, expected: Expected::Status(status), repeats: true }
    }

    /// A request that changes what the next one finds.
    fn once(name: &str, status: u16, call: Call) -> Self {
        Self { repeats: false, ..Self::of(name, status, call) }
    }

    /// A request that brings what no operation asks for.
    fn hostile(name: &str, expected: Expected, call: Call) -> Self {
        Self { name: name.to_owned(), call, expected, repeats: true }
    }
}

/// An app with a project that is as full as its limits allow, or as makes no difference.
struct Visibility {
    test: TestApp,
    /// What is measured: without what tests note of each request.
    app: App,
}

impl Visibility {
    async fn start() -> Self {
        let test = TestApp::start().await;
        // A busy machine must not end a request: its CPU time is what counts.
        let app = App::new(test.patient_store(), Clock::Fixed(START.into()), Ids::Random);
        let app = app.with_time_budget(PATIENCE);
        let app = app.with_cursor_key(Some(CursorKey::new("what the tests sign cursors with")));
        Self { test, app }
    }

    /// A call of an operation of `openapi.yaml` in the project, with the key.
    fn call(&self, id: &str) -> Call {
        self.bare(id).key(&self.test.key)
    }

    /// The same without a key.
    fn bare(&self, id: &str) -> Call {
        let described = operation_of(id);
        let call = described.call();
        if described.path.contains("{idOrSlug}") {
            return call.parameter("idOrSlug", self.test.project_id);
        }
        call
    }

    /// Has a request carried out that a measured one needs.
    async fn make(&self, call: Call) -> Reply {
        let id = call.id();
        let reply = call.send(&self.test.app).await;
        assert!(reply.status < 300, "{id}: {}", reply.text);
        reply
    }

    /// Sends what was put together for an operation, and what anybody can send to any.
    async fn measure(&self, id: &str, cases: Vec<Case>, report: &mut Report) {
        assert!(report.operations.insert(id.to_owned()), "{id} was measured");
        let described = operation_of(id);
        // What can be found takes a request further than what cannot.
        let found = cases.first().map(|case| case.call.clone().bare()).expect("it has a case");
        let hostile = hostile::cases(self, described, &found).into_iter();
        for case in hostile.chain(cases) {
            self.measure_case(id, &case, report).await;
        }
    }

    async fn measure_case(&self, id: &str, case: &Case, report: &mut Report) {
        let name = &case.name;
        let mut least = ResourceUsage { cpu: Duration::MAX, bytes: usize::MAX };
        for attempt in 1..=TRIES {
            let (status, said, spent) = self.spend(&case.call).await;
            // A machine that stands still for longer than a request has answers so whatever is asked.
            if status == 503 && attempt < TRIES {
                continue;
            }
            match case.expected {
                Expected::Status(expected) => assert_eq!(status, expected, "{id}: {name}: {said}"),
                Expected::Refusal => {
                    assert!((400..500).contains(&status), "{id}: {name}: {said}");
                }
                Expected::Anything => assert!(status < 500, "{id}: {name}: {said}"),
            }
            least.cpu = least.cpu.min(spent.cpu);
            least.bytes = least.bytes.min(spent.bytes);
            if !case.repeats || least.cpu <= most_cpu() {
                break;
            }
        }
        report.note(id, name, least);
    }

    /// Sends a request as the runtime hands it over: its status, the start of what is answered, and what it took.
    async fn spend(&self, call: &Call) -> (u16, String, ResourceUsage) {
        let event = call.event().to_string();
        let held = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let (response, cpu) = call.timed(&self.app, &event).await;
        let bytes = event.len() + MEMORY.peak_usage().saturating_sub(held);
        let said = match response.body() {
            Body::Text(text) => text.chars().take(300).collect(),
            _ => String::new(),
        };
        (response.status().as_u16(), said, ResourceUsage { cpu, bytes })
    }
}

fn most_cpu() -> Duration {
    if cfg!(debug_assertions) { MOST_CPU_UNOPTIMIZED } else { MOST_CPU }
}

/// What a request took.
#[derive(Clone, Copy)]
struct ResourceUsage {
    cpu: Duration,
    bytes: usize,
}

/// What all requests took.
#[derive(Default)]
struct Report {
    operations: BTreeSet<String>,
    lines: Vec<(Duration, String)>,
    beyond: Vec<String>,
}

impl Report {
    fn note(&mut self, id: &str, name: &str, spent: ResourceUsage) {
        let ResourceUsage { cpu, bytes } = spent;
        let megabytes = bytes.div_ceil(1_000_000);
        let line = format!("{:>6} ms {megabytes:>4} MB  {id}: {name}", cpu.as_millis());
        if cpu > most_cpu() || bytes > MOST_BYTES {
            self.beyond.push(line.clone());
        }
        self.lines.push((cpu, line));
    }

    /// Panics unless these operations were measured, and all that they took was within the bounds.
    fn finish(&mut self, field: Field) {
        self.lines.sort();
        let lines = self.lines.iter().fold(String::new(), |mut text, (_, line)| {
            let _ = writeln!(text, "{line}");
            text
        });
        println!("{lines}");
        let expected: BTreeSet<String> =
            TABLE.iter().filter(|row| row.1 == field).map(|row| row.0.to_owned()).collect();
        assert_eq!(self.operations, expected, "each operation of the field is measured");
        let beyond = self.beyond.join("\n");
        assert!(beyond.is_empty(), "more than {:?} or {MOST_BYTES} bytes:\n{beyond}", most_cpu());
    }
}

/// Which test measures an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Errors,
    Flags,
    Ingestion,
    Insights,
    Markers,
    Others,
}

/// Every operation of `openapi.yaml`, and which test measures it.
const TABLE: [(&str, Field); 56] = [
    ("add-event-markers", Field::Markers),
    ("add-pain-points", Field::Insights),
    ("breakdown-errors", Field::Errors),
    ("confirm-email-address", Field::Others),
    ("confirm-email-address-page", Field::Others),
    ("create-event-marker-collection", Field::Markers),
    ("create-feature-flag", Field::Flags),
    ("create-insight", Field::Insights),
    ("create-segment", Field::Flags),
    ("delete-error", Field::Errors),
    ("delete-event-marker-collection", Field::Markers),
    ("delete-feature-flag", Field::Flags),
    ("delete-segment", Field::Flags),
    ("evaluate-feature-flag", Field::Flags),
    ("evaluate-feature-flags", Field::Flags),
    ("evaluate-feature-flags-with-slash", Field::Flags),
    ("exchange-console-code", Field::Others),
    ("get-caller", Field::Others),
    ("get-email-preferences", Field::Others),
    ("get-email-address", Field::Others),
    ("get-error", Field::Errors),
    ("get-event-marker-collection", Field::Markers),
    ("get-feature-flag", Field::Flags),
    ("get-flagd-configuration", Field::Flags),
    ("get-insight", Field::Insights),
    ("get-segment", Field::Flags),
    ("ingest-error-events", Field::Ingestion),
    ("ingest-error-events-store", Field::Ingestion),
    ("ingest-error-events-store-without-slash", Field::Ingestion),
    ("ingest-error-events-without-slash", Field::Ingestion),
    ("interpret-error-filters", Field::Errors),
    ("list-error-categories", Field::Errors),
    ("list-error-events", Field::Errors),
    ("list-errors", Field::Errors),
    ("list-event-marker-collections", Field::Markers),
    ("list-event-markers", Field::Markers),
    ("list-feature-flags", Field::Flags),
    ("list-flag-changes", Field::Flags),
    ("list-insights", Field::Insights),
    ("list-pain-points", Field::Insights),
    ("list-projects", Field::Others),
    ("list-segments", Field::Flags),
    ("merge-insights", Field::Insights),
    ("query-error-timeseries", Field::Errors),
    ("query-errors", Field::Errors),
    ("serve-console", Field::Others),
    ("serve-console-file", Field::Others),
    ("set-email-address", Field::Others),
    ("split-insight", Field::Insights),
    ("unsubscribe", Field::Others),
    ("unsubscribe-page", Field::Others),
    ("update-email-preferences", Field::Others),
    ("update-error", Field::Errors),
    ("update-feature-flag", Field::Flags),
    ("update-insight", Field::Insights),
    ("update-segment", Field::Flags),
];

#[test]
fn no_operation_is_missing() {
    let listed: BTreeSet<&str> = TABLE.iter().map(|row| row.0).collect();
    let described: BTreeSet<&str> = OPERATION_SPECS.iter().map(|it| it.id).collect();
    assert_eq!(listed, described);
}

/// JSON of so many bytes, by white space.
fn padded(value: &Value, bytes: usize) -> Vec<u8> {
    let mut text = value.to_string().into_bytes();
    assert!(text.len() <= bytes, "{} bytes", text.len());
    text.resize(bytes, b' ');
    text
}
