//! Whole deliveries: bodies that official SDKs sent (sentry-sdk 2.75.0, @sentry/node 10.78.0; paths
//! and host names replaced), and properties of every event.

use proptest::prelude::*;

use shared::json::Json;
use shared::timestamp::Timestamp;

use super::testing::{normalize_envelope, normalize_store_body};
use super::{
    CredentialSources, Envelope, IngestionFault, MAX_EVENT_BYTES, MAX_PAYLOAD_BYTES,
    NormalizedEvent, describe_stored_event, inflate,
};
use crate::attribute::Attribute;

const PYTHON_CHAINED: &[u8] = include_bytes!("../testdata/python-chained-exception.envelope");
const PYTHON_CHAINED_BROTLI: &[u8] =
    include_bytes!("../testdata/python-chained-exception.envelope.br");
const PYTHON_LOGGED: &[u8] = include_bytes!("../testdata/python-logged-message.envelope");
const PYTHON_FINGERPRINT: &[u8] = include_bytes!("../testdata/python-client-fingerprint.envelope");
const PYTHON_UNHANDLED: &[u8] = include_bytes!("../testdata/python-unhandled.envelope");
const NODE_CHAINED: &[u8] = include_bytes!("../testdata/node-chained-exception.envelope");
const NODE_MESSAGE: &[u8] = include_bytes!("../testdata/node-message.envelope");
const NODE_UNHANDLED: &[u8] = include_bytes!("../testdata/node-unhandled.envelope");
const NODE_SESSION: &[u8] = include_bytes!("../testdata/node-session.envelope");

/// Returns a time one minute after the fixtures were sent.
fn received_at() -> Timestamp {
    Timestamp::parse_rfc3339("2026-11-21T11:01:00Z").unwrap()
}

fn delivered(body: &[u8]) -> NormalizedEvent {
    let envelope = Envelope::parse(body).unwrap();
    normalize_envelope(&envelope, received_at()).unwrap().unwrap()
}

fn stored(event: &str) -> NormalizedEvent {
    normalize_store_body(event.as_bytes(), received_at()).unwrap().unwrap()
}

fn payload(event: &NormalizedEvent) -> String {
    String::from_utf8(event.payload.clone()).unwrap()
}

fn attribute(event: &NormalizedEvent, attribute: Attribute) -> &str {
    event.attributes.get(attribute).unwrap_or_default()
}

#[test]
fn accepts_chained_exceptions_of_sentry_python() {
    let body = inflate(PYTHON_CHAINED_BROTLI, "br").unwrap();
    assert_eq!(body, PYTHON_CHAINED);
    let event = delivered(&body);
    assert_eq!(
        event.event_id.map(|id| id.to_string()),
        Some("ac012cadf588491bb76da90129e33c41".to_owned())
    );
    assert_eq!(event.occurred_at.to_string(), "2026-11-21T10:59:53.600Z");
    assert_eq!(event.description.error_type, "RuntimeError");
    assert_eq!(
        event.description.title,
        "RuntimeError: cannot load order 8271 from https://api.example.com/orders/8271"
    );
    assert_eq!(event.description.culprit, "__main__ in load");
    let expected = ["staging", "shop@1.2.3", "error", "true", "", "", "", "", "python", ""];
    assert_eq!(Attribute::ALL.map(|name| attribute(&event, name))[..10], expected);
    let expected = ["false", "", "RuntimeError", "__main__ in load"];
    assert_eq!(Attribute::ALL.map(|name| attribute(&event, name))[10..14], expected);
}

#[test]
fn accepts_unhandled_exceptions_of_sentry_python() {
    let event = delivered(PYTHON_UNHANDLED);
    assert_eq!(attribute(&event, Attribute::Handled), "false");
    assert_eq!(event.description.error_type, "RuntimeError");
    assert_eq!(attribute(&event, Attribute::Country), "DE");
}

