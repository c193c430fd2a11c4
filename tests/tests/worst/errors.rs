//! Errors: lists, queries, and the filter interpreter. Counting costs depend on the project. Here
//! it has a few thousand events, so that the costs of the request itself dominate.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use local::demo;
use shared::app::Deadline;
use tests::errors::{SentEvent, project};

use super::hostile::BODY_BYTES;
use super::{Case, Fixture, Report, padded};

/// Errors of the project, with one event each.
const ERRORS: u64 = 300;

/// Creates events with as many different values of each attribute.
async fn fill(fixture: &Fixture) {
    let dsn = project(&fixture.test.app.store, fixture.test.project_id).await;
    let now = fixture.test.app.clock.now();
    for at in 0..ERRORS {
        let message = format!("{} {}", letters(at), "wörd ".repeat(100));
        let event = SentEvent::new(at, now, &letters(at), &message)
            .with("browser", &format!("Browser {at}"))
            .with("os", &format!("System {at}"))
            .with("release", &format!("release-{at}-{}", "x".repeat(150)))
            .with("user", &at.to_string());
        let call = fixture.bare("ingest-error-events").parameter("ingestId", dsn.ingest_id);
        fixture.make(call.query("sentry_key", dsn.public_key).bytes(event.envelope())).await;
    }
}

/// Returns a word of letters, which message templates do not treat as a number.
fn letters(mut number: u64) -> String {
    let mut text = "E".to_owned();
    for _ in 0..4 {
        text.push(char::from(b'a' + u8::try_from(number % 26).unwrap()));
        number /= 26;
    }
    text
}

/// Returns twenty filters that match everything.
fn filters() -> Value {
    let filter = |at: usize| {
        let category = ["browser", "os", "release", "environment", "device"][at % 5];
        json!({"categoryId": category, "operator": "not_contains", "value": "ö".repeat(150) + &at.to_string()})
    };
    json!((0..20).map(filter).collect::<Vec<_>>())
}

/// Returns a request with two thousand values of long words, and a query of similar words.
fn request_body(project: &str, long: bool) -> Value {
    let word = |seed: usize| -> String {
        let mut state = seed as u64 + 1;
        let mut text = String::new();
        for _ in 0..if long { 90 } else { 9 } {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push(char::from(b'a' + u8::try_from(state >> 60).unwrap()));
        }
        text
    };
    let categories: Vec<Value> = (0..50)
        .map(|at| {
            let values: Vec<String> = (0..40).map(|value| word(at * 40 + value)).collect();
            json!({"id": format!("c{at}"), "label": word(5_000 + at), "values": values})
        })
        .collect();
    let mut query = String::new();
    for seed in 0.. {
        let mut next = word(seed * 37);
        next.replace_range(4..5, "z");
        if query.len() + next.len() > 499 {
            break;
        }
        let _ = write!(query, "{next} ");
    }
    let filter =
        |at: usize| json!({"categoryId": format!("c{at}"), "operator": "is", "value": word(at)});
    let current: Vec<Value> = (0..50).map(filter).collect();
    json!({"projectId": project, "query": query.trim_end(), "categories": categories, "currentFilters": current})
}

/// Returns a request with values of many words, and a query of such words.
fn wordy(project: &str) -> Value {
    let value = |at: usize| format!("a b {at} not in the of and or c d e f g h");
    let categories: Vec<Value> = (0..50)
        .map(|at| {
            let values: Vec<String> = (0..40).map(|it| value(at * 40 + it)).collect();
            json!({"id": format!("c{at}"), "label": format!("a b {at}"), "values": values})
        })
        .collect();
    let query = "a b not in 1 or ".repeat(40);
    json!({"projectId": project, "query": &query[..500], "categories": categories, "currentFilters": []})
}

