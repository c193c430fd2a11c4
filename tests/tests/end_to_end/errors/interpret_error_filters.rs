//! `/v0/errors/filters/interpret`.

use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tests::app::PROJECT;
use tests::stack::{Stack, send};

const INTERPRET: &str = "interpret-error-filters";

fn request(stack: &Stack) -> RequestBuilder {
    stack.http.post(format!("{}/v0/errors/filters/interpret", stack.base_url))
}

/// Returns the body of a page for a query and its filters.
fn body(query: &str, current_filters: &Value) -> Value {
    json!({
        "projectId": PROJECT,
        "query": query,
        "categories": [
            {"id": "env", "label": "Environment", "values": ["production", "staging"]},
            {"id": "browser", "label": "Browser", "values": ["Chrome", "Firefox", "Safari"]},
            {"id": "users", "label": "Users affected", "isNumeric": true},
        ],
        "currentFilters": current_filters,
    })
}

pub(super) async fn queries_become_filters_that_narrow_errors(stack: &Stack) {
    let mut filters = json!([]);
    for (query, expected) in [
        ("prod errors in Firefox", "env is production; browser is Firefox"),
        (
            "also Safari, more than twenty users",
            "env is production; browser is Firefox; browser is Safari; users gt 20",
        ),
        ("drop firefox", "env is production; browser is Safari; users gt 20"),
        ("start over with staging", "env is staging"),
    ] {
        let reply = send(
            INTERPRET,
            request(stack).header("x-api-key", &stack.key).json(&body(query, &filters)),
        )
        .await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        filters = reply.body["filters"].clone();
        let text = |filter: &Value| {
            let field = |name: &str| filter[name].as_str().unwrap().to_owned();
            format!("{} {} {}", field("categoryId"), field("operator"), field("value"))
        };
        let texts: Vec<String> = filters.as_array().unwrap().iter().map(text).collect();
        assert_eq!(texts.join("; "), expected, "{query}");
    }
    let reply = send(INTERPRET, request(stack).json(&body("staging", &json!([])))).await;
    assert_eq!(reply.problem(), (401, "missing_api_key"));
    let reply = send(INTERPRET, request(stack).bearer_auth(&stack.key).json(&json!({}))).await;
    assert_eq!(reply.problem(), (400, "validation_failed"));
    assert_eq!(reply.violations().len(), 4);
}