#[test]
fn accepts_logged_messages_of_sentry_python() {
    let event = delivered(PYTHON_LOGGED);
    assert_eq!(
        (event.description.error_type.as_str(), event.description.culprit.as_str()),
        ("", "")
    );
    assert_eq!(event.description.title, "payment 4711 failed for a@example.com");
    let text = String::from_utf8_lossy(PYTHON_LOGGED).into_owned();
    let another = text.replace("payment 4711 failed for a@", "payment 1 failed for bcd@");
    let another = another.replace("\"length\":1062", "\"length\":1061");
    assert_eq!(
        delivered(another.as_bytes()).description.fingerprint,
        event.description.fingerprint
    );
}

#[test]
fn accepts_fingerprints_and_nan_of_sentry_python() {
    let event = delivered(PYTHON_FINGERPRINT);
    assert!(payload(&event).contains("\"password\":\"[Filtered]\""));
    let text = String::from_utf8_lossy(PYTHON_FINGERPRINT).into_owned();
    assert_ne!(
        delivered(text.replace("tenant-a", "tenant-b").as_bytes()).description.fingerprint,
        event.description.fingerprint
    );
}

#[test]
fn accepts_events_of_sentry_node() {
    let event = delivered(NODE_CHAINED);
    assert_eq!(event.description.title, "Error: outer failed");
    assert_eq!(event.description.culprit, "prog in outer");
    let expected = ["production", "web@2.0.0", "error", "true", "", "Debian", "", "", "node", ""];
    assert_eq!(Attribute::ALL.map(|name| attribute(&event, name))[..10], expected);
    let event = delivered(NODE_UNHANDLED);
    assert_eq!(event.description.title, "SyntaxError: crash 42");
    assert_eq!(event.occurred_at.to_string(), "2026-11-21T10:59:59.293Z");
    let values = [Attribute::Level, Attribute::Handled].map(|name| attribute(&event, name));
    assert_eq!(values, ["fatal", "false"]);
    let event = delivered(NODE_MESSAGE);
    assert_eq!(event.description.title, "hello from node");
    assert_eq!(attribute(&event, Attribute::Level), "info");
}

#[test]
fn accepts_sessions_without_an_event() {
    let envelope = Envelope::parse(NODE_SESSION).unwrap();
    assert_eq!((envelope.event, envelope.dropped_items), (None, 1));
    assert_eq!(normalize_envelope(&envelope, received_at()), Ok(None));
}

#[test]
fn reads_the_key_of_both_sdks() {
    let key = "0123456789abcdef0123456789abcdef";
    let python =
        format!("Sentry sentry_key={key}, sentry_version=7, sentry_client=sentry.python/2.75.0");
    for sources in [
        CredentialSources { query_keys: &[key], ..Default::default() },
        CredentialSources { sentry_auth: &[&python], ..Default::default() },
    ] {
        assert_eq!(sources.read(None).map(|key| key.to_string()), Ok(key.to_owned()));
    }
}

#[test]
fn lines_and_values_do_not_affect_grouping() {
    let event = delivered(PYTHON_CHAINED);
    let text = String::from_utf8_lossy(PYTHON_CHAINED).into_owned();
    let moved = text.replace("\"lineno\":7", "\"lineno\":9").replace("order 8271", "order 1234");
    assert_ne!(moved, text);
    assert_eq!(delivered(moved.as_bytes()).description.fingerprint, event.description.fingerprint);
    let renamed = text.replace("\"function\":\"load\"", "\"function\":\"l0ad\"");
    assert_ne!(
        delivered(renamed.as_bytes()).description.fingerprint,
        event.description.fingerprint
    );
}

#[test]
fn header_id_wins_and_odd_ids_are_ignored() {
    let id = "ac012cadf588491bb76da90129e33c41";
    let other = "bc012cad-f588-491b-b76d-a90129e33c41";
    let body =
        format!("{{\"event_id\":\"{id}\"}}\n{{\"type\":\"event\"}}\n{{\"event_id\":\"{other}\"}}");
    let event = delivered(body.as_bytes());
    assert_eq!(event.event_id.map(|id| id.to_string()).as_deref(), Some(id));
    assert!(payload(&event).contains(id));
    let event = stored(&format!("{{\"event_id\":\"{other}\"}}"));
    assert_eq!(event.event_id.map(|id| id.to_string()), Some(other.replace('-', "")));
    for odd in ["7", "null", "\"xyz\"", "{}"] {
        assert_eq!(stored(&format!("{{\"event_id\":{odd}}}")).event_id, None, "{odd}");
    }
    let nil = format!("{{\"event_id\":\"{}\"}}", "0".repeat(32));
    let result = normalize_store_body(nil.as_bytes(), received_at());
    assert!(matches!(result, Err(IngestionFault::Malformed(_))));
}

