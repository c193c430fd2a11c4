//! Updates of flags.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::app::TestApp;

use super::{
    GET, UPDATE, call_for, change, create, create_dependent, etag, get, on, stored, update,
};

#[tokio::test]
async fn patches_change_only_their_fields() {
    let test = TestApp::start().await;
    let created = create(&test, "f", &json!({"description": "d"})).await;
    let mut expected = created.body.clone();
    test.pass(Duration::from_secs(90));
    expected["updatedAt"] = json!("2026-11-21T04:17:30.000Z");
    for (number, (field, sent, shown)) in [
        ("name", json!("  Checkout "), json!("Checkout")),
        ("description", json!(" new\n"), json!(" new\n")),
        ("enabled", json!(false), json!(false)),
        ("offVariant", json!(null), json!(null)),
        ("offVariant", json!("on"), json!("on")),
        (
            "fallthrough",
            json!({"rollout": [{"variant": "on", "weight": 12.5}, {"variant": "off", "weight": 1}]}),
            json!({"variant": null,
                "rollout": [{"variant": "on", "weight": 12.5}, {"variant": "off", "weight": 1}]}),
        ),
        ("fallthrough", json!({"variant": "off"}), json!({"variant": "off", "rollout": []})),
        (
            "rules",
            json!([{"id": "r", "name": " R ", "serve": {"variant": "on"},
                "conditions": [{"attribute": "a", "operator": "exists"}]}]),
            json!([{"id": "r", "name": "R", "serve": {"variant": "on", "rollout": []},
                "conditions": [{"attribute": "a", "operator": "exists", "values": []}]}]),
        ),
        (
            "targets",
            json!([{"kind": "identifier", "value": "u", "variant": "on"}]),
            json!([{"kind": "identifier", "value": "u", "variant": "on"}]),
        ),
        (
            "variants",
            json!([{"key": "on", "value": "true"}, {"key": "off", "value": "false"},
                {"key": "maybe", "value": "true"}]),
            json!([{"key": "on", "name": "on", "value": "true"},
                {"key": "off", "name": "off", "value": "false"},
                {"key": "maybe", "name": "maybe", "value": "true"}]),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let version = number + 2;
        expected[field] = shown;
        expected["version"] = json!(version);
        let reply = update(&test, "f", json!({ field: sent })).await;
        assert_eq!((reply.status, &reply.body), (200, &expected), "{field}");
        assert_eq!(etag(&reply), format!("\"{version}\""));
        let read = get(&test, "f").await;
        assert_eq!((&read.body, etag(&read)), (&expected, etag(&reply)));
    }
}

#[tokio::test]
async fn several_fields_are_one_change() {
    let test = TestApp::start().await;
    create(&test, "base", &json!({})).await;
    create(&test, "f", &json!({})).await;
    let mut patch = json!({"name": "N", "description": "D", "enabled": false, "archived": false});
    patch["prerequisites"] = on(&["base"])["prerequisites"].clone();
    let reply = change(&test, "f", patch.clone()).await;
    assert_eq!(etag(&reply), "\"2\"");
    test.pass(Duration::from_secs(1));
    let before = stored(&test).await;
    for nothing in [patch, json!({}), json!({"name": " N"}), json!({"fallthrough": {}})] {
        let again = change(&test, "f", nothing).await;
        assert_eq!((&again.body, etag(&again)), (&reply.body, "\"2\""));
    }
    assert_eq!(stored(&test).await, before);
}

#[tokio::test]
async fn patches_for_another_version_are_rejected() {
    let test = TestApp::start().await;
    create(&test, "f", &json!({})).await;
    change(&test, "f", json!({"name": "two"})).await;
    let conditional = |tags: &str, patch: Value| {
        call_for(&test, UPDATE, "f").header("if-match", tags).json(&patch)
    };
    for tags in ["\"1\"", "\"3\"", "2", "W/\"2\"", "\"1\", \"3\"", ""] {
        for patch in [json!({"name": "t"}), json!({}), json!({"archived": true})] {
            let reply = conditional(tags, patch).send(&test.app).await;
            assert_eq!(reply.problem(), (412, "version_mismatch"), "{tags}");
        }
    }
    for (tags, version) in [("\"2\"", "\"3\""), ("*", "\"4\""), ("\"9\", \"4\"", "\"5\"")] {
        let reply = conditional(tags, json!({"name": version})).send(&test.app).await;
        assert_eq!((reply.status, etag(&reply)), (200, version));
    }
}

#[tokio::test]
async fn one_of_concurrent_patches_for_a_version_succeeds() {
    let test = TestApp::start().await;
    create(&test, "f", &json!({})).await;
    let patches = (0..8).map(|number| {
        let call = call_for(&test, UPDATE, "f").header("if-match", "\"1\"");
        call.json(&json!({"name": number.to_string()})).send(&test.app)
    });
    let replies = join_all(patches).await;
    let held = replies.iter().filter(|reply| reply.status == 200).count();
    let rejected = replies.iter().filter(|r| r.problem() == (412, "version_mismatch")).count();
    assert_eq!((held, rejected), (1, 7));
}

#[tokio::test]
async fn concurrent_patches_of_different_fields_all_apply() {
    let test = TestApp::start().await;
    create(&test, "base", &json!({})).await;
    create(&test, "f", &json!({})).await;
    let patches = [
        json!({"name": "t"}),
        json!({"description": "d"}),
        json!({"enabled": false}),
        json!({"offVariant": "on"}),
        on(&["base"]),
    ];
    let replies = join_all(patches.into_iter().map(|patch| update(&test, "f", patch))).await;
    assert!(replies.iter().all(|reply| reply.status == 200));
    let reply = get(&test, "f").await;
    let shown =
        ["name", "description", "enabled", "offVariant"].map(|field| reply.body[field].clone());
    assert_eq!(shown, [json!("t"), json!("d"), json!(false), json!("on")]);
    assert_eq!(reply.body["prerequisites"], on(&["base"])["prerequisites"]);
    assert_eq!(etag(&reply), "\"6\"");
}

#[tokio::test]
async fn stored_flags_are_read_back_unchanged() {
    let test = TestApp::start().await;
    create(&test, "base", &json!({})).await;
    let mut members = on(&["base"]);
    members["type"] = json!("json");
    members["name"] = json!("é\"\\");
    members["variants"] = json!([
        {"key": "A.b-c_1", "name": "", "value": "{\"a\": [1.50, null]}"},
        {"key": "b", "name": "B", "value": "[]"},
    ]);
    members["prerequisites"][0]["variant"] = json!("off");
    members["offVariant"] = json!(null);
    members["fallthrough"] = json!({"rollout": [
        {"variant": "b", "weight": 0.001}, {"variant": "b", "weight": 0},
        {"variant": "A.b-c_1", "weight": 1_000_000},
    ]});
    members["targets"] = json!([{"kind": "identifier", "value": "é", "variant": "b"}]);
    members["rules"] = json!([
        {"serve": {"variant": null, "rollout": []}},
        {"id": "x", "name": "X", "serve": {"variant": "b"}, "conditions": [
            {"attribute": "v", "operator": "semver_less_than_or_equal", "values": ["2.0.0-rc.1"]},
            {"attribute": "$now", "operator": "after", "values": ["2026-12-01T00:00:00+01:00"]},
            {"attribute": "ip", "operator": "in_cidr", "values": ["10.0.0.0/8", "::1"]},
        ]},
    ]);
    let created = create(&test, "f", &members).await;
    assert_eq!(get(&test, "f").await.body, created.body);
    let none = json!({"type": "string", "prerequisites": []});
    let created = create(&test, "draft", &none).await;
    assert_eq!(get(&test, "draft").await.body, created.body);
    create_dependent(&test, "top", &["base"]).await;
    let sent = call_for(&test, GET, "top").send(&test.app).await.text;
    assert!(sent.starts_with("{\"id\":\""), "{sent}");
}
