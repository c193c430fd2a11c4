//! Notification email preferences.

use serde_json::json;

use shared::projects::api_key::{ApiKeyRecord, UserId};

use crate::recording::{Recording, get, put};

const PREFERENCES: &str = "/v0/notifications/email-preferences";

/// Bodies, in order.
const UPDATES: [(&str, &str); 22] = [
    ("one", r#"{"preferences":[{"type":"billing","emailEnabled":false}]}"#),
    ("one: again", r#"{"preferences":[{"type":"billing","emailEnabled":false}]}"#),
    (
        "two",
        r#"{"preferences":[{"type":"weekly_digest","emailEnabled":false},{"type":"billing","emailEnabled":true}]}"#,
    ),
    ("none", r#"{"preferences":[]}"#),
    (
        "one twice, the same",
        r#"{"preferences":[{"type":"flag_changed","emailEnabled":false},
        {"type":"flag_changed","emailEnabled":false}]}"#,
    ),
    (
        "one twice, differently",
        r#"{"preferences":[{"type":"flag_changed","emailEnabled":true},
        {"type":"flag_changed","emailEnabled":false}]}"#,
    ),
    ("rejected: an empty object", "{}"),
    ("rejected: null", r#"{"preferences":null}"#),
    ("rejected: no body", ""),
    ("rejected: not JSON", "{preferences}"),
    ("rejected: an array", r#"[{"type":"billing","emailEnabled":false}]"#),
    ("rejected: an object of preferences", r#"{"preferences":{"billing":false}}"#),
    ("rejected: an unknown type", r#"{"preferences":[{"type":"Billing","emailEnabled":false}]}"#),
    ("rejected: no type", r#"{"preferences":[{"emailEnabled":false}]}"#),
    (
        "rejected: no choice",
        r#"{"preferences":[{"type":"billing"},{"type":"billing","emailEnabled":null}]}"#,
    ),
    (
        "rejected: a choice of text",
        r#"{"preferences":[{"type":"billing","emailEnabled":"false"}]}"#,
    ),
    ("rejected: a type that is a number", r#"{"preferences":[{"type":1,"emailEnabled":0}]}"#),
    ("rejected: items that are no objects", r#"{"preferences":[1,"billing",null,[]]}"#),
    (
        "rejected: unknown fields",
        r#"{"preferences":[{"type":"billing","emailEnabled":true,"smsEnabled":true}],"all":false}"#,
    ),
    (
        "rejected: a field twice",
        r#"{"preferences":[{"type":"billing","type":"billing","emailEnabled":true}],"preferences":[]}"#,
    ),
    ("rejected: NUL", r#"{"preferences":[{"type":"billing\u0000","emailEnabled":true}]}"#),
    (
        "rejected: all of it or nothing",
        r#"{"preferences":[{"type":"billing","emailEnabled":false},{"type":"x","emailEnabled":false}]}"#,
    ),
];

#[tokio::test]
async fn responses() {
    let mut recording = Recording::start("notifications").await;
    let r = &mut recording;
    let ann = |key| ApiKeyRecord { user: UserId::parse("ann").unwrap(), ..key };
    r.create_key("<key of ann>", ann).await;

    r.send("get: before any choice", get(PREFERENCES)).await;
    for (name, body) in UPDATES {
        r.send(&format!("update, {name}"), put(PREFERENCES).text(body)).await;
    }
    let many = json!({"preferences": vec![json!({"type": "billing", "emailEnabled": true}); 101]});
    r.send("update, rejected: too many", put(PREFERENCES).json(&many)).await;
    r.send("update, rejected: a large body", put(PREFERENCES).text(" ".repeat(262_145))).await;
    let plain = put(PREFERENCES).bytes(UPDATES[0].1).header("content-type", "text/plain");
    r.send("update, rejected: plain text", plain).await;
    let latin = put(PREFERENCES).bytes(b"{\"\xe9\": 1}".as_slice());
    r.send("update, rejected: Latin-1", latin).await;
    r.send("get: after all updates", get(PREFERENCES)).await;
    r.send("get: by another user", get(PREFERENCES).key(Some("<key of ann>"))).await;
    let off = r#"{"preferences":[{"type":"insight_new","emailEnabled":false}]}"#;
    r.send("update: by another user", put(PREFERENCES).text(off).key(Some("<key of ann>"))).await;
    r.send("get: not changed by another user", get(PREFERENCES)).await;
    recording.finish();
}
