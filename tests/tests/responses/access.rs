//! Authentication, preflight requests and DynamoDB failures for every operation.

use serde_json::json;
use shared::projects::api_key::{ApiKeyRecord, Scope};
use shared::projects::project::Organization;
use shared::timestamp::Timestamp;
use tests::scripted::{ScriptedReply, access, cancelled};

use crate::recording::{Recording, Request, Script, request};

const ID: &str = "01902f3c-0000-7000-8000-ffffffffffff";

/// A request for each operation with an API key, for missing resources.
const REQUESTS: [(&str, &str, &str, &str); 30] = [
    (
        "create-feature-flag",
        "POST",
        "/v0/project/shop/feature-flags",
        r#"{"key":"a","name":"a","type":"boolean"}"#,
    ),
    ("list-feature-flags", "GET", "/v0/project/shop/feature-flags", ""),
    ("get-feature-flag", "GET", "/v0/project/shop/feature-flags/missing", ""),
    ("update-feature-flag", "PATCH", "/v0/project/shop/feature-flags/missing", "{}"),
    ("delete-feature-flag", "DELETE", "/v0/project/shop/feature-flags/missing", ""),
    ("evaluate-feature-flags", "POST", "/v0/project/shop/ofrep/v1/evaluate/flags", "{}"),
    ("evaluate-feature-flag", "POST", "/v0/project/shop/ofrep/v1/evaluate/flags/missing", "{}"),
    (
        "create-insight",
        "POST",
        "/v0/projects/shop/replay-insights",
        r#"{"title":"a","painPoints":[{"id":"0b24dd5a-0000-4000-8000-00000000000a","sessionId":"s","occurredAt":"2026-11-20T10:00:00Z","title":"a"}]}"#,
    ),
    ("list-insights", "GET", "/v0/projects/shop/replay-insights", ""),
    ("get-insight", "GET", "/v0/projects/shop/replay-insights/{id}", ""),
    ("update-insight", "PATCH", "/v0/projects/shop/replay-insights/{id}", "{}"),
    (
        "add-pain-points",
        "POST",
        "/v0/projects/shop/replay-insights/{id}/pain-points",
        r#"{"painPoints":[{"id":"0b24dd5a-0000-4000-8000-00000000000b","sessionId":"s","occurredAt":"2026-11-20T10:00:00Z","title":"a"}]}"#,
    ),
    ("list-pain-points", "GET", "/v0/projects/shop/replay-insights/{id}/pain-points", ""),
    (
        "split-insight",
        "POST",
        "/v0/projects/shop/replay-insights/{id}/split",
        r#"{"painPointIds":["0b24dd5a-0000-4000-8000-00000000000a"]}"#,
    ),
    (
        "merge-insights",
        "POST",
        "/v0/projects/shop/replay-insights/{id}/merge",
        r#"{"into":"0b24dd5a-0000-4000-8000-00000000000a"}"#,
    ),
    (
        "create-event-marker-collection",
        "POST",
        "/v0/projects/shop/event-marker-collections",
        r#"{"name":"a"}"#,
    ),
    ("list-event-marker-collections", "GET", "/v0/projects/shop/event-marker-collections", ""),
    ("get-event-marker-collection", "GET", "/v0/projects/shop/event-marker-collections/{id}", ""),
    (
        "delete-event-marker-collection",
        "DELETE",
        "/v0/projects/shop/event-marker-collections/{id}",
        "",
    ),
    (
        "add-event-markers",
        "POST",
        "/v0/projects/shop/event-marker-collections/{id}/events",
        r#"{"events":[{"name":"a","occurredAt":"2026-11-20T10:00:00Z"}]}"#,
    ),
    ("list-event-markers", "GET", "/v0/projects/shop/event-marker-collections/{id}/events", ""),
    ("list-errors", "GET", "/v0/projects/shop/errors", ""),
    ("get-error", "GET", "/v0/projects/shop/errors/{id}", ""),
    ("update-error", "PATCH", "/v0/projects/shop/errors/{id}", "{}"),
    ("list-error-events", "GET", "/v0/projects/shop/errors/{id}/events", ""),
    (
        "interpret-error-filters",
        "POST",
        "/v0/errors/filters/interpret",
        r#"{"projectId":"shop","query":"a","categories":[],"currentFilters":[]}"#,
    ),
    (
        "query-error-timeseries",
        "POST",
        "/v0/errors/timeseries/query",
        r#"{"projectIds":["shop"],"limit":1}"#,
    ),
    ("get-email-preferences", "GET", "/v0/notifications/email-preferences", ""),
    (
        "update-email-preferences",
        "PUT",
        "/v0/notifications/email-preferences",
        r#"{"preferences":[]}"#,
    ),
    // Requires a DSN key instead.
    ("ingest-error-events", "POST", "/api/<ingest id>/envelope/", "{}\n"),
];

