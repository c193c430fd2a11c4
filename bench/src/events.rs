//! Lambda events, as an API Gateway HTTP API sends them.

use axum::body::Bytes;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value as Json, json};

use insights::PainPointId;
use notifications::notification_type::NotificationType;
use shared::projects::project::Project;

/// The routes of the measured operations, as in `template.yaml`.
pub(crate) const CREATE_FLAG: &str = "POST /v0/project/{idOrSlug}/feature-flags";
pub(crate) const DELETE_COLLECTION: &str =
    "DELETE /v0/projects/{idOrSlug}/event-marker-collections/{collectionId}";
pub(crate) const SPLIT_INSIGHT: &str =
    "POST /v0/projects/{idOrSlug}/replay-insights/{insightId}/split";
pub(crate) const EVALUATE_FLAG: &str = "POST /v0/project/{idOrSlug}/ofrep/v1/evaluate/flags/{key}";
pub(crate) const EVALUATE_FLAGS: &str = "POST /v0/project/{idOrSlug}/ofrep/v1/evaluate/flags";
pub(crate) const INTERPRET_FILTERS: &str = "POST /v0/errors/filters/interpret";
pub(crate) const LIST_ERRORS: &str = "GET /v0/projects/{idOrSlug}/errors";
pub(crate) const GET_ERROR: &str = "GET /v0/projects/{idOrSlug}/errors/{errorId}";
pub(crate) const UPDATE_ERROR: &str = "PATCH /v0/projects/{idOrSlug}/errors/{errorId}";
pub(crate) const QUERY_ERRORS: &str = "POST /v0/projects/{idOrSlug}/errors/query";
pub(crate) const BREAK_DOWN_ERRORS: &str = "POST /v0/errors/breakdown/query";
pub(crate) const QUERY_TIMESERIES: &str = "POST /v0/errors/timeseries/query";
pub(crate) const SEND_ENVELOPE: &str = "POST /api/{ingestId}/envelope/";
pub(crate) const UPDATE_PREFERENCES: &str = "PUT /v0/notifications/email-preferences";

/// A request to a route.
pub(crate) struct Request<'r> {
    pub(crate) route: &'static str,
    /// The names and values of the path parameters.
    pub(crate) parameters: &'r [(&'r str, &'r str)],
    pub(crate) api_key: &'r str,
    pub(crate) body: Option<&'r Json>,
    pub(crate) idempotency_key: Option<&'r str>,
    /// `true` if the request sends `cache-control: no-cache`.
    pub(crate) no_cache: bool,
}

impl<'r> Request<'r> {
    /// Returns a request without parameters, body and idempotency key.
    pub(crate) fn new(route: &'static str, api_key: &'r str) -> Self {
        Self { route, parameters: &[], api_key, body: None, idempotency_key: None, no_cache: false }
    }

    /// Returns the request as a Lambda event.
    pub(crate) fn event(&self) -> Bytes {
        let Self { route, parameters, api_key, body, idempotency_key, no_cache } = self;
        let mut event = gateway_event(route, parameters);
        event["headers"]["x-api-key"] = json!(api_key);
        if let Some(body) = body {
            let body = body.to_string();
            event["headers"]["content-length"] = json!(body.len().to_string());
            event["headers"]["content-type"] = json!("application/json");
            event["body"] = json!(body);
        }
        if *no_cache {
            event["headers"]["cache-control"] = json!("no-cache");
        }
        if let Some(key) = idempotency_key {
            event["headers"]["idempotency-key"] = json!(key);
        }
        event.to_string().into()
    }
}

/// Returns the event of an SDK's request that sends a gzip-compressed envelope to a project.
pub(crate) fn compressed_envelope(project: &Project, envelope: &[u8]) -> Bytes {
    const SDK: &str = "sentry.python.django/2.75.0";
    let (ingest_id, key) = (project.ingest_id.to_string(), project.public_key);
    let mut event = gateway_event(SEND_ENVELOPE, &[("ingestId", &ingest_id)]);
    let headers = &mut event["headers"];
    headers["content-encoding"] = json!("gzip");
    headers["content-length"] = json!(envelope.len().to_string());
    headers["content-type"] = json!("application/x-sentry-envelope");
    headers["user-agent"] = json!(SDK);
    headers["x-sentry-auth"] =
        json!(format!("Sentry sentry_key={key}, sentry_version=7, sentry_client={SDK}"));
    event["body"] = json!(BASE64.encode(envelope));
    event["isBase64Encoded"] = json!(true);
    event.to_string().into()
}

/// Returns the event of a request without a body.
fn gateway_event(route: &str, parameters: &[(&str, &str)]) -> Json {
    const USER_AGENT: &str =
        "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
    const HOST: &str = "a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com";
    let (method, path) = route.split_once(' ').unwrap_or(("GET", route));
    let mut path = path.to_owned();
    for (name, value) in parameters {
        path = path.replace(&format!("{{{name}}}"), value);
    }
    let mut event = json!({
        "version": "2.0",
        "routeKey": route,
        "rawPath": path,
        "rawQueryString": "",
        "headers": {
            "accept": "application/json",
            "accept-encoding": "gzip, deflate, br",
            "host": HOST,
            "user-agent": USER_AGENT,
            "x-amzn-trace-id": "Root=1-68a5e988-bd862e3fe1be46a994272793",
            "x-forwarded-for": "203.0.113.7",
            "x-forwarded-port": "443",
            "x-forwarded-proto": "https",
        },
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "a1b2c3d4e5",
            "domainName": HOST,
            "domainPrefix": "a1b2c3d4e5",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "203.0.113.7",
                "userAgent": USER_AGENT,
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": route,
            "stage": "$default",
            "time": "28/Aug/2026:19:38:56 +0000",
            "timeEpoch": 1_787_945_936_000_u64,
        },
        "isBase64Encoded": false,
    });
    // API Gateway omits the field if a route has no parameters.
    if !parameters.is_empty() {
        event["pathParameters"] = parameters.iter().map(|(name, value)| (*name, *value)).collect();
    }
    event
}

