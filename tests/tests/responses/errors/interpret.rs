//! Natural-language error filters.

use serde_json::{Value, json};

use crate::recording::{Recording, post};

const INTERPRET: &str = "/v0/errors/filters/interpret";

/// Returns filter categories: text with and without values, numbers, a boolean and a list.
fn categories() -> Value {
    let category = |id: &str, label: &str, values: Value, kind: &str| {
        json!({"id": id, "label": label, "values": values, "isNumeric": kind == "number",
            "isBoolean": kind == "truth", "isArray": kind == "list"})
    };
    json!([
        category(
            "browser",
            "Browser",
            json!(["Chrome", "Firefox", "Mobile Safari", "Safari", "Edge"]),
            ""
        ),
        category(
            "os",
            "Operating system",
            json!(["Windows", "macOS", "Linux", "iOS", "Android"]),
            ""
        ),
        category("environment", "Environment", json!(["production", "staging", "development"]), ""),
        category("level", "Level", json!(["fatal", "error", "warning", "info", "debug"]), ""),
        category(
            "country",
            "Country",
            json!(["Germany", "France", "New Zealand", "United States"]),
            ""
        ),
        category("release", "Release", json!(["1.2.3", "2.0.0-rc.1"]), ""),
        category("message", "Message", json!([]), ""),
        category("users", "Users affected", json!([]), "number"),
        category("events", "Events", json!([]), "number"),
        category("duration", "Duration (ms)", json!([]), "number"),
        category("handled", "Handled", json!([]), "truth"),
        category("tags", "Tags", json!(["checkout", "payments", "beta"]), "list"),
    ])
}

/// Queries without earlier filters.
const QUERIES: [&str; 70] = [
    "chrome",
    "Chrome or Firefox",
    "not chrome",
    "neither chrome nor edge",
    "safari on ios",
    "everything but windows",
    "all browsers except safari",
    "chrom",
    "wnidows",
    "production errors",
    "prod",
    "errors in staging",
    "fatal in production from germany",
    "new zealand",
    "united states, france and germany",
    "more than 100 users",
    "at least 5 users affected",
    "fewer than ten events",
    "between 10 and 20 users",
    "events over 1.5k",
    "two million events",
    "exactly 3 users",
    "users: 7",
    "users > 10 and events <= 500",
    "not more than 50 users",
    "slower than 2 seconds",
    "duration above 300 ms",
    "under half a second",
    "handled",
    "unhandled",
    "not handled",
    "handled is false",
    "tagged checkout",
    "tags payments and beta",
    "without the tag beta",
    "message contains timeout",
    "timeout in the message",
    "message does not contain \"out of memory\"",
    "subject contains invoice",
    "release 1.2.3",
    "release 2.0.0-rc.1 on android",
    "release is set",
    "without a release",
    "no browser",
    "with a country",
    "browser is chrome",
    "browser:firefox",
    "os = linux",
    "environment is not production",
    "browser=chrome os=windows level=error",
    "chrome, no wait, firefox",
    "I want to see all errors of mobile safari please",
    "show me warnings from linux users in france with more than 20 events",
    "Wie viele Fehler hat Firefox?",
    "CHROME AND NOT WINDOWS",
    "firefox/safari",
    "lovely weather today",
    "?!",
    "💥 chrome 💥",
    "last week",
    "yesterday in production",
    "events in the last 24 hours",
    "10",
    "1,000 users",
    "1.000 users",
    "-5 users",
    "twenty-one users or more",
    "chrome firefox safari edge",
    "don't show debug",
    "error level above 3",
];

/// Edits: the earlier filters (category, operator and value), and the query.
const EDITS: [(&[[&str; 3]], &str); 24] = [
    (&[["browser", "is", "Chrome"]], "also firefox"),
    (&[["browser", "is", "Chrome"]], "firefox"),
    (&[["browser", "is", "Chrome"]], "firefox instead"),
    (&[["browser", "is", "Chrome"]], "not chrome"),
    (&[["browser", "is", "Chrome"]], "remove chrome"),
    (&[["browser", "is", "Chrome"], ["os", "is", "Linux"]], "drop the browser filter"),
    (&[["browser", "is", "Chrome"], ["os", "is", "Linux"]], "any browser"),
    (&[["browser", "is", "Chrome"], ["os", "is", "Linux"]], "clear everything"),
    (&[["browser", "is", "Chrome"], ["os", "is", "Linux"]], "start over with safari"),
    (&[["browser", "is", "Chrome"], ["os", "is", "Linux"]], "keep only linux"),
    (&[["browser", "is", "Chrome"], ["os", "is", "Linux"]], "replace chrome with edge"),
    (&[["users", "gt", "10"]], "more than 20 users"),
    (&[["users", "gt", "10"]], "make that 5"),
    (&[["users", "gt", "10"]], "fewer than 50 users"),
    (&[["users", "gt", "10"], ["events", "lt", "5"]], "regardless of users"),
    (&[["browser", "is_not", "Safari"]], "safari"),
    (&[["release", "is_set", ""]], "without a release"),
    (&[["handled", "is", "true"]], "unhandled"),
    (&[["tags", "is", "beta"]], "and payments"),
    (&[["tags", "is", "beta"], ["tags", "is", "checkout"]], "without beta"),
    (&[["gone", "matches", " x "], ["browser", "is", "Chrome"]], "edge"),
    (&[["gone", "matches", " x "], ["browser", "is", "Chrome"]], "reset"),
    (&[["browser", "is", "Chrome"], ["browser", "is", "Chrome"]], "hello"),
    (&[["message", "contains", "timeout"]], "message contains disk too"),
];

