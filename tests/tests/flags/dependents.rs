//! Restrictions for flags that depend on others.

use serde_json::{Value, json};
use tests::app::TestApp;

use super::{
    archive, change, create, create_dependent, delete, evaluate, get, live_flags, on, stored,
    update,
};

/// Creates flags: `top` and `other` require `base` to be on; `other` also requires `base2` to be
/// off.
async fn dependents(test: &TestApp) {
    create(test, "base", &json!({})).await;
    create(test, "base2", &json!({})).await;
    create_dependent(test, "top", &["base"]).await;
    let mut members = on(&["base", "base2"]);
    members["prerequisites"][1]["variant"] = json!("off");
    create(test, "other", &members).await;
}

fn variants(keys: &[&str]) -> Value {
    let variant = |key: &&str| json!({"key": key, "value": "true"});
    json!({ "variants": keys.iter().map(variant).collect::<Vec<_>>() })
}

#[tokio::test]
async fn required_flags_cannot_be_archived() {
    let test = TestApp::start().await;
    dependents(&test).await;
    let before = stored(&test).await;
    let reply = archive(&test, "base").await;
    assert_eq!(reply.problem(), (409, "flag_in_use"));
    let detail = reply.body["detail"].as_str().unwrap();
    assert!(detail.contains("that you remove: other, top."), "{detail}");
    // Also not together with other changes.
    let both = json!({"archived": true, "name": "n", "prerequisites": []});
    assert_eq!(update(&test, "base", both).await.problem(), (409, "flag_in_use"));
    assert_eq!(delete(&test, "base").await.problem(), (409, "flag_not_archived"));
    assert_eq!(stored(&test).await, before);

    change(&test, "top", json!({"prerequisites": null})).await;
    let reply = archive(&test, "base").await;
    let detail = reply.body["detail"].as_str().unwrap();
    assert!(detail.contains("that you remove: other."), "{detail}");
    // An archived flag depends on nothing.
    assert_eq!(archive(&test, "other").await.status, 200);
    assert_eq!(archive(&test, "base").await.status, 200);
    assert_eq!(delete(&test, "base").await.status, 204);
    assert_eq!(live_flags(&test).await, 2);
}

