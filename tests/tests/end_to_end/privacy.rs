//! Logs contain no data of people and applications.

use reqwest::Method;
use serde_json::{Value, json};
use tests::app::PROJECT;
use tests::errors::project;
use tests::stack::Stack;

/// Returns requests with every kind of resource. All free text is `private`.
fn requests() -> Vec<(&'static str, String, Value)> {
    let insight = "0b24dd5a-0000-4000-8000-00000000000a";
    let insights = format!("/v0/projects/{PROJECT}/replay-insights");
    let pain_point = json!({
        "id": "0b24dd5a-0000-4000-8000-00000000000b", "sessionId": "private-session",
        "userId": "private-user@example.com", "occurredAt": "2026-11-21T04:16:00Z",
        "title": "private-title", "excerpt": "private-excerpt",
    });
    let flag = json!({
        "key": "private-key", "name": "private-name", "description": "private-description",
        "type": "string",
        "variants": [{"key": "private-variant", "name": "private-variant", "value": "private-value"}],
        "offVariant": "private-variant", "fallthrough": {"variant": "private-variant"},
        "targets": [{"kind": "user", "value": "private-user@example.com", "variant": "private-variant"}],
    });
    let event = json!({"name": "private-event", "occurredAt": "2026-11-21T04:16:00Z",
        "attributes": {"private-attribute": "private-value"}});
    let query = json!({
        "projectId": PROJECT, "query": "private words",
        "categories": [{"id": "private-category", "label": "private", "values": ["private-value"]}],
        "currentFilters": [],
    });
    vec![
        ("POST", format!("/v0/project/{PROJECT}/feature-flags"), flag),
        ("POST", insights.clone(), json!({"title": "private-title", "painPoints": [pain_point]})),
        ("GET", format!("{insights}?cursor=private-cursor"), Value::Null),
        ("PATCH", format!("{insights}/{insight}"), json!({"title": "private-title", "private": 1})),
        (
            "POST",
            format!("/v0/projects/{PROJECT}/event-marker-collections"),
            json!({"name": "private-name"}),
        ),
        (
            "POST",
            format!("/v0/projects/{PROJECT}/event-marker-collections/{insight}/events"),
            json!({"events": [event]}),
        ),
        (
            "PUT",
            "/v0/notifications/email-preferences".to_owned(),
            json!({"private-field": "private-value"}),
        ),
        (
            "POST",
            "/v0/errors/timeseries/query".to_owned(),
            json!({"projectIds": [PROJECT, "private-project"], "searchQuery": "private-search"}),
        ),
        ("POST", "/v0/errors/filters/interpret".to_owned(), query),
    ]
}

#[tokio::test]
async fn logs_contain_no_secrets_or_caller_data() {
    let stack = Stack::start().await;
    for (method, path, body) in requests() {
        let request = stack.with_key(method.parse().unwrap(), &path);
        let request = request.header("cookie", "private-cookie");
        let request = request.header("x-origin-secret", "private-secret-of-the-distribution");
        let request = request.header("user-agent", "private-agent");
        let request = if body.is_null() { request } else { request.json(&body) };
        let status = request.send().await.unwrap().status().as_u16();
        assert!((200..500).contains(&status), "{status}: {path}");
    }

    let project = project(&stack.store, stack.project_id).await;
    let path = format!("/api/{}/store/", project.ingest_id);
    let event = json!({
        "exception": {"values": [{"type": "PrivateError", "value": "private-message"}]},
        "user": {"id": "private-user", "email": "private-user@example.com", "ip_address": "192.0.2.77"},
        "request": {"url": "https://shop.example.com/private", "cookies": "private-cookie"},
    });
    for (key, status) in
        [(project.public_key.to_string(), 200), ("private-nonsense".to_owned(), 403)]
    {
        let auth =
            format!("Sentry sentry_version=7, sentry_key={key}, sentry_secret=private-secret");
        let request = stack.request(Method::POST, &path).header("x-sentry-auth", auth).json(&event);
        assert_eq!(request.send().await.unwrap().status().as_u16(), status, "{key}");
    }

    let logged = |log: &str| log.matches("\"message\":\"request\"").count();
    let log = stack.log_until(|log| logged(log) >= requests().len() + 2).await;
    let secret = &stack.key[20..];
    for private in ["rivate", secret, "192.0.2.77", "x-api-key", "uthorization", "sentry_key"] {
        // Unparseable input could have been logged unchanged.
        let logged = log.lines().find(|line| line.contains(private));
        assert_eq!(logged, None, "{private} is logged");
    }
}
