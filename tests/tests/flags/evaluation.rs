//! Evaluation responses, byte for byte as `OpenFeature`'s providers need them.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use tests::app::{TestApp, left_out};
use tests::call::{Call, Gateway, Reply};

use super::{
    EVALUATE, EVALUATE_ALL, TABLE, archive, call, call_for, change, create, create_dependent,
    damage, etag, evaluate, evaluate_all, keys, on,
};

fn split() -> Value {
    json!({"rollout": [{"variant": "on", "weight": 1}, {"variant": "off", "weight": 1}]})
}

/// Returns the end of a response from its metadata on, with additional fields after the project.
fn metadata(test: &TestApp, version: u64, more: &str) -> String {
    let project = test.project_id;
    format!(r#""metadata":{{"version":"{version}","flagSetId":"{project}"{more}}}}}"#)
}

fn is_json(reply: &Reply) -> bool {
    reply.headers["content-type"] == "application/json"
}

#[tokio::test]
async fn each_step_has_its_response() {
    let test = TestApp::start().await;
    let mut members = json!({
        "targets": [{"kind": "identifier", "value": "vip", "variant": "off"}],
        "rules": [
            {"id": "staff", "serve": {"variant": "on"},
                "conditions": [{"attribute": "user.team", "operator": "in", "values": ["core"]}]},
            {"id": "half", "serve": split(),
                "conditions": [{"attribute": "beta", "operator": "equals", "values": ["true"]}]},
        ],
        "fallthrough": {"variant": "off"},
    });
    create(&test, "f", &members).await;
    members["fallthrough"] = split();
    members["rules"] = json!([]);
    create(&test, "s", &members).await;
    create(&test, "plain", &json!({})).await;
    create(&test, "disabled", &json!({"enabled": false})).await;
    create_dependent(&test, "top", &["disabled"]).await;
    create(&test, "draft", &json!({"type": "string"})).await;
    create(&test, "nothing", &json!({"enabled": false, "offVariant": null})).await;
    let team = json!({"user": {"team": "core"}});
    for (key, context, expected, more) in [
        (
            "f",
            json!({"targetingKey": "vip", "beta": true}),
            r#""value":false,"reason":"TARGETING_MATCH","variant":"off""#,
            r#","targeted":true"#,
        ),
        (
            "f",
            team,
            r#""value":true,"reason":"TARGETING_MATCH","variant":"on""#,
            r#","ruleId":"staff","bucketed":false"#,
        ),
        (
            "f",
            json!({"targetingKey": "user-1", "beta": true}),
            r#""value":true,"reason":"TARGETING_MATCH","variant":"on""#,
            r#","ruleId":"half","bucketed":true"#,
        ),
        ("f", json!({}), r#""value":false,"reason":"DEFAULT","variant":"off""#, ""),
        (
            "s",
            json!({"targetingKey": "user-1"}),
            r#""value":false,"reason":"SPLIT","variant":"off""#,
            r#","bucketed":true"#,
        ),
        ("plain", json!({}), r#""value":true,"reason":"STATIC","variant":"on""#, ""),
        ("disabled", json!({}), r#""value":false,"reason":"DISABLED","variant":"off""#, ""),
        (
            "top",
            json!({}),
            r#""value":false,"reason":"DISABLED","variant":"off""#,
            r#","prerequisite":"disabled""#,
        ),
        ("draft", json!({}), r#""reason":"DEFAULT","variant":"""#, ""),
        ("nothing", json!({}), r#""reason":"DISABLED","variant":"""#, ""),
    ] {
        let reply = evaluate(&test, key, context.clone()).await;
        let expected = format!(r#"{{"key":"{key}",{expected},{}"#, metadata(&test, 1, more));
        assert_eq!((reply.status, &reply.text), (200, &expected), "{key} {context}");
        assert!(is_json(&reply) && !reply.headers.contains_key("etag"));
    }
}

#[tokio::test]
async fn individuals_have_the_same_bucket_as_in_flagd() {
    let test = TestApp::start().await;
    // Places out of 100,000, as calculated in `docs/semantics/feature-flags.md`, "Bucketing".
    for (key, individual, place) in [
        ("new-checkout", "user-1", 45_498),
        ("new-checkout", "user-2", 22_979),
        ("new-checkout", "user-3", 77_126),
        ("new-checkout", "user-é", 9_711),
        ("dark-mode", "user-1", 25_474),
        ("dark-mode", "user-2", 5_854),
    ] {
        let rollout = |first: u32| {
            json!({"fallthrough": {"rollout": [
                {"variant": "on", "weight": first}, {"variant": "off", "weight": 100_000 - first},
            ]}})
        };
        let test_call = async |first: u32| {
            if super::call_for(&test, super::GET, key).send(&test.app).await.status == 404 {
                create(&test, key, &rollout(first)).await;
            } else {
                change(&test, key, rollout(first)).await;
            }
            // Current flags are read at most once a second.
            test.pass(Duration::from_secs(1));
            let context = json!({"context": {"targetingKey": individual}});
            let call = call_for(&test, EVALUATE, key).header("cache-control", "no-cache");
            call.json(&context).send(&test.app).await.body["variant"].clone()
        };
        assert_eq!(test_call(place).await, "off", "{key} {individual}");
        assert_eq!(test_call(place + 1).await, "on", "{key} {individual}");
    }
}

#[tokio::test]
async fn values_have_the_type_of_their_flag() {
    let test = TestApp::start().await;
    for (key, flag_type, values, written) in [
        ("s", "string", vec!["a\"é\n"], r#""a\"é\n""#),
        ("n1", "number", vec!["1", "2"], "1"),
        ("n2", "number", vec!["1", "0.5"], "1.0"),
        ("j", "json", vec![r#"{"a": [1.50]}"#], r#"{"a": [1.50]}"#),
        ("l", "json", vec!["[]"], "[]"),
    ] {
        let variants: Vec<Value> = values
            .iter()
            .enumerate()
            .map(|(index, value)| json!({"key": format!("v{index}"), "value": value}))
            .collect();
        create(&test, key, &json!({"type": flag_type, "variants": variants})).await;
        let sent = evaluate(&test, key, json!({})).await.text;
        let expected = format!(r#""value":{written},"reason":"STATIC","variant":"v0""#);
        assert!(sent.contains(&expected), "{sent}");
    }
}

#[tokio::test]
async fn bulk_evaluations_are_sorted_and_include_failures() {
    let test = TestApp::start().await;
    assert_eq!(
        evaluate_all(&test, json!({})).await.text,
        format!(r#"{{"flags":[],"metadata":{{"flagSetId":"{}"}}}}"#, test.project_id)
    );
    test.pass(std::time::Duration::from_secs(5));
    create(&test, "c", &json!({"enabled": false})).await;
    create(&test, "b", &json!({"fallthrough": split()})).await;
    create_dependent(&test, "a", &["c"]).await;
    create(&test, "B", &json!({})).await;
    create(&test, "gone", &json!({})).await;
    archive(&test, "gone").await;
    let reply = evaluate_all(&test, json!({})).await;
    let flags = [
        format!(r#"{{"key":"B","value":true,"reason":"STATIC","variant":"on",{}"#, metadata(&test, 1, "")),
        format!(
            r#"{{"key":"a","value":false,"reason":"DISABLED","variant":"off",{}"#,
            metadata(&test, 1, r#","prerequisite":"c""#)
        ),
        r#"{"key":"b","errorCode":"TARGETING_KEY_MISSING","errorDetails":"the context has no targetingKey, which a rollout of the flag b requires"}"#.to_owned(),
        format!(r#"{{"key":"c","value":false,"reason":"DISABLED","variant":"off",{}"#, metadata(&test, 1, "")),
    ];
    let expected = format!(
        r#"{{"flags":[{}],"metadata":{{"flagSetId":"{}"}}}}"#,
        flags.join(","),
        test.project_id
    );
    assert_eq!((reply.status, &reply.text), (200, &expected));
    assert!(is_json(&reply));
    // Each item equals the flag's single evaluation.
    let context = json!({"targetingKey": "u"});
    let all = evaluate_all(&test, context.clone()).await;
    for item in all.body["flags"].as_array().unwrap() {
        let key = item["key"].as_str().unwrap();
        assert_eq!(item, &evaluate(&test, key, context.clone()).await.body);
    }
}

#[tokio::test]
async fn unreadable_flags_fail_only_with_their_dependents() {
    let test = TestApp::start().await;
    for key in ["bad1", "bad2", "bad3", "good"] {
        create(&test, key, &json!({})).await;
    }
    create_dependent(&test, "top", &["bad1"]).await;
    let attribute = |text: &str| AttributeValue::S(text.to_owned());
    damage(&test, "bad1", "definition", attribute("{")).await;
    damage(&test, "bad2", "version", attribute("x")).await;
    let lost = r#"{"variants":[],"offVariant":"off","fallthrough":{"variant":"on","rollout":[]},"rules":[],"targets":[]}"#;
    damage(&test, "bad3", "definition", attribute(lost)).await;
    let reply = evaluate_all(&test, json!({})).await;
    assert_eq!(reply.status, 200);
    assert_eq!(keys(&reply.body["flags"]), ["bad1", "bad2", "bad3", "good", "top"]);
    for item in reply.body["flags"].as_array().unwrap() {
        let key = item["key"].as_str().unwrap();
        let code = if key == "good" { json!(null) } else { json!("PARSE_ERROR") };
        assert_eq!(item["errorCode"], code, "{item}");
        let alone = evaluate(&test, key, json!({})).await;
        assert_eq!((alone.status, &alone.body), (if key == "good" { 200 } else { 400 }, item));
    }
    let details = &reply.body["flags"][0]["errorDetails"];
    assert_eq!(details, "the stored flag bad1 is corrupted: it cannot be read");
    let project = test.project_id.to_string();
    let reported = |key: &str| left_out(&format!("{project}, key {key}"));
    assert_eq!(reported("bad1"), BTreeSet::from([(TABLE, "definition")]));
    assert_eq!(reported("bad2"), BTreeSet::from([(TABLE, "version")]));
    assert!(reported("good").is_empty());
    // Stored cycles and overlong chains also end as failures.
    let prerequisite = |key: &str| {
        AttributeValue::L(vec![AttributeValue::M(
            [("flagKey".to_owned(), attribute(key)), ("variant".to_owned(), attribute("on"))]
                .into(),
        )])
    };
    create(&test, "knot", &json!({})).await;
    damage(&test, "knot", "prerequisites", prerequisite("knot")).await;
    let reply = evaluate(&test, "knot", json!({})).await;
    assert_eq!((reply.status, &reply.body["errorCode"]), (400, &json!("PARSE_ERROR")));
    for number in 0..12 {
        create(&test, &format!("f{number}"), &json!({})).await;
        let below = prerequisite(&format!("f{}", number + 1));
        damage(&test, &format!("f{number}"), "prerequisites", below).await;
    }
    create(&test, "f12", &json!({})).await;
    for (number, status) in [(0, 400), (2, 400), (3, 200), (12, 200)] {
        let reply = evaluate(&test, &format!("f{number}"), json!({})).await;
        assert_eq!(reply.status, status, "f{number}: {}", reply.text);
    }
}

fn all_unless(test: &TestApp, tag: &str, context: &Value) -> Call {
    let call = call(test, EVALUATE_ALL).header("if-none-match", tag);
    call.json(&json!({ "context": context }))
}

#[tokio::test]
async fn cached_responses_return_304() {
    let test = TestApp::start().await;
    let rule = json!({"serve": {"variant": "off"}, "conditions": [
        {"attribute": "plan", "operator": "equals", "values": ["free"]},
    ]});
    create(&test, "f", &json!({"rules": [rule]})).await;
    let (free, paid) = (json!({"plan": "free"}), json!({"plan": "paid"}));
    let reply = evaluate_all(&test, free.clone()).await;
    let tag = etag(&reply).to_owned();
    for tags in [&tag, &format!("W/{tag}"), &format!("\"x\", {tag}"), "*"] {
        for gateway in [Gateway::HttpApi, Gateway::RestApi] {
            let same = all_unless(&test, tags, &free).gateway(gateway).send(&test.app).await;
            assert_eq!((same.status, same.text.as_str(), etag(&same)), (304, "", tag.as_str()));
            assert!(!same.headers.contains_key("content-type"));
        }
    }
    let bare = tag.trim_matches('"').to_owned();
    for tags in ["\"x\"", "", bare.as_str()] {
        assert_eq!(all_unless(&test, tags, &free).send(&test.app).await.text, reply.text, "{tags}");
    }
    // The tag covers the response: another context has another tag, even for the same flags.
    let other = all_unless(&test, &tag, &paid).send(&test.app).await;
    assert_eq!(other.status, 200);
    assert_ne!(etag(&other), tag);
    change(&test, "f", json!({"name": "n"})).await;
    test.pass(std::time::Duration::from_secs(5));
    let changed = all_unless(&test, &tag, &free).send(&test.app).await;
    assert_eq!(
        (changed.status, &changed.body["flags"][0]["metadata"]["version"]),
        (200, &json!("2"))
    );
    // Single evaluations have no tag.
    let one = call_for(&test, EVALUATE, "f").header("if-none-match", "*");
    assert_eq!(one.json(&json!({})).send(&test.app).await.status, 200);
}

#[tokio::test]
async fn prerequisites_use_the_same_context() {
    let test = TestApp::start().await;
    let rule = json!({"serve": {"variant": "off"}, "conditions": [
        {"attribute": "plan", "operator": "equals", "values": ["free"]},
    ]});
    create(&test, "paid", &json!({"rules": [rule]})).await;
    create_dependent(&test, "middle", &["paid"]).await;
    create_dependent(&test, "top", &["paid", "middle"]).await;
    let reply = evaluate(&test, "top", json!({"plan": "pro"})).await;
    assert_eq!((&reply.body["value"], &reply.body["reason"]), (&json!(true), &json!("DEFAULT")));
    let reply = evaluate(&test, "top", json!({"plan": "free"})).await;
    assert_eq!(reply.body["metadata"]["prerequisite"], "paid");
    // A disabled flag does not meet the prerequisite, even if its off variant is the required one.
    let mut off = on(&["paid"]);
    off["prerequisites"][0]["variant"] = json!("off");
    create(&test, "inverse", &off).await;
    assert_eq!(evaluate(&test, "inverse", json!({"plan": "free"})).await.body["value"], true);
    change(&test, "paid", json!({"enabled": false})).await;
    test.pass(std::time::Duration::from_secs(5));
    assert_eq!(evaluate(&test, "inverse", json!({"plan": "free"})).await.body["value"], false);
}

#[tokio::test]
async fn releases_can_be_scheduled() {
    let test = TestApp::start().await;
    let rule = json!({"serve": {"variant": "on"}, "conditions": [
        {"attribute": "$now", "operator": "after", "values": ["2026-11-21T04:16:01Z"]},
    ]});
    let members = json!({"rules": [rule], "fallthrough": {"variant": "off"}});
    create(&test, "f", &members).await;
    assert_eq!(evaluate(&test, "f", json!({})).await.body["value"], false);
    // The flag is cached, the time is not.
    test.pass(std::time::Duration::from_millis(1_001));
    assert_eq!(evaluate(&test, "f", json!({})).await.body["value"], true);
}

#[tokio::test]
async fn expensive_contexts_fail_only_for_the_flag() {
    let test = TestApp::start().await;
    let patterns: Vec<String> = (0..250).map(|at| format!("[a-z]{{20}}!{at}")).collect();
    let conditions = json!([{"attribute": "text", "operator": "matches", "values": patterns}]);
    let rules =
        |conditions: &Value| json!([{"conditions": conditions, "serve": {"variant": "on"}}]);
    create(&test, "many", &json!({"rules": rules(&conditions)})).await;
    create(&test, "plain", &json!({})).await;
    // A context that exceeds the limit for a segment is neither in it nor outside it.
    let conditions =
        json!([{"attribute": "text", "operator": "matches", "values": patterns[..25]}]);
    let segment = json!({"key": "slow", "name": "Slow", "conditions": conditions});
    let created = call(&test, &create_segment::OPERATION).json(&segment).send(&test.app).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let outside = json!([{"operator": "not_in_segment", "values": ["slow"]}]);
    create(&test, "outside", &json!({"rules": rules(&outside)})).await;

    let of = |bytes: usize| json!({"text": "a".repeat(bytes)});
    for key in ["many", "outside", "plain"] {
        assert_eq!(evaluate(&test, key, of(300)).await.status, 200, "{key}");
        let long = evaluate(&test, key, of(30_000)).await;
        let expected =
            if key == "plain" { (200, Value::Null) } else { (400, json!("INVALID_CONTEXT")) };
        assert_eq!((long.status, long.body["errorCode"].clone()), expected, "{}", long.text);
    }
    let all = evaluate_all(&test, of(30_000)).await;
    assert_eq!(all.status, 200);
    let failed =
        all.body["flags"].as_array().unwrap().iter().filter(|it| it["errorCode"].is_string());
    let failed: Vec<&str> = failed.map(|it| it["key"].as_str().unwrap()).collect();
    assert_eq!(failed, ["many", "outside"]);
}

#[tokio::test]
async fn other_paths_of_the_function_are_not_found() {
    let test = TestApp::start().await;
    let other = "/v0/project/{idOrSlug}/ofrep/v1/evaluate/other";
    let reply = call(&test, EVALUATE_ALL).path(other).json(&json!({})).send(&test.app).await;
    assert_eq!((reply.status, &reply.body["errorCode"]), (404, &json!("FLAG_NOT_FOUND")));
}