#[tokio::test]
async fn required_variants_cannot_be_removed() {
    let test = TestApp::start().await;
    dependents(&test).await;
    let without = |keys: &[&str], serve: &str| {
        let mut patch = variants(keys);
        patch["offVariant"] = json!(serve);
        patch["fallthrough"] = json!({ "variant": serve });
        patch
    };
    let before = stored(&test).await;
    let reply = update(&test, "base", without(&["off"], "off")).await;
    assert_eq!(reply.problem(), (409, "flag_in_use"));
    assert!(reply.body["detail"].as_str().unwrap().contains("other, top"));
    let reply = update(&test, "base2", without(&["on", "new"], "on")).await;
    assert!(reply.body["detail"].as_str().unwrap().contains("that you remove: other."));
    assert_eq!(stored(&test).await, before);
    // Other variants can be removed: no flag requires `off` of `base` or `on` of `base2`.
    change(&test, "base", without(&["on", "new"], "on")).await;
    change(&test, "base2", without(&["off"], "off")).await;
    assert_eq!(get(&test, "base2").await.body["variants"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn disabling_is_never_rejected() {
    let test = TestApp::start().await;
    dependents(&test).await;
    assert_eq!(evaluate(&test, "top", json!({})).await.body["reason"], "DEFAULT");
    for key in ["base", "base2", "top", "other"] {
        change(&test, key, json!({"enabled": false})).await;
        change(&test, key, json!({"enabled": true})).await;
    }
    change(&test, "base", json!({"enabled": false})).await;
    test.pass(std::time::Duration::from_secs(5));
    let reply = evaluate(&test, "top", json!({})).await;
    assert_eq!(reply.body["metadata"]["prerequisite"], "base");
    assert_eq!((&reply.body["reason"], &reply.body["value"]), (&json!("DISABLED"), &json!(false)));
}

#[tokio::test]
async fn long_lists_of_dependents_are_shortened() {
    let test = TestApp::start().await;
    create(&test, "base", &json!({})).await;
    for number in 0..13 {
        create_dependent(&test, &format!("top-{number:02}"), &["base"]).await;
    }
    let reply = archive(&test, "base").await;
    let detail = reply.body["detail"].as_str().unwrap();
    assert!(detail.contains("top-00, ") && detail.contains("top-09 and 3 more."), "{detail}");
}

#[tokio::test]
async fn cycles_are_rejected_and_shown() {
    let test = TestApp::start().await;
    create(&test, "a", &json!({})).await;
    create_dependent(&test, "b", &["a"]).await;
    create_dependent(&test, "c", &["b"]).await;
    create(&test, "free", &json!({})).await;
    let before = stored(&test).await;
    let reply = update(&test, "a", on(&["free", "c"])).await;
    assert_eq!(reply.violations(), [("/prerequisites/1", "cycle")]);
    let message = reply.body["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("a → c → b → a"), "{message}");
    assert_eq!(stored(&test).await, before);
    change(&test, "a", on(&["free"])).await;
    // The opposite direction has no cycle.
    change(&test, "b", json!({"prerequisites": []})).await;
    change(&test, "a", on(&["free", "c"])).await;
}

#[tokio::test]
async fn chains_have_at_most_ten_flags() {
    let test = TestApp::start().await;
    create(&test, "f1", &json!({})).await;
    for depth in 2..=9 {
        create_dependent(&test, &format!("f{depth}"), &[&format!("f{}", depth - 1)]).await;
    }
    create(&test, "leaf", &json!({})).await;
    create_dependent(&test, "stem", &["leaf"]).await;
    let reply = update(&test, "f1", on(&["leaf", "stem"])).await;
    assert_eq!(reply.violations(), [("/prerequisites/1", "too_deep")]);
    let message = reply.body["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("f9 → f8") && message.contains("f1 → stem → leaf"), "{message}");
    change(&test, "f1", on(&["leaf"])).await;
    let reply = update(&test, "leaf", on(&["stem"])).await;
    assert_eq!(reply.violations(), [("/prerequisites/0", "cycle")]);
    let create = test.call(super::CREATE).json(&super::creation("f11", &on(&["f9"])));
    assert_eq!(create.send(&test.app).await.violations(), [("/prerequisites/0", "too_deep")]);
    change(&test, "f1", json!({"prerequisites": []})).await;
    create_dependent(&test, "f10", &["f9"]).await;
}

#[tokio::test]
async fn prerequisites_must_fit_the_other_flags() {
    let test = TestApp::start().await;
    create(&test, "f", &json!({})).await;
    create(&test, "archived", &json!({})).await;
    archive(&test, "archived").await;
    create(&test, "draft", &json!({"type": "string"})).await;
    let reply = update(&test, "f", on(&["f2", "archived", "draft"])).await;
    assert_eq!(
        reply.violations(),
        [
            ("/prerequisites/0/flagKey", "unknown_flag"),
            ("/prerequisites/1/flagKey", "flag_archived"),
            ("/prerequisites/2/variant", "unknown_variant"),
        ]
    );
    // Existing prerequisites can change only in order and in the required variant.
    create_dependent(&test, "top", &["f"]).await;
    create(&test, "g", &json!({})).await;
    change(&test, "top", on(&["f", "g"])).await;
    change(&test, "top", on(&["g", "f"])).await;
    let mut off = on(&["g", "f"]);
    off["prerequisites"][0]["variant"] = json!("off");
    change(&test, "top", off.clone()).await;
    assert_eq!(get(&test, "top").await.body["prerequisites"], off["prerequisites"]);
}

#[tokio::test]
async fn unarchived_flags_are_checked_again() {
    let test = TestApp::start().await;
    create(&test, "base", &json!({})).await;
    create(&test, "gone", &json!({})).await;
    create(&test, "poor", &json!({})).await;
    create(&test, "knot", &json!({})).await;
    create_dependent(&test, "top", &["base", "gone", "poor", "knot"]).await;
    archive(&test, "top").await;
    archive(&test, "base").await;
    archive(&test, "gone").await;
    delete(&test, "gone").await;
    let mut patch = variants(&["off"]);
    patch["fallthrough"] = json!({"variant": "off"});
    change(&test, "poor", patch).await;
    let before = stored(&test).await;
    let reply = update(&test, "top", json!({"archived": false})).await;
    let codes = ["flag_archived", "unknown_flag", "unknown_variant"];
    assert_eq!(reply.violations(), codes.map(|code| ("/archived", code)));
    let message = reply.body["errors"][1]["message"].as_str().unwrap();
    assert!(message.contains("gone"), "{message}");
    assert_eq!(stored(&test).await, before);
    // The same request can fix the violation.
    let mut patch = on(&["knot"]);
    patch["archived"] = json!(false);
    change(&test, "top", patch).await;
    // No flag can depend on an archived one.
    archive(&test, "top").await;
    let reply = update(&test, "knot", on(&["top"])).await;
    assert_eq!(reply.violations(), [("/prerequisites/0/flagKey", "flag_archived")]);
}

#[tokio::test]
async fn flags_that_would_close_a_cycle_stay_archived() {
    let test = TestApp::start().await;
    create(&test, "a", &json!({})).await;
    create_dependent(&test, "b", &["a"]).await;
    create_dependent(&test, "c", &["b"]).await;
    archive(&test, "c").await;
    archive(&test, "b").await;
    // c no longer depends on b, so a can depend on a new flag b.
    delete(&test, "b").await;
    create(&test, "b", &json!({})).await;
    change(&test, "a", on(&["b"])).await;
    change(&test, "c", json!({"archived": false})).await;
    let reply = update(&test, "b", on(&["c"])).await;
    assert_eq!(reply.violations(), [("/prerequisites/0", "cycle")]);
    archive(&test, "c").await;
    let reply = update(&test, "b", on(&["a"])).await;
    assert_eq!(reply.violations(), [("/prerequisites/0", "cycle")]);
}
