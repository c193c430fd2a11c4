//! Updates of insights.

use futures_util::future::join_all;
use serde_json::json;
use tests::app::TestApp;

use super::{UPDATE, add, call_for, create, etag, get, id_of, merge, split, update};

#[tokio::test]
async fn changes_increment_the_version() {
    let test = TestApp::start().await;
    let id = create(&test, 0..3).await;
    add(&test, &id, [3]).await;
    assert_eq!(etag(&get(&test, &id).await), "\"2\"");
    // Each change of the pain points increments the version.
    let split_off = id_of(&split(&test, &id, [1]).await);
    assert_eq!(etag(&get(&test, &id).await), "\"3\"");
    merge(&test, &split_off, &id).await;
    assert_eq!(etag(&get(&test, &id).await), "\"4\"");
    // The passage of time does not.
    test.pass(std::time::Duration::from_hours(24 * 40));
    let reply = get(&test, &id).await;
    assert_eq!((etag(&reply), &reply.body["occurrences"]), ("\"4\"", &json!(0)));
}

#[tokio::test]
async fn one_of_concurrent_patches_for_a_version_succeeds() {
    let test = TestApp::start().await;
    let id = create(&test, 0..3).await;
    let patches = (0..8).map(|number| {
        let call = call_for(&test, UPDATE, &id).header("if-match", "\"1\"");
        call.json(&json!({"title": number.to_string()})).send(&test.app)
    });
    let replies = join_all(patches).await;
    let held = replies.iter().filter(|reply| reply.status == 200).count();
    let rejected = replies.iter().filter(|r| r.problem() == (412, "version_mismatch")).count();
    assert_eq!((held, rejected), (1, 7));
}

#[tokio::test]
async fn concurrent_patches_and_uploads_all_apply() {
    let test = TestApp::start().await;
    let id = create(&test, 0..3).await;
    let patches = [
        json!({"title": "t"}),
        json!({"description": "d"}),
        json!({"status": "ignored"}),
        json!({"viewed": true}),
    ];
    let updating = join_all(patches.into_iter().map(|patch| update(&test, &id, patch)));
    let (updated, added) = tokio::join!(updating, add(&test, &id, [3]));
    assert!(updated.iter().all(|reply| reply.status == 200) && added.status == 200);
    let reply = get(&test, &id).await;
    let shown = ["title", "description", "status", "viewed", "occurrences"]
        .map(|field| reply.body[field].clone());
    assert_eq!(shown, [json!("t"), json!("d"), json!("ignored"), json!(true), json!(4)]);
    assert_eq!(etag(&reply), "\"6\"");
}