#[test]
fn accepts_empty_events() {
    let event = stored("{}");
    assert_eq!(event.description.title, "<unlabeled event>");
    assert_eq!(event.occurred_at, received_at());
    assert_eq!(attribute(&event, Attribute::Level), "error");
    assert_eq!(attribute(&event, Attribute::Environment), "");
    assert_eq!(payload(&event), r#"{"timestamp":"2026-11-21T11:01:00.000Z","level":"error"}"#);
}

#[test]
fn rejects_invalid_events() {
    for body in ["", "[]", "7", "{\"a\":", "{\"a\":01}", "[[[["] {
        let result = normalize_store_body(body.as_bytes(), received_at());
        assert!(matches!(result, Err(IngestionFault::Malformed(_))), "{body}");
    }
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_EVENT_BYTES));
    let result = normalize_store_body(large.as_bytes(), received_at());
    assert!(matches!(result, Err(IngestionFault::TooLarge(_))));
    assert_eq!(normalize_store_body(b"{\"type\":\"transaction\"}", received_at()), Ok(None));
}

#[test]
fn time_of_sending_corrects_the_clock() {
    let body = |sent_at: &str, timestamp: &str| {
        format!(
            "{{\"sent_at\":\"{sent_at}\"}}\n{{\"type\":\"event\"}}\n{{\"timestamp\":{timestamp}}}"
        )
    };
    let event = delivered(body("2026-11-21T09:01:00Z", "\"2026-11-21T09:00:00\"").as_bytes());
    assert_eq!(event.occurred_at.to_string(), "2026-11-21T11:00:00.000Z");
    assert!(payload(&event).contains("\"timestamp\":\"2026-11-21T11:00:00.000Z\""));
    let event = delivered(body("2026-11-21T10:10:00Z", "\"2026-11-21T10:09:00\"").as_bytes());
    assert_eq!(event.occurred_at.to_string(), "2026-11-21T10:09:00.000Z");
}

