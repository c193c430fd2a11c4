//! Events of which EventBridge takes some.

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

use super::actions::make_errors;

/// EventBridge, which takes no event with a certain text in it while `refuses`.
#[derive(Default)]
struct Picky {
    refuses: Mutex<Option<&'static str>>,
    /// How often each event was taken, by its id.
    taken: Mutex<BTreeMap<String, u32>>,
}

impl Picky {
    fn refuse(&self, text: Option<&'static str>) {
        *self.refuses.lock().unwrap() = text;
    }

    fn taken(&self) -> Vec<u32> {
        self.taken.lock().unwrap().values().copied().collect()
    }
}

impl Proxy for Picky {
    async fn answer(&self, request: Request) -> ProxyResponse {
        let asked: Value = serde_json::from_slice(&request.body).unwrap();
        let refuses = *self.refuses.lock().unwrap();
        let mut failed = 0;
        let results = asked["Entries"].as_array().unwrap().iter().map(|entry| {
            let detail = entry["Detail"].as_str().unwrap();
            if refuses.is_some_and(|text| detail.contains(text)) {
                failed += 1;
                return json!({"ErrorCode": "ThrottlingException", "ErrorMessage": "slower"});
            }
            let detail: Value = serde_json::from_str(detail).unwrap();
            let id = detail["id"].as_str().unwrap().to_owned();
            *self.taken.lock().unwrap().entry(id).or_default() += 1;
            json!({"EventId": "1"})
        });
        let results: Vec<Value> = results.collect();
        let answer = json!({"FailedEntryCount": failed, "Entries": results});
        (200, answer.to_string().into_bytes())
    }
}

#[tokio::test]
async fn what_was_taken_is_not_sent_again_and_keeps_nothing_else_back() {
    // That of the tests' key is the one that takes the place of the one that is refused.
    const ERRORS: usize = 25;
    let test = TestApp::start().await;
    let picky = Arc::new(Picky::default());
    let url = proxy::serve(Arc::clone(&picky)).await;
    let senders = Senders { mailer: None, ..senders(&url, &url) };
    let run = async || {
        let deadline = Deadline::after(Duration::from_mins(1));
        send(&test.app, &senders, Duration::ZERO, deadline).await.unwrap()
    };
    make_errors(&test, 0, 25).await;
    // "Errorb", and no other of them.
    picky.refuse(Some("Errorb:"));
    for _ in 0..2 {
        let outcome = run().await;
        assert!(outcome.failure.is_some(), "it is told");
        // All but one, and the event of the tests' key.
        assert_eq!(picky.taken(), [1; ERRORS]);
        test.pass(Duration::from_mins(1));
    }
    assert_eq!(run().await.oldest_waiting, Duration::from_mins(2));
    picky.refuse(None);
    assert!(run().await.failure.is_none());
    assert_eq!(picky.taken(), [1; ERRORS + 1]);
}
