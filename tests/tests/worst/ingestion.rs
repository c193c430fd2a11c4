//! Events like those of SDKs, with a DSN key and without.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};

use errors::ingestion::{MAX_EVENT_BYTES, MAX_INFLATED_BYTES, MAX_WIRE_BYTES};
use tests::call::Call;
use tests::errors::{SentEvent, envelope, project};

use super::{Case, Expected, Fixture, Report};

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn zstd(body: &[u8]) -> Vec<u8> {
    ::zstd::bulk::compress(body, 1).unwrap()
}

/// Returns a payload with the maximum bytes of an event.
fn filled(fixture: &Fixture, fill: impl Fn(&mut Value, usize)) -> Value {
    let now = fixture.test.app.clock.now();
    let mut payload = SentEvent::new(1, now, "TypeError", "x").payload();
    let bytes = MAX_EVENT_BYTES - payload.to_string().len() - 100;
    fill(&mut payload, bytes);
    assert!(payload.to_string().len() <= MAX_EVENT_BYTES, "{}", payload.to_string().len());
    payload
}

/// Returns events with as much as possible of one thing.
fn payloads(fixture: &Fixture) -> Vec<(&'static str, Value)> {
    let fields = |bytes: usize| -> Map<String, Value> {
        (0..bytes / 10).map(|at| (format!("{at:05x}"), json!(0))).collect()
    };
    let frame = json!({"filename": "https://a.example/b-0123456789abcdef.js?c", "function": "f.<g>", "vars": {"a": "1"}});
    vec![
        (
            "fields",
            filled(fixture, |payload, bytes| {
                payload.as_object_mut().unwrap().extend(fields(bytes));
            }),
        ),
        ("contexts", filled(fixture, |payload, bytes| payload["contexts"] = fields(bytes).into())),
        ("extra", filled(fixture, |payload, bytes| payload["extra"] = fields(bytes).into())),
        ("tags", filled(fixture, |payload, bytes| payload["tags"] = fields(bytes).into())),
        (
            "small lists",
            filled(fixture, |payload, bytes| {
                payload["extra"] = json!({"a": vec![json!([]); bytes / 3 - 5]});
            }),
        ),
        (
            "frames",
            filled(fixture, |payload, bytes| {
                let frames = vec![frame.clone(); bytes / (frame.to_string().len() + 1) - 10];
                payload["exception"]["values"][0]["stacktrace"] = json!({ "frames": frames });
            }),
        ),
        (
            "exceptions",
            filled(fixture, |payload, bytes| {
                let one = json!({"type": "E", "value": "1"});
                let all = vec![one.clone(); bytes / (one.to_string().len() + 1) - 10];
                payload["exception"]["values"] = json!(all);
            }),
        ),
        (
            "breadcrumbs",
            filled(fixture, |payload, bytes| {
                let one = json!({"message": "https://user:secret@a.example/?token=1", "data": {"password": "x"}});
                let all = vec![one.clone(); bytes / (one.to_string().len() + 1) - 10];
                payload["breadcrumbs"] = json!(all);
            }),
        ),
        (
            "a long message",
            filled(fixture, |payload, bytes| {
                payload["exception"]["values"][0]["value"] = json!("1a-".repeat(bytes / 3));
            }),
        ),
        (
            "secrets",
            filled(fixture, |payload, bytes| {
                payload["extra"] = json!({"a": "4111 1111 1111 1111 ".repeat(bytes / 20 - 1)});
            }),
        ),
        (
            "urls",
            filled(fixture, |payload, bytes| {
                payload["request"] =
                    json!({"url": format!("https://a.example/?{}", "a=1&".repeat(bytes / 4 - 30))});
            }),
        ),
    ]
}

/// Slowest input of its size that fuzzing found: Brotli copies a few literals into 20 MiB.
const BROTLI_BOMB: &[u8] =
    b"\xcb\xff\xff\x3f\x00\x24\x40\xe2\xb1\x40\x72\xef\xff\xf8\xff\xff\x07\x80\x04\
    \x40\x1c\x16\x80\xee\xfd\x5f\x02\x00\x00\x01\x90\x00\x88\xc3\x02\xd8\xbd\xff\x01";