#[tokio::test]
async fn errors_cost_little() {
    let fixture = Fixture::start().await;
    let report = &mut Report::default();
    let id = fixture.test.project_id.to_string();

    let json_type = |id: &str| fixture.call(id).header("content-type", "application/json");
    let ask = |body: &Value| json_type("interpret-error-filters").bytes(padded(body, BODY_BYTES));
    let cases = vec![
        Case::of(
            "long words, misspelt",
            200,
            ask(&request_body(&id, true)).query("explain", "true"),
        ),
        Case::of(
            "short words, misspelt",
            200,
            ask(&request_body(&id, false)).query("explain", "true"),
        ),
        Case::of("many words", 200, ask(&wordy(&id)).query("explain", "true")),
    ];
    fixture.measure("interpret-error-filters", cases, report).await;

    fill(&fixture).await;
    tests::app::pass(&fixture.test.app, Duration::from_hours(48));
    tests::app::pass(&fixture.app, Duration::from_hours(48));
    let deadline = Deadline::after(Duration::from_mins(1));
    (pack_error_log::JOB.run)(&fixture.test.app, deadline).await.unwrap();

    let mut projects = vec![id.clone()];
    for at in 0..49 {
        let slug = format!("other-{at}");
        let id = demo::ensure_project(&fixture.test.app.store, &slug, "Other").await.unwrap();
        projects.push(id.to_string());
    }
    let to = fixture.app.clock.now().as_millis();
    let range = |days: i64| (to - days * 86_400_000, to);
    let search = "wörd ".repeat(204) + "wör";
    let query = |days: i64, more: Value| {
        let (from, to) = range(days);
        let mut body = json!({"from": from, "to": to, "filters": filters(), "searchQuery": search});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let series = query(90, json!({"projectIds": projects, "limit": 1_000}));
    let call = json_type("query-error-timeseries").bytes(padded(&series, BODY_BYTES));
    let cases = vec![Case::of("fifty projects", 200, call)];
    fixture.measure("query-error-timeseries", cases, report).await;
    let breakdown = query(90, json!({"projectIds": projects, "by": "release", "limit": 100}));
    let call = json_type("breakdown-errors").bytes(padded(&breakdown, BODY_BYTES));
    fixture.measure("breakdown-errors", vec![Case::of("fifty projects", 200, call)], report).await;
    let errors = query(90, json!({"sort": "users", "limit": 100}));
    let cases = vec![
        Case::of("a search", 200, json_type("query-errors").bytes(padded(&errors, BODY_BYTES))),
        Case::of("a page", 200, fixture.call("query-errors").json(&json!({"limit": 100}))),
    ];
    fixture.measure("query-errors", cases, report).await;
    let all = vec![Case::of("all", 200, fixture.call("list-error-categories"))];
    fixture.measure("list-error-categories", all, report).await;
    let list = fixture.call("list-errors").query("limit", 100);
    let listed = fixture.make(list.clone()).await;
    fixture.measure("list-errors", vec![Case::of("a page", 200, list)], report).await;

    let error = listed.body["items"][0]["errorId"].as_str().unwrap().to_owned();
    let of_error = |id: &str| fixture.call(id).parameter("errorId", &error);
    fixture.measure("get-error", vec![Case::of("one", 200, of_error("get-error"))], report).await;
    let events = of_error("list-error-events").query("limit", 100);
    fixture.measure("list-error-events", vec![Case::of("a page", 200, events)], report).await;
    let of_query = |id: &str| of_error(id).header("content-type", "application/json");
    let events = json!({"filters": filters(), "searchQuery": "wörd", "limit": 100});
    let events = of_query("query-error-events").bytes(padded(&events, BODY_BYTES));
    fixture.measure("query-error-events", vec![Case::of("a page", 200, events)], report).await;
    let by = ["release", "browser", "os", "device", "environment", "url"];
    let summary = json!({"filters": filters(), "by": by, "limit": 100});
    let summary = of_query("summarize-error").bytes(padded(&summary, BODY_BYTES));
    fixture.measure("summarize-error", vec![Case::of("all", 200, summary)], report).await;
    let update = of_error("update-error").json(&json!({"status": "resolved"}));
    fixture.measure("update-error", vec![Case::of("one", 200, update)], report).await;
    let delete = vec![Case::once("one", 204, of_error("delete-error"))];
    fixture.measure("delete-error", delete, report).await;
    report.finish("Errors");
}
