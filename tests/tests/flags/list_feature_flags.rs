//! Lists of flags.

use serde_json::{Value, json};
use tests::app::TestApp;
use tests::call::{Call, Gateway};

use super::{CREATE, LIST, archive, change, copy, create, creation, get, keys};

fn keys_of(pages: &[Vec<Value>]) -> Vec<String> {
    pages.concat().iter().map(|item| item["key"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn flags_are_listed_by_key_in_pages() {
    let test = TestApp::start().await;
    assert_eq!(test.pages(&test.call(LIST), 1).await, [Vec::<Value>::new()]);
    test.other_project().await;
    let elsewhere = Call::of(CREATE).parameter("idOrSlug", "other").key(&test.key);
    elsewhere.json(&creation("elsewhere", &json!({}))).send(&test.app).await;
    for key in ["b", "a.b", "Z", "a-b", "0", "a", "z", "a_b"] {
        create(&test, key, &json!({})).await;
    }
    let expected = ["0", "Z", "a", "a-b", "a.b", "a_b", "b", "z"];
    for (limit, lengths) in [(1, vec![1; 8]), (3, vec![3, 3, 2]), (4, vec![4, 4]), (8, vec![8])] {
        let pages = test.pages(&test.call(LIST), limit).await;
        assert_eq!(keys_of(&pages), expected);
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), lengths);
    }
    let rest = test.call(LIST).gateway(Gateway::RestApi);
    assert_eq!(keys_of(&test.pages(&rest, 3).await), expected);
    for item in test.pages(&test.call(LIST), 100).await.concat() {
        assert_eq!(item, get(&test, item["key"].as_str().unwrap()).await.body);
    }
}

#[tokio::test]
async fn archived_flags_are_listed_on_request() {
    let test = TestApp::start().await;
    for key in ["a", "b", "c", "d", "e"] {
        create(&test, key, &json!({})).await;
    }
    for key in ["a", "c", "d"] {
        archive(&test, key).await;
    }
    let (list, live) = (test.call(LIST), ["b", "e"]);
    let all = list.clone().query("archived", "true");
    for limit in [1, 2, 10] {
        assert_eq!(keys_of(&test.pages(&list, limit).await), live);
        let unarchived = list.clone().query("archived", "false");
        assert_eq!(keys_of(&test.pages(&unarchived, limit).await), live);
        assert_eq!(keys_of(&test.pages(&all, limit).await), ["a", "b", "c", "d", "e"]);
    }
    change(&test, "c", json!({"archived": false})).await;
    assert_eq!(keys_of(&test.pages(&list, 10).await), ["b", "c", "e"]);
}

#[tokio::test]
async fn flags_behind_many_archived_ones_are_found() {
    let test = TestApp::start().await;
    create(&test, "f", &json!({})).await;
    create(&test, "z", &json!({})).await;
    create(&test, "g", &json!({})).await;
    assert_eq!(archive(&test, "g").await.status, 200);
    copy(&test, "g", 299).await;
    let list = test.call(LIST);
    for limit in [1, 2, 50] {
        assert_eq!(keys_of(&test.pages(&list, limit).await), ["f", "z"], "{limit}");
    }
    let first = list.clone().query("limit", 1).send(&test.app).await;
    assert_eq!(keys(&first.body["items"]), ["f"]);
    let all = list.query("archived", "true");
    assert_eq!(keys_of(&test.pages(&all, 100).await).len(), 302);
}

#[tokio::test]
async fn pages_have_fifty_flags_by_default() {
    let test = TestApp::start().await;
    create(&test, "f", &json!({})).await;
    copy(&test, "f", 120).await;
    let count =
        async |call: Call| call.send(&test.app).await.body["items"].as_array().unwrap().len();
    assert_eq!(count(test.call(LIST)).await, 50);
    assert_eq!(count(test.call(LIST).query("limit", 100)).await, 100);
}

#[tokio::test]
async fn pages_of_large_flags_fit_a_lambda_response() {
    let test = TestApp::start().await;
    let variants: Vec<Value> = (0..9)
        .map(|number| json!({"key": format!("v{number}"), "value": "\"".repeat(10_000)}))
        .collect();
    create(&test, "f", &json!({"type": "string", "variants": variants})).await;
    copy(&test, "f", 40).await;
    let pages = test.pages(&test.call(LIST), 100).await;
    assert_eq!(keys_of(&pages).len(), 41);
    assert!(pages.len() > 1);
    for page in pages {
        // JSON within JSON, as Lambda returns it.
        let sent = serde_json::to_string(&json!({ "items": page })).unwrap();
        assert!(serde_json::to_string(&sent).unwrap().len() < 6_000_000);
    }
}
