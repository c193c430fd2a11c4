//! Tests of summarize-error.

use serde_json::json;

use shared::app::Operation;
use tests::call::Call;
use tests::errors::SentEvent;

use super::{BREAKDOWN, DAY, HOUR, MINUTE, Tracker};

const SUMMARIZE: &Operation = &::summarize_error::OPERATION;

#[tokio::test]
async fn summaries_equal_breakdowns_of_the_error() {
    let tracker = Tracker::start().await;
    for (number, age, release) in
        [(0, DAY * 20, "1"), (1, HOUR, "2"), (2, HOUR, "2"), (3, MINUTE, "3")]
    {
        let event = SentEvent::new(number, tracker.ago(age), "TypeError", "x");
        let event = event.with("release", release).with("user", &format!("u{}", number / 2));
        tracker.deliver(&event.with("browser", "Chrome")).await;
    }
    tracker.deliver(&SentEvent::new(9, tracker.now(), "Other", "y").with("release", "9")).await;
    let errors = tracker.errors().await;
    let error = errors.iter().find(|it| it["type"] == "TypeError").unwrap().clone();
    for packed in [false, true] {
        if packed {
            tracker.test.pass(MINUTE * 2);
            tracker.pack().await;
        }
        let body = json!({"by": ["release", "browser"], "limit": 1});
        let call = tracker.call_for(SUMMARIZE, &error).json(&body);
        let summary = call.send(&tracker.test.app).await;
        assert_eq!(summary.status, 200, "{}", summary.body);
        let filters =
            json!([{"categoryId": "errorId", "operator": "is", "value": error["errorId"]}]);
        let breakdown =
            json!({"projectIds": ["shop"], "by": "release", "limit": 1, "filters": filters});
        let breakdown = Call::of(BREAKDOWN)
            .key(&tracker.test.key)
            .json(&breakdown)
            .send(&tracker.test.app)
            .await
            .body;
        assert_eq!(
            summary.body,
            json!({
                "count": 3, "users": 2, "firstRelease": "1", "lastRelease": "3",
                "shares": [
                    {"categoryId": "release", "rows": breakdown},
                    {"categoryId": "browser", "rows": [{"value": "Chrome", "errors": 3, "uniqueErrors": 1}]},
                ],
            })
        );
    }
}

#[tokio::test]
async fn summaries_without_categories_have_no_shares() {
    let tracker = Tracker::start().await;
    tracker.deliver(&SentEvent::new(0, tracker.ago(MINUTE), "TypeError", "x")).await;
    let error = tracker.the_error().await;
    let call = tracker.call_for(SUMMARIZE, &error).json(&json!({}));
    let body = call.send(&tracker.test.app).await.body;
    assert_eq!(
        (&body["count"], &body["firstRelease"], &body["shares"]),
        (&json!(1), &json!(null), &json!([]))
    );
}
