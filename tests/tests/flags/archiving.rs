//! Archiving, unarchiving and deleting flags.

use serde_json::json;
use tests::app::TestApp;

use super::{
    CREATE, DELETE, UPDATE, archive, call_for, change, create, creation, delete, etag, get,
    live_flags, set_live_flags, stored, update,
};

#[tokio::test]
async fn full_projects_cannot_unarchive_flags() {
    let test = TestApp::start().await;
    create(&test, "f", &json!({})).await;
    create(&test, "g", &json!({})).await;
    archive(&test, "f").await;
    set_live_flags(&test, 2_000).await;
    let before = stored(&test).await;
    let reply = update(&test, "f", json!({"archived": false})).await;
    assert_eq!(reply.problem(), (409, "flag_limit_reached"));
    assert_eq!(stored(&test).await, before);
    // Changes that need no capacity are possible.
    change(&test, "g", json!({"enabled": false})).await;
    assert_eq!(archive(&test, "g").await.status, 200);
    assert_eq!(live_flags(&test).await, 1_999);
    change(&test, "f", json!({"archived": false})).await;
    assert_eq!(live_flags(&test).await, 2_000);
}

#[tokio::test]
async fn reused_keys_have_distinct_entity_tags() {
    let test = TestApp::start().await;
    let first = create(&test, "f", &json!({})).await;
    assert_eq!(etag(&first), "\"1\"");
    assert_eq!(archive(&test, "f").await.status, 200);
    assert_eq!(delete(&test, "f").await.status, 204);
    test.round_trips();
    let body = creation("f", &json!({}));
    let call_again = test.call(CREATE).header("idempotency-key", "k").json(&body);
    let second = call_again.clone().send(&test.app).await;
    assert_eq!((second.status, &second.body["version"]), (201, &json!(1)), "{}", second.body);
    assert_eq!(test.round_trips(), 2, "only a reused key takes a second transaction");
    let id = second.body["id"].as_str().unwrap().to_owned();
    let tag = format!("\"1-{id}\"");
    assert_eq!(etag(&second), tag);
    let again = call_again.send(&test.app).await;
    assert_eq!((&again.body, etag(&again)), (&second.body, tag.as_str()));
    assert_eq!(etag(&get(&test, "f").await), tag);

    let patch = |tag: &str| {
        call_for(&test, UPDATE, "f").header("if-match", tag).json(&json!({"archived": true}))
    };
    for other in [etag(&first), &format!("\"1-{}\"", first.body["id"].as_str().unwrap())] {
        let reply = patch(other).send(&test.app).await;
        assert_eq!(reply.problem(), (412, "version_mismatch"), "{other}");
    }
    let changed = patch(&tag).send(&test.app).await;
    assert_eq!((changed.status, etag(&changed)), (200, format!("\"2-{id}\"").as_str()));
    let reply = call_for(&test, DELETE, "f").header("if-match", "\"2\"").send(&test.app).await;
    assert_eq!(reply.problem(), (412, "version_mismatch"));
    // The key also stays marked after a second deletion.
    assert_eq!(delete(&test, "f").await.status, 204);
    let third = create(&test, "f", &json!({})).await;
    assert_eq!(etag(&third), format!("\"1-{}\"", third.body["id"].as_str().unwrap()));
    // A key that was never used takes one round trip.
    test.round_trips();
    assert_eq!(etag(&create(&test, "g", &json!({})).await), "\"1\"");
    assert_eq!(test.round_trips(), 1);
}
