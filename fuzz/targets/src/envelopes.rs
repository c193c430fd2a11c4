//! SDK input: for any bytes, the normalized event is within its limits, valid JSON, deterministic,
//! and readable again in its stored form.

use serde_json::Value;

use errors::attribute::Attribute;
use errors::ingestion::{
    CanonicalEvent, Envelope, EventText, IngestionFault, MAX_EVENT_BYTES, MAX_FIRST_ITEM_BYTES,
    MAX_ITEMS, MAX_PAYLOAD_BYTES, MAX_START_BYTES, NormalizedEvent, Received,
    describe_stored_event,
};
use shared::timestamp::Timestamp;

/// Time of receipt.
const NOW: i64 = 1_795_234_560_000;
/// Maximum characters of an attribute (`docs/semantics/error-tracking.md`, "Trimming").
const ATTRIBUTE_CHARACTERS: usize = 512;

fn received() -> Received<'static> {
    Received {
        at: Timestamp::from_millis(NOW),
        user_agent: Some("Mozilla/5.0 (X11; Linux x86_64)"),
    }
}

pub(crate) fn envelopes(bytes: &[u8]) {
    let parsed = Envelope::parse(bytes);
    assert_eq!(parsed, Envelope::parse(bytes), "parsing is not deterministic");
    let start = &bytes[..bytes.len().min(MAX_START_BYTES)];
    let begins_with_event =
        Envelope::begins_with_event(&bytes[..bytes.len().min(MAX_FIRST_ITEM_BYTES)]);
    let Ok(envelope) = parsed else { return };
    if begins_with_event || bytes.len() <= MAX_FIRST_ITEM_BYTES {
        assert_eq!(begins_with_event, envelope.event.is_some());
    }
    assert_eq!(Envelope::read_dsn(start), Ok(envelope.dsn.clone()), "the DSN differs at the start");
    let items = envelope.client_reports + envelope.dropped_items;
    assert!(items + usize::from(envelope.event.is_some()) <= MAX_ITEMS);
    assert!(envelope.event.is_none_or(|event| event.len() <= MAX_EVENT_BYTES));
    if let Some(text) = envelope.event_text() {
        check_twice(normalize(&text), || normalize(&text));
    }
}

fn normalize(text: &EventText<'_>) -> Result<Option<NormalizedEvent>, IngestionFault> {
    Ok(text.canonicalize(received())?.map(CanonicalEvent::normalize))
}

fn check_twice(
    event: Result<Option<NormalizedEvent>, IngestionFault>,
    again: impl FnOnce() -> Result<Option<NormalizedEvent>, IngestionFault>,
) {
    if let Ok(Some(event)) = event {
        let again = again().ok().flatten().expect("the second normalization succeeds");
        assert_same(&event, &again);
        check(&event);
    }
}

pub(crate) fn store_bodies(bytes: &[u8]) {
    let normalize = || EventText::of_store_body(bytes).and_then(|text| normalize(&text));
    let event = normalize();
    if let Ok(Value::Object(_)) = serde_json::from_slice::<Value>(bytes) {
        // JSON always parses, but its content, such as an id of zeros, can be rejected.
        if let Err(fault) = &event {
            assert!(!fault.to_string().starts_with("the event is not valid JSON:"), "{fault}");
        }
    }
    check_twice(event, normalize);
}

fn assert_same(event: &NormalizedEvent, again: &NormalizedEvent) {
    assert_eq!(event.payload, again.payload);
    assert_eq!(event.description.fingerprint, again.description.fingerprint);
    assert_eq!(event.attributes, again.attributes);
}

/// Checks the invariants of stored events.
fn check(event: &NormalizedEvent) {
    assert!(event.payload.len() <= MAX_PAYLOAD_BYTES);
    let payload: Value = serde_json::from_slice(&event.payload).expect("the payload is JSON");
    assert!(payload.is_object());
    assert!(
        (Timestamp::MIN_MILLIS..=Timestamp::MAX_MILLIS).contains(&event.occurred_at.as_millis())
    );
    for crumb in payload["breadcrumbs"].as_array().into_iter().flatten() {
        let at = crumb.get("timestamp").map(|at| at.as_str().map(Timestamp::parse_rfc3339));
        assert!(matches!(at, None | Some(Some(Ok(_)))), "{crumb}");
    }
    for attribute in Attribute::ALL {
        let value = event.attributes.get(attribute);
        assert!(
            value.is_none_or(|it| !it.is_empty() && it.chars().count() <= ATTRIBUTE_CHARACTERS)
        );
    }
    let description = describe_stored_event(&event.payload, event.description.fingerprint);
    assert_eq!(
        description,
        Some(event.description.clone()),
        "the description differs from the stored one"
    );
}
