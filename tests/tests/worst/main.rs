//! CPU time and memory of the most expensive requests that each operation's limits allow, also
//! before authentication. `make worst` checks optimized builds (except for LTO) with limits of 250
//! ms and 128 MB. Debug builds have a higher time limit and the same memory limit.
//!
//! The time is that of the thread that parses the event, handles it and calls DynamoDB. The engine
//! has its own threads, but its Rust memory is included. C memory of zstd is not; its window is at
//! most 8 MiB.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod errors;
mod flags;
mod hostile;
mod ingestion;
mod insights;
mod markers;
mod others;
mod people;
mod source_maps;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use lambda_http::Body;
use peak_alloc::PeakAlloc;
use serde_json::Value;
use shared::app::{App, Clock, Ids};
use shared::http::CursorKey;
use tests::app::{START, TEST_TIMEOUT, TestApp};
use tests::call::{Call, Reply};
use tests::operation_specs::{OPERATION_SPECS, OperationSpec, operation_of};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Maximum CPU time of a request in optimized builds.
const MAX_CPU: Duration = Duration::from_millis(250);
/// Maximum CPU time in debug builds, where most requests take less than a tenth of it.
const MAX_CPU_UNOPTIMIZED: Duration = Duration::from_secs(3);
/// Maximum memory of a request in bytes, including its event.
const MAX_BYTES: usize = 128_000_000;
/// Attempts of a request, because other load on its core can slow it down.
const MAX_ATTEMPTS: usize = 3;

/// The expected response.
#[derive(Clone, Copy)]
enum Expected {
    Status(u16),
    /// A rejection.
    Rejection,
    /// No server error.
    Anything,
}

/// A request and its expected response.
struct Case {
    name: String,
    call: Call,
    expected: Expected,
    /// `true` if it can be sent again with the same result.
    repeats: bool,
}

impl Case {
    /// Returns a successful request that can be repeated.
    fn of(name: &str, status: u16, call: Call) -> Self {
        Self { name: name.to_owned(), call, expected: Expected::Status(status), repeats: true }
    }

    /// Returns a request that changes the result of the next one.
    fn once(name: &str, status: u16, call: Call) -> Self {
        Self { repeats: false, ..Self::of(name, status, call) }
    }

    /// Returns a request with input that no operation expects.
    fn hostile(name: &str, expected: Expected, call: Call) -> Self {
        Self { name: name.to_owned(), call, expected, repeats: true }
    }
}

/// An app with a project that is as full as its limits allow, or large enough.
struct Fixture {
    test: TestApp,
    /// The measured app, without the recording of tests.
    app: App,
}

impl Fixture {
    async fn start() -> Self {
        let test = TestApp::start().await;
        // Long timeouts, because a busy machine must not end a request: only CPU time is measured.
        let app = App::new(test.patient_store(), Clock::Fixed(START.into()), Ids::Random);
        let app = app.with_time_budget(TEST_TIMEOUT);
        let app = app.with_cursor_key(Some(CursorKey::new("what the tests sign cursors with")));
        Self { test, app }
    }

    /// Returns a call of an operation in the project, with the key.
    fn call(&self, id: &str) -> Call {
        self.bare(id).key(&self.test.key)
    }

    /// Returns the call without a key.
    fn bare(&self, id: &str) -> Call {
        let described = operation_of(id);
        let call = described.call();
        if described.path.contains("{idOrSlug}") {
            return call.parameter("idOrSlug", self.test.project_id);
        }
        call
    }

    /// Sends a preparatory request that must succeed.
    async fn make(&self, call: Call) -> Reply {
        let id = call.id();
        let reply = call.send(&self.test.app).await;
        assert!(reply.status < 300, "{id}: {}", reply.text);
        reply
    }

    /// Measures an operation's own cases, and the hostile ones.
    async fn measure(&self, id: &str, cases: Vec<Case>, report: &mut Report) {
        assert!(report.operations.insert(id.to_owned()), "{id} was measured");
        let described = operation_of(id);
        // Existing resources take a request further than missing ones.
        let found =
            cases.first().map(|case| case.call.clone().bare()).expect("the operation has a case");
        let hostile = hostile::cases(self, described, &found).into_iter();
        for case in hostile.chain(cases) {
            self.measure_case(id, &case, report).await;
        }
    }

