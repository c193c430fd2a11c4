//! Updates of insights.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::app::TestApp;

use super::{UPDATE, add, call_for, create, etag, get, id_of, merge, split, stored, update};

#[tokio::test]
async fn patches_change_only_their_fields() {
    let test = TestApp::start().await;
    let id = create(&test, 0..3).await;
    let mut expected = get(&test, &id).await.body;
    for (number, (field, sent, shown)) in [
        ("title", json!("  Payment "), json!("Payment")),
        ("description", json!(" d\n"), json!(" d\n")),
        ("status", json!("resolved"), json!("resolved")),
        ("status", json!("ignored"), json!("ignored")),
        ("status", json!("open"), json!("open")),
        ("viewed", json!(true), json!(true)),
        ("viewed", json!(false), json!(false)),
    ]
    .into_iter()
    .enumerate()
    {
        expected[field] = shown;
        let reply = update(&test, &id, json!({ field: sent })).await;
        assert_eq!((reply.status, &reply.body), (200, &expected));
        assert_eq!(etag(&reply), format!("\"{}\"", number + 2));
        assert_eq!(get(&test, &id).await.body, expected);
    }
    let all = json!({"title": "t", "description": "d", "status": "resolved", "viewed": true});
    let reply = update(&test, &id, all.clone()).await;
    for (field, value) in all.as_object().unwrap() {
        assert_eq!(&reply.body[field], value);
    }
    assert_eq!(etag(&reply), "\"9\"", "one patch is one change");
}

#[tokio::test]
async fn null_resets_optional_fields_only() {
    let test = TestApp::start().await;
    let id = create(&test, 0..3).await;
    let created = get(&test, &id).await.body;
    let patch = json!({"description": "d", "status": "resolved", "viewed": true});
    update(&test, &id, patch).await;
    let reply = update(&test, &id, json!({"title": null, "viewed": null})).await;
    assert_eq!(reply.violations(), [("/title", "required")]);
    assert_eq!(etag(&get(&test, &id).await), "\"2\"");
    let nulls = json!({"description": null, "status": null, "viewed": null});
    let reply = update(&test, &id, nulls.clone()).await;
    assert_eq!((&reply.body, etag(&reply)), (&created, "\"3\""));
    assert_eq!(etag(&update(&test, &id, nulls).await), "\"3\"");
}

#[tokio::test]
async fn empty_changes_keep_the_version() {
    let test = TestApp::start().await;
    let id = create(&test, 0..3).await;
    let before = stored(&test).await;
    for patch in [
        json!({}),
        json!({"title": " Checkout "}),
        json!({"title": "Checkout", "description": null, "status": "open", "viewed": false}),
    ] {
        let reply = update(&test, &id, patch).await;
        assert_eq!((reply.status, etag(&reply)), (200, "\"1\""));
    }
    assert_eq!(stored(&test).await, before);
}

#[tokio::test]
async fn all_violations_are_listed_and_nothing_changes() {
    let test = TestApp::start().await;
    let id = create(&test, 0..3).await;
    let before = stored(&test).await;
    for (patch, violations) in [
        (json!([]), vec![("", "invalid_type")]),
        (json!("title"), vec![("", "invalid_type")]),
        (json!({"status": "merged"}), vec![("/status", "invalid_value")]),
        (json!({"status": "Open"}), vec![("/status", "invalid_value")]),
        (
            json!({"status": "closed", "viewed": 1}),
            vec![("/status", "invalid_value"), ("/viewed", "invalid_type")],
        ),
        (
            json!({"title": "x".repeat(201), "description": "x".repeat(2_001)}),
            vec![("/title", "too_long"), ("/description", "too_long")],
        ),
        (
            json!({"title": "a\nb", "description": 5}),
            vec![("/title", "invalid_format"), ("/description", "invalid_type")],
        ),
        (
            json!({"mergedInto": null, "occurrences": 5}),
            vec![("/mergedInto", "unknown_field"), ("/occurrences", "unknown_field")],
        ),
    ] {
        let reply = update(&test, &id, patch.clone()).await;
        assert_eq!(reply.problem(), (400, "validation_failed"), "{patch}");
        assert_eq!(reply.violations(), violations, "{patch}");
    }
    assert_eq!(stored(&test).await, before);
    let longest = json!({"title": "é".repeat(200), "description": "é".repeat(2_000)});
    assert_eq!(update(&test, &id, longest).await.status, 200);
}

