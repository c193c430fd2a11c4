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
use shared::projects::api_key::ApiKeyRecord;
use shared::projects::project::Organization;
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
async fn invalid_explain_is_reported_with_other_violations() {
    let test = TestApp::start().await;
    for explain in ["yes", "", "TRUE", "1"] {
        let call = call(&body("", &json!([]))).query("explain", explain);
        let reply = call.key(&test.key).send(&test.app).await;
        assert_eq!(reply.problem(), (400, "validation_failed"), "{explain}");
        let violations = reply.violations();
        assert!(violations.contains(&("query:explain", "invalid_value")), "{violations:?}");
        assert!(violations.contains(&("/query", "too_short")), "{violations:?}");
    }
}

#[tokio::test]
async fn equal_requests_have_equal_responses() {
    let test = TestApp::start().await;
    let body = body("chrome or safri wihtout users", &json!([filter("browser", "is", "Firefox")]));
    let first = call(&body).key(&test.key).header("idempotency-key", "k").send(&test.app).await;
    assert_eq!(first.status, 200);
    for _ in 0..3 {
        let again = call(&body).key(&test.key).header("idempotency-key", "k").send(&test.app).await;
        assert_eq!((&again.body, again.headers.get("idempotency-replayed")), (&first.body, None));
    }
}

#[tokio::test]
async fn filters_of_unknown_categories_stay_unchanged() {
    let test = TestApp::start().await;
    let foreign = filter("gone", "matches", "  Ä ");
    let current = json!([foreign, filter("browser", "is", "Chrome")]);
    let kept = filters(&test, &body("safari", &current)).await;
    assert_eq!(kept, json!([foreign, filter("browser", "is", "Safari")]));
    let reset = filters(&test, &body("clear everything", &current)).await;
    assert_eq!(reset, json!([foreign]));
}

#[tokio::test]
async fn unknown_operators_of_known_categories_are_rejected() {
    let test = TestApp::start().await;
    let current = json!([filter("gone", "matches", "x"), filter("browser", "matches", "x")]);
    let reply = ask(&test, &body("safari", &current)).await;
    assert_eq!(reply.problem(), (400, "validation_failed"));
    assert_eq!(reply.violations(), [("/currentFilters/1/operator", "invalid_value")]);
}

#[tokio::test]
async fn all_violations_are_reported_together() {
    let test = TestApp::start().await;
    let wrong = json!({
        "query": "x".repeat(501),
        "categories": [{"id": "a", "label": "A"}, {"id": "a", "label": null, "values": [1]}],
        "currentFilters": [{"categoryId": "a", "operator": "like"}],
        "filters": [],
    });
    let reply = ask(&test, &wrong).await;
    assert_eq!(reply.problem(), (400, "validation_failed"));
    let mut violations = reply.violations();
    violations.sort_unstable();
    assert_eq!(
        violations,
        [
            ("/categories/1/id", "duplicate"),
            ("/categories/1/label", "required"),
            ("/categories/1/values/0", "invalid_type"),
            ("/currentFilters/0/operator", "invalid_value"),
            ("/currentFilters/0/value", "required"),
            ("/filters", "unknown_field"),
            ("/projectId", "required"),
            ("/query", "too_long"),
        ]
    );
    let reply = ask(&test, &json!([])).await;
    assert_eq!(reply.violations(), [("", "invalid_type")]);
    let reply = Call::of(INTERPRET).key(&test.key).bytes("{").send(&test.app).await;
    assert_eq!(reply.problem(), (400, "malformed_json"));
}

#[tokio::test]
async fn openapi_schema_matches_the_validation() {
    let test = TestApp::start().await;
    let schema = &OPENAPI["components"]["schemas"]["ErrorFilterQuestion"];
    let with = |pointer: &str, value: Value| {
        let mut body = body("safari", &json!([filter("browser", "is", "Chrome")]));
        *body.pointer_mut(pointer).unwrap() = value;
        body
    };
    let long = |count: usize| json!("ü".repeat(count));
    let category = |at: usize| json!({"id": format!("c{at}"), "label": ""});
    let categories = |count: usize| (0..count).map(category).collect::<Value>();
    let current = |count: usize| -> Value { vec![filter("gone", "is", "x"); count].into() };
    for (pointer, accepted, rejected) in [
        ("/query", long(500), json!(" \n ")),
        ("/categories", categories(50), categories(51)),
        ("/categories", json!([]), json!(null)),
        ("/categories/0/id", long(500), long(501)),
        ("/categories/0/id", json!("x y"), json!("")),
        ("/categories/0/label", json!(""), json!(null)),
        ("/categories/0/label", long(500), long(501)),
        ("/categories/0/values", json!(null), json!("Chrome")),
        ("/categories/0/values/0", long(500), long(501)),
        ("/categories/0/isNumeric", json!(null), json!("false")),
        ("/categories/0/isBoolean", json!(true), json!(1)),
        ("/categories/0/isArray", json!(true), json!([])),
        ("/currentFilters", current(50), current(51)),
        ("/currentFilters/0/operator", json!("not_contains"), json!(null)),
        ("/currentFilters/0/value", json!(""), json!(5)),
        ("/currentFilters/0/value", long(500), long(501)),
        ("/currentFilters/0", filter("gone", "", ""), json!({"categoryId": "gone"})),
        ("/projectId", json!(PROJECT), json!("\u{0}")),
    ] {
        let accepted = with(pointer, accepted);
        assert_valid(schema, &accepted);
        assert_eq!(ask(&test, &accepted).await.status, 200, "{pointer}");
        let rejected = with(pointer, rejected);
        let described = std::panic::catch_unwind(|| assert_valid(schema, &rejected)).is_ok();
        assert!(!described, "{pointer} {rejected}");
        let reply = ask(&test, &rejected).await;
        assert_eq!(reply.problem(), (400, "validation_failed"), "{pointer}");
        assert!(reply.violations()[0].0.starts_with(pointer), "{}", reply.body);
    }
}

#[tokio::test]
async fn inaccessible_projects_return_404() {
    let test = TestApp::start().await;
    let mut body = body("safari", &json!([]));
    let organization = Organization::parse("foreign").unwrap();
    let foreign = test.key_with(|key| ApiKeyRecord { organization, ..key }).await;
    let reply = call(&body).key(&foreign).send(&test.app).await;
    assert_eq!(reply.problem(), (404, "project_not_found"));
    for name in ["missing", "Not a slug", "", "01902f3c-0000-7000-8000-000000000000"] {
        body["projectId"] = json!(name);
        let reply = ask(&test, &body).await;
        assert_eq!(reply.problem(), (404, "project_not_found"), "{name}");
    }
    // Violations of the body are reported first.
    body["query"] = json!("");
    assert_eq!(ask(&test, &body).await.problem(), (400, "validation_failed"));
    body["query"] = json!("safari");
    body["projectId"] = json!(test.project_id.to_string());
    assert_eq!(ask(&test, &body).await.status, 200);
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

#[tokio::test]
async fn dynamodb_outages_return_503() {
    let mut test = TestApp::start().await;
    test.engine.kill();
    let reply = ask(&test, &body("safari", &json!([]))).await;
    assert_eq!(reply.problem(), (503, "unavailable"));
}