/// Bodies that are rejected, or just accepted.
const BODIES: [(&str, &str); 16] = [
    ("no body", ""),
    ("not JSON", "{"),
    ("an array", "[]"),
    ("an empty object", "{}"),
    (
        "null everywhere",
        r#"{"projectId":null,"query":null,"categories":null,"currentFilters":null}"#,
    ),
    ("wrong types", r#"{"projectId":1,"query":2,"categories":{},"currentFilters":"x"}"#),
    ("an empty query", r#"{"projectId":"shop","query":"","categories":[],"currentFilters":[]}"#),
    (
        "a query of spaces",
        r#"{"projectId":"shop","query":" \n\t ","categories":[],"currentFilters":[]}"#,
    ),
    (
        "no categories",
        r#"{"projectId":"shop","query":"chrome","categories":[],"currentFilters":[]}"#,
    ),
    (
        "categories without members",
        r#"{"projectId":"shop","query":"a","categories":[{},1,null],"currentFilters":[]}"#,
    ),
    (
        "a category twice",
        r#"{"projectId":"shop","query":"a","categories":[{"id":"a","label":"A"},{"id":"a","label":""}],
        "currentFilters":[]}"#,
    ),
    (
        "wrong types in a category",
        r#"{"projectId":"shop","query":"a","categories":[{"id":"","label":1,"values":["a",1],
        "isNumeric":"no","isBoolean":0,"isArray":[],"kind":"x"}],"currentFilters":[]}"#,
    ),
    (
        "filters without members",
        r#"{"projectId":"shop","query":"a","categories":[],"currentFilters":[{},1]}"#,
    ),
    (
        "an unknown operator",
        r#"{"projectId":"shop","query":"a","categories":[{"id":"a","label":"A"}],"currentFilters":[
        {"categoryId":"a","operator":"like","value":"x"},{"categoryId":"b","operator":"like","value":"x"}]}"#,
    ),
    (
        "NUL and an unknown field",
        r#"{"projectId":"\u0000","query":"\u0000","categories":[],"currentFilters":[],"model":"x"}"#,
    ),
    (
        "an unknown project",
        r#"{"projectId":"missing","query":"a","categories":[],"currentFilters":[]}"#,
    ),
];

#[tokio::test]
async fn responses() {
    let mut recording = Recording::start("interpret").await;
    let r = &mut recording;
    let query_request = |query: &str, filters: &[[&str; 3]]| {
        let filter = |[category, operator, value]: &[&str; 3]| json!({"categoryId": category, "operator": operator, "value": value});
        let filters: Vec<Value> = filters.iter().map(filter).collect();
        // The recording omits the values that all requests share.
        let shown = json!({"currentFilters": filters, "query": query});
        let body = json!({"projectId": "shop", "query": query, "categories": categories(),
            "currentFilters": filters});
        post(INTERPRET).json(&body).shown(shown.to_string())
    };
    for query in QUERIES {
        r.send(query, query_request(query, &[])).await;
    }
    for (filters, query) in EDITS {
        let named: Vec<String> = filters.iter().map(|filter| filter.join(" ")).collect();
        let name = format!("after {}: {query}", named.join(", "));
        r.send(&name, query_request(query, filters)).await;
    }
    for (name, body) in BODIES {
        r.send(&format!("body: {name}"), post(INTERPRET).text(body)).await;
    }
    let with = |field: &str, value: Value| {
        let mut body =
            json!({"projectId": "shop", "query": "a", "categories": [], "currentFilters": []});
        body[field] = value;
        post(INTERPRET).json(&body)
    };
    let category = |values: usize| json!({"id": "a", "label": "A", "values": vec!["x"; values]});
    let filter = json!({"categoryId": "a", "operator": "is", "value": "x"});
    r.send("rejected: a long query", with("query", json!("ü".repeat(501)))).await;
    r.send("rejected: many categories", with("categories", json!(vec![json!({}); 51]))).await;
    r.send("rejected: many values", with("categories", json!([category(2_001)]))).await;
    r.send("rejected: many filters", with("currentFilters", json!(vec![filter; 51]))).await;
    let long = "é".repeat(501);
    let texts = json!([{"id": long, "label": long, "values": [long]}]);
    r.send("rejected: long texts", with("categories", texts)).await;
    r.send("by the project's id", with("projectId", json!("<project>"))).await;
    r.send("rejected: a large body", post(INTERPRET).text(" ".repeat(262_145))).await;
    let plain = post(INTERPRET).bytes("{}").header("content-type", "text/plain");
    r.send("rejected: plain text", plain).await;
    let key = with("query", json!("chrome")).header("idempotency-key", "key");
    r.send("an idempotency key is ignored", key).await;
    recording.finish();
}