#[tokio::test]
async fn json_and_merge_patch_types_are_accepted() {
    let test = TestApp::start().await;
    let id = create(&test, 0..3).await;
    for (media_type, status) in [
        ("application/json", 200),
        ("application/merge-patch+json", 200),
        ("Application/Merge-Patch+JSON; charset=utf-8", 200),
        ("application/json-patch+json", 415),
        ("text/plain", 415),
    ] {
        let call = call_for(&test, UPDATE, &id).header("content-type", media_type);
        let reply = call.bytes("{\"viewed\": true}").send(&test.app).await;
        assert_eq!(reply.status, status, "{media_type}");
    }
    let reply = call_for(&test, UPDATE, &id).bytes("{\"viewed\": true}").send(&test.app).await;
    assert_eq!((reply.status, etag(&reply)), (200, "\"2\""));
    for operation in [super::CREATE, super::ADD, super::SPLIT, super::MERGE] {
        let call = call_for(&test, operation, &id);
        let call = call.header("content-type", "application/merge-patch+json").bytes("{}");
        let reply = call.send(&test.app).await;
        assert_eq!(reply.problem(), (415, "unsupported_media_type"), "{}", operation.name);
    }
}

#[tokio::test]
async fn patches_for_another_version_are_rejected() {
    let test = TestApp::start().await;
    let id = create(&test, 0..3).await;
    add(&test, &id, [3]).await;
    let conditional = |tags: &str, patch: Value| {
        call_for(&test, UPDATE, &id).header("if-match", tags).json(&patch)
    };
    for tags in ["\"1\"", "\"3\"", "2", "W/\"2\"", "\"1\", \"3\"", ""] {
        for patch in [json!({"title": "t"}), json!({})] {
            let reply = conditional(tags, patch).send(&test.app).await;
            assert_eq!(reply.problem(), (412, "version_mismatch"), "{tags}");
        }
    }
    let reply = conditional("\"2\"", json!({"title": "t"})).send(&test.app).await;
    assert_eq!((reply.status, etag(&reply)), (200, "\"3\""));
    let reply = conditional("\"2\"", json!({"title": "t"})).send(&test.app).await;
    assert_eq!(reply.problem(), (412, "version_mismatch"));
    for (tags, version) in [("*", "\"4\""), ("\"9\", \"4\"", "\"5\"")] {
        let reply = conditional(tags, json!({"title": version})).send(&test.app).await;
        assert_eq!((reply.status, etag(&reply)), (200, version));
    }
    // Each change of the pain points increments the version.
    let split_off = id_of(&split(&test, &id, [1]).await);
    assert_eq!(etag(&get(&test, &id).await), "\"6\"");
    merge(&test, &split_off, &id).await;
    assert_eq!(etag(&get(&test, &id).await), "\"7\"");
    // The passage of time does not.
    test.pass(std::time::Duration::from_hours(24 * 40));
    let reply = get(&test, &id).await;
    assert_eq!((etag(&reply), &reply.body["occurrences"]), ("\"7\"", &json!(0)));
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

#[tokio::test]
async fn status_changes_move_insights_between_lists() {
    let test = TestApp::start().await;
    let id = create(&test, 0..3).await;
    for status in ["resolved", "ignored", "open"] {
        update(&test, &id, json!({"status": status})).await;
        for listed in ["open", "resolved", "ignored", "merged"] {
            let list = super::call(&test, super::LIST).query("status", listed);
            let count = test.pages(&list, 10).await.concat().len();
            assert_eq!(count, usize::from(listed == status), "{listed} of {status}");
        }
    }
}
