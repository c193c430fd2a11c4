//! Events that EventBridge rejects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use send_notifications::send;
use send_notifications::senders::Senders;
use serde_json::{Value, json};
use shared::app::Deadline;
use tests::app::TestApp;
use tests::notifications::senders;
use tests::proxy::{self, Proxy, ProxyResponse};
use tests::wire::Request;

use super::actions::create_errors;

/// A fake EventBridge that rejects events with a text.
#[derive(Default)]
struct SelectiveEventBridge {
    rejected_text: Mutex<Option<&'static str>>,
    /// Number of deliveries by event id.
    accepted: Mutex<BTreeMap<String, u32>>,
}

impl SelectiveEventBridge {
    fn reject(&self, text: Option<&'static str>) {
        *self.rejected_text.lock().unwrap() = text;
    }

    fn accepted(&self) -> Vec<u32> {
        self.accepted.lock().unwrap().values().copied().collect()
    }
}

impl Proxy for SelectiveEventBridge {
    async fn respond(&self, request: Request) -> ProxyResponse {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let rejected_text = *self.rejected_text.lock().unwrap();
        let mut failed = 0;
        let results = body["Entries"].as_array().unwrap().iter().map(|entry| {
            let detail = entry["Detail"].as_str().unwrap();
            if rejected_text.is_some_and(|text| detail.contains(text)) {
                failed += 1;
                return json!({"ErrorCode": "ThrottlingException", "ErrorMessage": "slower"});
            }
            let detail: Value = serde_json::from_str(detail).unwrap();
            let id = detail["id"].as_str().unwrap().to_owned();
            *self.accepted.lock().unwrap().entry(id).or_default() += 1;
            json!({"EventId": "1"})
        });
        let results: Vec<Value> = results.collect();
        let answer = json!({"FailedEntryCount": failed, "Entries": results});
        (200, answer.to_string().into_bytes())
    }
}

#[tokio::test]
async fn accepted_events_are_not_sent_again() {
    const ERRORS: usize = 25;
    let test = TestApp::start().await;
    let event_bridge = Arc::new(SelectiveEventBridge::default());
    let url = proxy::serve(Arc::clone(&event_bridge)).await;
    let senders = Senders { mailer: None, ..senders(&url, &url) };
    let run = async || {
        let deadline = Deadline::after(Duration::from_mins(1));
        send(&test.app, &senders, Duration::ZERO, deadline).await.unwrap()
    };
    create_errors(&test, 0, ERRORS as u64).await;
    // Matches one error.
    event_bridge.reject(Some("Errorb:"));
    for _ in 0..2 {
        let outcome = run().await;
        assert!(outcome.failure.is_some(), "the rejection is reported");
        // All errors except one, and the new key.
        assert_eq!(event_bridge.accepted(), [1; ERRORS]);
        test.pass(Duration::from_mins(1));
    }
    assert_eq!(run().await.oldest_waiting, Duration::from_mins(2));
    event_bridge.reject(None);
    assert!(run().await.failure.is_none());
    assert_eq!(event_bridge.accepted(), [1; ERRORS + 1]);
}
