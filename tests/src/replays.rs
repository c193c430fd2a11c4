//! Recorded sessions, as the SDK's Replay integration sends them.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};

use shared::timestamp::Timestamp;

use crate::errors::envelope;

/// A recorded session. Times are milliseconds after its start.
#[derive(Debug)]
pub struct Session {
    /// The replay ID.
    pub replay: String,
    start: i64,
}

impl Session {
    /// Returns the session with a number.
    pub fn new(number: u64, start: Timestamp) -> Self {
        let replay = format!("{:032x}", u128::from(number) + (7 << 100));
        Self { replay, start: start.as_millis() }
    }

    #[allow(clippy::cast_precision_loss)] // Milliseconds of this century are exact.
    fn seconds(&self, at: i64) -> f64 {
        (self.start + at) as f64 / 1e3
    }

    fn breadcrumb(&self, category: &str, at: i64, node: i64, more: &Value) -> Value {
        let id = format!("b{node}");
        let mut data = json!({"nodeId": node, "node": {"id": node, "tagName": "button",
            "textContent": "****", "attributes": {"id": id, "class": "app-bawkde e1md5v962"}}});
        for (name, value) in more.as_object().into_iter().flatten() {
            data[name] = value.clone();
        }
        json!({"type": 5, "timestamp": self.start + at, "data": {"tag": "breadcrumb", "payload": {
            "type": "default", "category": category, "timestamp": self.seconds(at),
            "message": format!("body > button#{id}"), "data": data}}})
    }

    /// Returns a click on a node.
    pub fn click(&self, at: i64, node: i64) -> Value {
        self.breadcrumb("ui.click", at, node, &json!({}))
    }

    /// Returns the verdict that a click was dead.
    pub fn dead(&self, at: i64, node: i64) -> Value {
        let more = json!({"timeAfterClickMs": 7000, "endReason": "timeout", "clickCount": 1,
            "url": "http://shop.example.com/orders/123?a=1#b", "route": ""});
        self.breadcrumb("ui.slowClickDetected", at, node, &more)
    }

    /// Returns the verdict that clicks were rage clicks.
    pub fn rage(&self, at: i64, node: i64) -> Value {
        let more = json!({"clickCount": 6, "url": "http://shop.example.com/cart"});
        self.breadcrumb("ui.multiClick", at, node, &more)
    }

    /// Returns the envelope of a segment.
    pub fn segment(&self, number: u64, events: &[Value]) -> Vec<u8> {
        let event = json!({"type": "replay_event", "replay_id": self.replay,
            "event_id": self.replay, "segment_id": number, "timestamp": self.seconds(0),
            "urls": [], "error_ids": [], "release": "shop@1", "user": {"id": "u-1"},
            "request": {"url": "http://shop.example.com/orders/77", "headers": {
                "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like \
                               Gecko) Chrome/140.0.0.0 Safari/537.36"}}});
        let json = serde_json::to_vec(events).expect("JSON is serializable");
        let recording = if number.is_multiple_of(2) { zlib(&json) } else { json };
        let recording = [format!("{{\"segment_id\":{number}}}\n").into_bytes(), recording].concat();
        let header = json!({"event_id": self.replay});
        let items = format!(
            "{header}\n{{\"type\":\"replay_event\"}}\n{event}\n\
             {{\"type\":\"replay_recording\",\"length\":{}}}\n",
            recording.len()
        );
        [items.into_bytes(), recording, b"\n".to_vec()].concat()
    }

    /// Returns the envelope of an error.
    pub fn error(&self, number: u64, at: i64) -> Vec<u8> {
        let id = format!("{:032x}", u128::from(number) + (1 << 90));
        let event = json!({"event_id": id, "timestamp": self.seconds(at),
            "tags": {"replayId": self.replay},
            "exception": {"values": [{"type": "TypeError", "value": "x is undefined"}]}});
        envelope(&json!({ "event_id": id }), &[("event", event.to_string())]).into_bytes()
    }
}

/// Compresses bytes, as the SDK does.
pub fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory accepts bytes");
    encoder.finish().expect("memory accepts bytes")
}
