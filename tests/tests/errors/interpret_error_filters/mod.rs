//! interpret-error-filters with a real engine.

mod fake_model;
mod frames;
mod gold;
mod language;
mod model_fallback;
mod properties;
mod queries;
mod question;
mod rules;

use serde_json::{Value, json};

use shared::app::Operation;
use tests::app::{PROJECT, TestApp};
use tests::call::{Call, Reply};
use tests::contract::{OPENAPI, assert_valid};

const INTERPRET: &Operation = &::interpret_error_filters::OPERATION;

/// Returns the queries of three sets.
pub(super) fn all_queries() -> Vec<Value> {
    let files = [
        include_str!("queries/development.jsonl"),
        include_str!("queries/held-out.jsonl"),
        include_str!("queries/specified.jsonl"),
    ];
    let cases = files.into_iter().flat_map(|file| gold::Case::of_file(file).unwrap());
    cases.map(|case| case.request_field("query")).collect()
}

/// Returns the body of a query over two categories.
fn body(query: &str, current_filters: &Value) -> Value {
    json!({
        "projectId": PROJECT,
        "query": query,
        "categories": [
            {"id": "browser", "label": "Browser", "values": ["Chrome", "Firefox", "Safari"],
             "isNumeric": false, "isBoolean": false, "isArray": false},
            {"id": "users", "label": "Users affected", "values": [],
             "isNumeric": true, "isBoolean": false, "isArray": false},
        ],
        "currentFilters": current_filters,
    })
}

fn filter(category_id: &str, operator: &str, value: &str) -> Value {
    json!({"categoryId": category_id, "operator": operator, "value": value})
}

fn call(body: &Value) -> Call {
    Call::of(INTERPRET).json(body)
}

async fn ask(test: &TestApp, body: &Value) -> Reply {
    call(body).key(&test.key).send(&test.app).await
}

/// Returns the filters of a response.
async fn filters(test: &TestApp, body: &Value) -> Value {
    let reply = ask(test, body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body["filters"].clone()
}

#[tokio::test]
async fn queries_edit_the_current_filters() {
    let test = TestApp::start().await;
    let first = filters(&test, &body("not firefox, over 1.5k users", &json!([]))).await;
    assert_eq!(
        first,
        json!([filter("browser", "is_not", "Firefox"), filter("users", "gt", "1500")])
    );
    let second = filters(&test, &body("safari, drop the users filter", &first)).await;
    assert_eq!(second, json!([filter("browser", "is", "Safari")]));
    let third = filters(&test, &body("lovely weather today", &second)).await;
    assert_eq!(third, second);
}

#[tokio::test]
async fn openapi_examples_match_the_responses() {
    let test = TestApp::start().await;
    let examples = &OPENAPI["components"]["examples"];
    for (question, response) in [
        ("filter_question", "interpreted_filters"),
        ("filter_question_edit", "interpreted_filters_edit"),
    ] {
        let mut question = examples[question]["value"].clone();
        question["projectId"] = json!(PROJECT);
        assert_valid(&OPENAPI["components"]["schemas"]["ErrorFilterQuestion"], &question);
        let reply = ask(&test, &question).await;
        assert_eq!((reply.status, &reply.body), (200, &examples[response]["value"]));
    }
}

#[tokio::test]
async fn explanations_map_words_to_filters() {
    let test = TestApp::start().await;
    let examples = &OPENAPI["components"]["examples"];
    let mut question = examples["filter_question"]["value"].clone();
    question["projectId"] = json!(PROJECT);
    let explained =
        |body: &Value, explain: &str| call(body).key(&test.key).query("explain", explain);
    let reply = explained(&question, "true").send(&test.app).await;
    let expected = &examples["interpreted_filters_explained"]["value"];
    assert_eq!((reply.status, &reply.body), (200, expected));
    let plain = explained(&question, "false").send(&test.app).await;
    assert_eq!(plain.body, examples["interpreted_filters"]["value"]);

    // Spans count code points of the query as sent. A filter that stays has no span.
    let current = json!([filter("gone", "is", "x"), filter("browser", "is", "Chrome")]);
    let reply = explained(&body(" \u{a0}🦀é safari 🦀 zorblax\n", &current), "true");
    let reply = reply.send(&test.app).await;
    assert_eq!(
        reply.body["interpretation"],
        json!({
            "understood": [{"from": 5, "to": 11, "filters": [1]}],
            "ignored": [{"from": 14, "to": 21}],
        })
    );
}

#[tokio::test]
async fn warm_functions_do_not_call_dynamodb() {
    let test = TestApp::start().await;
    let body = body("safari", &json!([]));
    assert_eq!(ask(&test, &body).await.status, 200);
    test.round_trips();
    assert_eq!(ask(&test, &body).await.status, 200);
    assert_eq!(test.round_trips(), 0);
}