/// Returns the event that EventBridge Scheduler sends for a schedule without an input.
pub(crate) fn schedule() -> Bytes {
    let event = json!({
        "version": "0",
        "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "account": "123456789012",
        "time": "2026-08-28T19:38:00Z",
        "region": "eu-west-1",
        "resources": [
            "arn:aws:scheduler:eu-west-1:123456789012:schedule/default/waymark-PurgeEventMarkers",
        ],
        "detail": "{}",
    });
    event.to_string().into()
}

/// Returns all preferences, as a settings page saves them. `number` varies them.
pub(crate) fn preferences(number: usize) -> Json {
    let types = NotificationType::ALL.iter().enumerate();
    let preferences = types.map(|(index, notification_type)| {
        json!({"type": notification_type, "emailEnabled": (number + index).is_multiple_of(2)})
    });
    json!({"preferences": preferences.collect::<Vec<_>>()})
}

/// Returns the body of a split that moves pain points to a new insight.
pub(crate) fn split(moved: &[PainPointId]) -> Json {
    json!({
        "painPointIds": moved,
        "title": "Nothing happens on Pay",
        "description": "Split off since only customers with a saved card meet it.",
    })
}

/// Returns a typical flag: 3 variants, 3 rules with 2 conditions each, a rollout, 2 targets.
pub(crate) fn typical_flag(number: usize) -> Json {
    let condition = |attribute: &str, operator: &str, values: &[&str]| json!({"attribute": attribute, "operator": operator, "values": values});
    json!({
        "key": format!("checkout-{number:012x}"),
        "name": "New checkout",
        "type": "string",
        "description": "The checkout on one page. Ask team Payments before you turn it off.",
        "enabled": true,
        "variants": [
            {"key": "control", "name": "As before", "value": "three-pages"},
            {"key": "one-page", "name": "One page", "value": "one-page"},
            {"key": "express", "name": "One page, wallet first", "value": "one-page-express"},
        ],
        "offVariant": "control",
        "fallthrough": {"variant": null, "rollout": [
            {"variant": "control", "weight": 80},
            {"variant": "one-page", "weight": 12.5},
            {"variant": "express", "weight": 7.5},
        ]},
        "rules": [
            {
                "name": "Staff",
                "conditions": [
                    condition("email", "ends_with", &["@example.com", "@example.org"]),
                    condition("role", "not_in", &["contractor", "intern"]),
                ],
                "serve": {"variant": "one-page", "rollout": []},
            },
            {
                "name": "Paying customers with the new app",
                "conditions": [
                    condition("plan", "in", &["team", "business", "enterprise"]),
                    condition("appVersion", "semver_greater_than_or_equal", &["4.12.0"]),
                ],
                "serve": {"variant": null, "rollout": [
                    {"variant": "control", "weight": 50},
                    {"variant": "one-page", "weight": 50},
                ]},
            },
            {
                "name": "Countries with wallets",
                "conditions": [
                    condition("country", "in", &["DE", "AT", "CH", "NL", "DK", "SE"]),
                    condition("signedUpAt", "after", &["2026-01-01T00:00:00Z"]),
                ],
                "serve": {"variant": "express", "rollout": []},
            },
        ],
        "targets": [
            {"kind": "identifier", "value": "user-7f3a1c", "variant": "express"},
            {"kind": "identifier", "value": "user-02bd94", "variant": "control"},
        ],
    })
}

/// Returns a typical flag with ten violations.
pub(crate) fn invalid_flag() -> Json {
    let mut flag = typical_flag(0);
    let violations = [
        ("/key", json!("not a key")),
        ("/name", json!("")),
        ("/enabled", json!("yes")),
        ("/description", json!(17)),
        ("/offVariant", json!("missing")),
        ("/fallthrough/rollout/1/weight", json!(-1)),
        ("/rules/0/conditions/0/operator", json!("like")),
        ("/rules/1/conditions/1/values/0", json!("v4")),
        ("/rules/2/conditions/1/values/0", json!("yesterday")),
        ("/targets/1/kind", json!("segment")),
    ];
    for (pointer, invalid) in violations {
        if let Some(value) = flag.pointer_mut(pointer) {
            *value = invalid;
        }
    }
    flag
}

/// Returns a flag just under the size limit, with 100 rules, each with a list of values.
pub(crate) fn largest_flag(number: usize) -> Json {
    let mut flag = typical_flag(number);
    let rules: Vec<Json> = (0..100)
        .map(|rule| {
            let values: Vec<String> =
                (0..90).map(|value| format!("customer-{rule:03}-{value:03}")).collect();
            json!({
                "name": format!("Customers of wave {rule}"),
                "conditions": [{"attribute": "customer", "operator": "in", "values": values}],
                "serve": {"variant": "one-page", "rollout": []},
            })
        })
        .collect();
    flag["rules"] = json!(rules);
    flag
}
