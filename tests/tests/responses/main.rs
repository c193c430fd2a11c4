//! Sends recorded requests to every operation in a fixed order, and compares the responses with the
//! recorded ones, byte for byte: successes, all rejections, and headers. So a test shows whether a
//! code change affects responses.
//!
//! A file in `recorded/` is a scenario with one exchange per line: the request, then its response.
//! Lines can also be a step, such as `{"step":"a day passes"}`, or define a text that requests
//! share. Values that differ between runs have names: `<id 3>` is the third issued identifier.
//! Others are `<cursor 1>`, `<etag 1>`, and names of projects and keys. Times are unchanged, because
//! the tests set the clock. In bodies, `«3×a»` repeats a text; `№` is the number of the repetition,
//! with four digits from 0000 on.
//!
//! To add an exchange, add a line with the request at the end of a scenario: name, method, path,
//! and, if needed, query, headers, body, or base64 of a body that is not text. Then record the
//! responses, also after intended changes, and check `git diff`:
//!
//! ```text
//! RECORD_RESPONSES=1 cargo test -p tests --test responses
//! ```
//!
//! Exchanges elsewhere would shift the times of later requests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod recording;
mod steps;

use recording::replay;

#[tokio::test]
async fn responses_about_access_are_as_recorded() {
    replay("access").await;
}

#[tokio::test]
async fn responses_about_errors_are_as_recorded() {
    replay("errors").await;
}

#[tokio::test]
async fn responses_about_flags_are_as_recorded() {
    replay("flags").await;
}

#[tokio::test]
async fn responses_about_insights_are_as_recorded() {
    replay("insights").await;
}

#[tokio::test]
async fn responses_about_interpretation_are_as_recorded() {
    replay("interpret").await;
}

#[tokio::test]
async fn responses_about_markers_are_as_recorded() {
    replay("markers").await;
}

#[tokio::test]
async fn responses_about_notifications_are_as_recorded() {
    replay("notifications").await;
}
