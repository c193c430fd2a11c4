//! Updates of flags.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tests::app::TestApp;

use super::{UPDATE, call_for, change, create, etag, get, on, stored, update};

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