    async fn measure_case(&self, id: &str, case: &Case, report: &mut Report) {
        let name = &case.name;
        let mut least = ResourceUsage { cpu: Duration::MAX, bytes: usize::MAX };
        for attempt in 1..=MAX_ATTEMPTS {
            let (status, body, spent) = self.spend(&case.call).await;
            // If the machine stalls longer than a request's budget, any request gets 503.
            if status == 503 && attempt < MAX_ATTEMPTS {
                continue;
            }
            match case.expected {
                Expected::Status(expected) => {
                    assert_eq!(status, expected, "{id}: {name}: {body}");
                }
                Expected::Rejection => {
                    assert!((400..500).contains(&status), "{id}: {name}: {body}");
                }
                Expected::Anything => assert!(status < 500, "{id}: {name}: {body}"),
            }
            least.cpu = least.cpu.min(spent.cpu);
            least.bytes = least.bytes.min(spent.bytes);
            if !case.repeats || least.cpu <= max_cpu() {
                break;
            }
        }
        report.note(id, name, least);
    }

    /// Sends a request in the runtime's form. Returns its status, the start of the response, and
    /// the used resources.
    async fn spend(&self, call: &Call) -> (u16, String, ResourceUsage) {
        let event = call.event().to_string();
        let held = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let (response, cpu) = call.timed(&self.app, &event).await;
        let bytes = event.len() + MEMORY.peak_usage().saturating_sub(held);
        let body = match response.body() {
            Body::Text(text) => text.chars().take(300).collect(),
            _ => String::new(),
        };
        (response.status().as_u16(), body, ResourceUsage { cpu, bytes })
    }
}

fn max_cpu() -> Duration {
    if cfg!(debug_assertions) { MAX_CPU_UNOPTIMIZED } else { MAX_CPU }
}

/// Resources used by a request.
#[derive(Clone, Copy)]
struct ResourceUsage {
    cpu: Duration,
    bytes: usize,
}

/// Resources used by all requests.
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
        if cpu > max_cpu() || bytes > MAX_BYTES {
            self.beyond.push(line.clone());
        }
        self.lines.push((cpu, line));
    }

    /// Panics unless all operations of an area were measured and within the limits.
    fn finish(&mut self, name: &str) {
        self.lines.sort();
        let lines = self.lines.iter().fold(String::new(), |mut text, (_, line)| {
            let _ = writeln!(text, "{line}");
            text
        });
        println!("{lines}");
        let of_area = OPERATION_SPECS.iter().filter(|described| area(described) == name);
        let expected: BTreeSet<String> = of_area.map(|described| described.id.to_owned()).collect();
        assert_eq!(self.operations, expected, "an operation of the area was not measured");
        let beyond = self.beyond.join("\n");
        assert!(beyond.is_empty(), "more than {:?} or {MAX_BYTES} bytes:\n{beyond}", max_cpu());
    }
}

/// Returns the area of the test that measures an operation: its tag in `openapi.yaml`, or one for
/// several tags.
fn area(described: &OperationSpec) -> &'static str {
    match (described.tag, described.id) {
        ("Errors", id) if id.starts_with("ingest-") => "Ingestion",
        ("Projects", "get-caller" | "list-projects") | ("Notifications" | "Console", _) => "Others",
        ("Projects", _) => "People",
        (tag, _) => tag,
    }
}

#[test]
fn every_operation_has_an_area_with_a_test() {
    let areas: BTreeSet<&str> = OPERATION_SPECS.iter().map(area).collect();
    let tested = [
        "Errors",
        "Event markers",
        "Feature flags",
        "Ingestion",
        "Others",
        "People",
        "Replay insights",
        "Source maps",
    ];
    assert_eq!(areas, tested.into());
}

/// Returns JSON with `bytes` bytes, padded with white space.
fn padded(value: &Value, bytes: usize) -> Vec<u8> {
    let mut text = value.to_string().into_bytes();
    assert!(text.len() <= bytes, "{} bytes", text.len());
    text.resize(bytes, b' ');
    text
}