#[tokio::test]
async fn deliveries_cost_little() {
    let fixture = Fixture::start().await;
    let report = &mut Report::default();
    let dsn = project(&fixture.test.app.store, fixture.test.project_id).await;
    let to = |id: &str| fixture.bare(id).parameter("ingestId", dsn.ingest_id);
    let with_key = |call: Call| call.query("sentry_key", dsn.public_key);
    let payloads = payloads(&fixture);

    for id in ["ingest-error-events", "ingest-error-events-without-slash"] {
        let mut cases = Vec::new();
        let small = SentEvent::new(2, fixture.test.app.clock.now(), "TypeError", "x").payload();
        let padding = " ".repeat(MAX_INFLATED_BYTES - 1_000);
        let items = vec![("attachment", padding), ("event", small.to_string())];
        let large = envelope(&json!({}), &items).into_bytes();
        let lines = format!("{{}}\n{}", "\n".repeat(MAX_INFLATED_BYTES - 10)).into_bytes();
        let noise: Vec<u8> = (0..4_100_000_u64)
            .map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 37).to_le_bytes()[0])
            .collect();
        let noise = envelope_of_bytes(&noise);
        let repeat = |part: &[u8]| part.repeat(MAX_WIRE_BYTES / part.len());
        // The start of a stream, and empty metadata blocks.
        let metadata = [&[0b0000_1100_u8][..], &vec![0b0000_0110; MAX_WIRE_BYTES - 1]].concat();
        for (name, body, coding) in [
            ("20 MiB as gzip", gzip(&large), "gzip"),
            ("20 MiB as zstd", zstd(&large), "zstd"),
            ("20 MiB of lines", gzip(&lines), "gzip"),
            ("4 MB as it is", noise.clone(), "identity"),
            ("4 MB as gzip", gzip(&noise[..4_000_000]), "gzip"),
            ("a bomb", gzip(&vec![b' '; 60 << 20]), "gzip"),
            ("a bomb of 39 bytes", BROTLI_BOMB.to_vec(), "br"),
            ("empty gzip fields", repeat(&gzip(b"")), "gzip"),
            ("empty zstd frames", repeat(&zstd(b"")), "zstd"),
            ("empty brotli blocks", metadata, "br"),
            ("no valid encoding", vec![0xff; MAX_WIRE_BYTES], "br"),
        ] {
            let call = to(id).bytes(body).base64().header("content-encoding", coding);
            cases.push(Case::hostile(name, Expected::Anything, with_key(call.clone())));
            cases.push(Case::hostile(&format!("{name}, without a key"), Expected::Rejection, call));
        }
        if id == "ingest-error-events" {
            for (name, payload) in &payloads {
                let body = envelope(&json!({}), &[("event", payload.to_string())]);
                let call = with_key(to(id).bytes(gzip(body.as_bytes())).base64());
                cases.push(Case::of(name, 200, call.header("content-encoding", "gzip")));
            }
        }
        fixture.measure(id, cases, report).await;
    }
    for id in ["ingest-error-events-store", "ingest-error-events-store-without-slash"] {
        let cases: Vec<Case> = payloads
            .iter()
            .take(if id.ends_with("slash") { 1 } else { payloads.len() })
            .map(|(name, payload)| {
                let call = with_key(to(id).bytes(gzip(payload.to_string().as_bytes())).base64());
                Case::of(name, 200, call.header("content-encoding", "gzip"))
            })
            .collect();
        fixture.measure(id, cases, report).await;
    }
    report.finish("Ingestion");
}

/// Returns an envelope with an incompressible item.
fn envelope_of_bytes(bytes: &[u8]) -> Vec<u8> {
    let header = format!("{{}}\n{{\"type\":\"attachment\",\"length\":{}}}\n", bytes.len());
    [header.as_bytes(), bytes].concat()
}