#[test]
fn omits_the_largest_optional_parts_until_it_fits() {
    let crumbs = format!("{{\"values\":[{{\"message\":\"{}\"}}]}}", "b".repeat(200_000));
    let text = format!(
        "{{\"breadcrumbs\":{crumbs},\"extra\":{{\"a\":\"{}\"}},\"debug_meta\":\"{}\",
          \"exception\":{{\"type\":\"E\",\"value\":\"v\"}}}}",
        "x".repeat(180_000),
        "d".repeat(50_000)
    );
    let event = stored(&text);
    assert!(event.payload.len() <= MAX_PAYLOAD_BYTES);
    let payload = payload(&event);
    assert!(payload.ends_with(r#""trimmed":["breadcrumbs"]}"#));
    assert!(payload.contains("debug_meta") && payload.contains("xxx"));
    assert_eq!(event.description.title, "E: v");
}

#[test]
fn most_hostile_event_fits_into_its_item() {
    let frame = format!(
        r#"{{"function":"{0}","module":"{0}","filename":"{0}","abs_path":"{0}","context_line":"{0}","vars":{{"a":"{0}"}}}}"#,
        "\\u0001".repeat(40)
    );
    let exception =
        format!(r#"{{"stacktrace":{{"frames":[{}]}}}}"#, [frame.as_str(); 30].join(","));
    let text = format!(
        r#"{{"exception":[{}],"message":"{}"}}"#,
        [exception.as_str(); 20].join(","),
        "\\u0001".repeat(9_000)
    );
    assert!(text.len() < MAX_EVENT_BYTES);
    let event = stored(&text);
    assert!(event.payload.len() <= MAX_PAYLOAD_BYTES, "{}", event.payload.len());
}

#[test]
fn incompressible_payloads_fit_350_000_bytes() {
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    })
    .take(MAX_PAYLOAD_BYTES)
    .collect();
    assert!(zstd::bulk::compress(&noise, 3).unwrap().len() <= 350_000);
}

/// Returns events with fields of any type.
fn odd_event() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("NaN".to_owned()),
        "-?[1-9][0-9]{0,20}(\\.[0-9]{1,3})?",
        "\"[ a-zA-Z0-9/:.?=&{}é-]{0,20}\"",
    ];
    let names = prop::sample::select(vec![
        "exception",
        "values",
        "type",
        "value",
        "stacktrace",
        "frames",
        "function",
        "filename",
        "in_app",
        "mechanism",
        "handled",
        "logentry",
        "message",
        "formatted",
        "params",
        "tags",
        "contexts",
        "os",
        "name",
        "user",
        "geo",
        "country_code",
        "level",
        "timestamp",
        "event_id",
        "fingerprint",
        "request",
        "headers",
        "data",
        "cookies",
        "query_string",
        "extra",
        "trimmed",
        "breadcrumbs",
        "vars",
        "password",
        "release",
        "environment",
        "transaction",
        "platform",
    ]);
    let value = scalar.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|list| format!("[{}]", list.join(","))),
            prop::collection::vec((names.clone(), inner), 0..6).prop_map(|members| {
                let members = members.iter().map(|(name, value)| format!("\"{name}\":{value}"));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }),
        ]
    });
    let top = prop::sample::select(vec![
        "exception",
        "logentry",
        "message",
        "tags",
        "contexts",
        "user",
        "level",
        "timestamp",
        "fingerprint",
        "request",
        "extra",
        "trimmed",
        "breadcrumbs",
        "release",
        "environment",
        "transaction",
        "platform",
        "modules",
    ]);
    prop::collection::vec((top, value), 0..8).prop_map(|members| {
        let members = members.iter().map(|(name, value)| format!("\"{name}\":{value}"));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    })
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = normalize_store_body(&bytes, received_at());
        let _ = Envelope::parse(&bytes).map(|envelope| normalize_envelope(&envelope, received_at()));
    }

    #[test]
    fn corrupt_deliveries_never_panic(
        at in 0..PYTHON_CHAINED.len(),
        byte in any::<u8>(),
        cut in 0..PYTHON_CHAINED.len(),
    ) {
        let mut body = PYTHON_CHAINED.to_vec();
        body[at] = byte;
        let _ = Envelope::parse(&body).map(|envelope| normalize_envelope(&envelope, received_at()));
        body.truncate(cut);
        let _ = Envelope::parse(&body).map(|envelope| normalize_envelope(&envelope, received_at()));
    }

    #[test]
    fn odd_fields_result_in_an_event(text in odd_event()) {
        let event = stored(&text);
        let payload = payload(&event);
        prop_assert!(matches!(Json::parse(&payload, 64), Ok(Json::Object(_))));
        prop_assert!(event.description.title.chars().count() <= 250);
        prop_assert!(!event.description.title.is_empty());
    }

    #[test]
    fn normalization_is_idempotent(text in odd_event()) {
        let once = stored(&text);
        let again = stored(&payload(&once));
        let described = describe_stored_event(&once.payload, once.description.fingerprint);
        prop_assert_eq!(described, Some(once.description.clone()));
        prop_assert_eq!(again, once);
    }
}

#[test]
fn normalization_of_real_events_is_idempotent() {
    for body in [PYTHON_CHAINED, PYTHON_LOGGED, PYTHON_FINGERPRINT, NODE_CHAINED, NODE_MESSAGE] {
        let once = delivered(body);
        let described = describe_stored_event(&once.payload, once.description.fingerprint);
        assert_eq!(described, Some(once.description.clone()));
        assert_eq!(stored(&payload(&once)), once);
    }
}