fn of((_, method, path, body): (&str, &'static str, &str, &str)) -> Request {
    let request = request(method, path.replace("{id}", ID));
    match body {
        "" => request,
        // A delivery's body states its own format, and its key is in the query.
        _ if path.starts_with("/api/") => {
            request.key(None).query("sentry_key", "<public key>").bytes(body)
        }
        _ => request.text(body),
    }
}

/// Invalid keys, by name.
const KEYS: [(&str, Option<&str>); 7] = [
    ("no key", None),
    ("nonsense for a key", Some("wm_nonsense")),
    ("a revoked key", Some("<revoked key>")),
    ("an expired key", Some("<expired key>")),
    ("a key without scopes", Some("<key without scopes>")),
    ("a key of another organization", Some("<foreign key>")),
    ("a key for another project", Some("<key elsewhere>")),
];

/// DynamoDB failures.
const SCRIPTS: [(&str, Script); 4] = [
    ("throttles", |_, _| {
        ScriptedReply::Error("ThrottlingException", json!({"message": "slow down"}))
    }),
    ("throttles after the key", |target, before| match (target, before) {
        ("BatchGetItem", 0) => access(),
        _ => ScriptedReply::Error("ThrottlingException", json!({"message": "slow down"})),
    }),
    ("has no such table", |target, before| match (target, before) {
        ("BatchGetItem", 0) => access(),
        _ => ScriptedReply::Error("ResourceNotFoundException", json!({"message": "secret"})),
    }),
    ("has nothing, and takes no transaction", |target, before| match (target, before) {
        ("BatchGetItem", 0) => access(),
        ("TransactWriteItems", _) => cancelled(&["TransactionConflict"]),
        _ => ScriptedReply::Response(json!({})),
    }),
];

#[tokio::test]
async fn responses() {
    let mut recording = Recording::start("access").await;
    let r = &mut recording;
    keys(r).await;

    for operation in REQUESTS {
        let name = operation.0;
        r.send(&format!("{name}: preflight"), request("OPTIONS", of(operation).path())).await;
        for (case, key) in KEYS {
            r.send(&format!("{name}: {case}"), of(operation).key(key)).await;
        }
        r.send(&format!("{name}: a permitted key"), of(operation)).await;
    }
    forms_of_keys(r).await;
    for (does, script) in SCRIPTS {
        for operation in REQUESTS {
            let name = format!("{}: a DynamoDB that {does}", operation.0);
            r.send_over(script, &name, of(operation)).await;
        }
    }
    // The transaction's last action stores the response.
    let scripts: [(usize, Script); 3] = [
        (0, |target, _| {
            conflict(
                target,
                &["None", "None", "None", "None", "None", "None", "TransactionConflict"],
            )
        }),
        (15, |target, _| conflict(target, &["None", "TransactionConflict"])),
        (19, |target, _| conflict(target, &["None", "None", "TransactionConflict"])),
    ];
    for (number, script) in scripts {
        let operation = REQUESTS[number];
        let twice = of(operation).header("idempotency-key", "key");
        r.send_over(script, &format!("{}: while a duplicate is still running", operation.0), twice)
            .await;
    }
    recording.finish();
}

/// Returns a DynamoDB response that cancels the transaction for these reasons.
fn conflict(target: &str, reasons: &[&str]) -> ScriptedReply {
    match target {
        "BatchGetItem" => access(),
        "TransactWriteItems" => cancelled(reasons),
        _ => ScriptedReply::Response(json!({})),
    }
}

async fn keys(r: &mut Recording) {
    let long_ago = Some(Timestamp::from_millis(0));
    let foreign = Organization::parse("foreign").unwrap();
    let other = local::demo::ensure_project(&r.test.app.store, "other", "Other").await.unwrap();
    r.create_key("<revoked key>", |key| ApiKeyRecord { revoked_at: long_ago, ..key }).await;
    r.create_key("<expired key>", |key| ApiKeyRecord { expires_at: long_ago, ..key }).await;
    r.create_key("<key without scopes>", |key| ApiKeyRecord { scopes: [].into(), ..key }).await;
    r.create_key("<foreign key>", |key| ApiKeyRecord { organization: foreign, ..key }).await;
    let elsewhere = Some([other].into());
    r.create_key("<key elsewhere>", |key| ApiKeyRecord { projects: elsewhere, ..key }).await;
    let reads = [Scope::FlagsRead].into();
    r.create_key("<key that reads>", |key| ApiKeyRecord { scopes: reads, ..key }).await;
}

/// Places of keys, and the checks that follow.
async fn forms_of_keys(r: &mut Recording) {
    let list = || request("GET", "/v0/project/shop/feature-flags").key(None);
    r.send("key: as bearer", list().header("authorization", "Bearer <key>")).await;
    r.send("key: as bearer in small letters", list().header("authorization", "bearer <key>")).await;
    r.send("key: basic", list().header("authorization", "Basic <key>")).await;
    r.send("key: bearer of nothing", list().header("authorization", "Bearer ")).await;
    let both = list().header("authorization", "Bearer wm_nonsense");
    r.send("key: in both places", both.header("x-api-key", "<key>")).await;
    r.send("key: empty", list().header("x-api-key", "")).await;
    r.send("key: of a DSN", list().header("x-api-key", "<public key>")).await;
    let by_rest = || request("GET", "/v0/project/shop/feature-flags").by_rest_api();
    r.send("REST API: list", by_rest()).await;
    let twice = by_rest().query("limit", 0).query("limit", 1).query("archived", "é&=+ ");
    r.send("REST API: a parameter twice", twice).await;
    r.send("REST API: a key twice", by_rest().header("x-api-key", "wm_nonsense")).await;
    let create = of(REQUESTS[0]).by_rest_api().header("idempotency-key", "rest");
    r.send("REST API: create", create.clone()).await;
    r.send("REST API: create again", create).await;
    r.send(
        "REST API: preflight",
        request("OPTIONS", "/v0/project/shop/feature-flags").by_rest_api(),
    )
    .await;
    r.send("REST API: delivery", of(REQUESTS[29]).by_rest_api()).await;
    let reads = |request: Request| request.key(Some("<key that reads>"));
    r.send("scope: it can read", reads(list())).await;
    let create = request("POST", "/v0/project/shop/feature-flags").text("{");
    r.send("scope: it cannot write", reads(create.clone())).await;
    let create = request("POST", "/v0/project/nowhere/feature-flags").text("{");
    r.send("scope: before the project", reads(create)).await;
    for (name, project) in [
        ("an id", "01902f3c-0000-4000-8000-000000000000"),
        ("no slug", "Not%20a%20slug"),
        ("another project", "other"),
        ("its id", "<project>"),
    ] {
        let list = request("GET", format!("/v0/project/{project}/feature-flags"));
        r.send(&format!("project: {name}"), list).await;
    }
}
