//! Lists of insights.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use tests::app::{Item, TestApp};
use tests::call::Gateway;

use super::{CREATE, LIST, TABLE, add, create, creation, get, id_of, ids, merge, split};

/// Creates an insight with one pain point at the time `at`.
async fn create_at(test: &TestApp, number: usize, at: &str) -> String {
    let mut body = creation([number]);
    body["painPoints"][0]["occurredAt"] = json!(at);
    id_of(&test.call(CREATE).json(&body).send(&test.app).await)
}

#[tokio::test]
async fn insights_are_sorted_by_last_seen() {
    let test = TestApp::start().await;
    assert_eq!(test.pages(&test.call(LIST), 1).await, [Vec::<Value>::new()]);
    let times = [
        "2026-11-20T00:00:00.001Z",
        "1969-12-31T23:59:59.999Z",
        "9999-12-31T23:59:59.999Z",
        "2026-11-20T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "2026-11-20T00:00:00.001Z",
    ];
    let mut created = Vec::new();
    for (number, at) in times.into_iter().enumerate() {
        created.push(create_at(&test, number, at).await);
    }
    let merged = create_at(&test, 10, "2026-11-21T00:00:00Z").await;
    merge(&test, &merged, &created[2]).await;
    let other = create_at(&test, 11, "2026-11-21T00:00:00Z").await;
    merge(&test, &other, &created[2]).await;
    // Insights with equal times, including merged ones, are sorted by descending ID, so newer ones
    // come first.
    let expected = [2, 5, 0, 3, 1, 4].map(|at: usize| created[at].clone());
    let expected = [&expected[..], &[other, merged]].concat();
    let list = test.call(LIST);
    for (limit, lengths) in
        [(1, vec![1; 8]), (3, vec![3, 3, 2]), (4, vec![4, 4]), (8, vec![8]), (100, vec![8])]
    {
        let pages = test.pages(&list, limit).await;
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), lengths);
        assert_eq!(ids(&pages.concat()), expected);
    }
    let rest = list.gateway(Gateway::RestApi);
    assert_eq!(ids(&test.pages(&rest, 3).await.concat()), expected);
}

#[tokio::test]
async fn items_equal_single_insights() {
    let test = TestApp::start().await;
    let one = create(&test, 0..250).await;
    let two = create(&test, 250..260).await;
    let split_off = id_of(&split(&test, &one, (0..250).step_by(2)).await);
    merge(&test, &two, &split_off).await;
    let listed = test.pages(&test.call(LIST), 10).await.concat();
    assert_eq!(ids(&listed), [split_off, one, two]);
    for item in &listed {
        assert_eq!(&get(&test, item["id"].as_str().unwrap()).await.body, item);
    }
}

#[tokio::test]
async fn changed_insights_do_not_shift_pages() {
    let test = TestApp::start().await;
    let mut all = Vec::new();
    for number in 0..6 {
        all.push(create(&test, [number * 10]).await);
    }
    all.reverse();
    let list = test.call(LIST).query("limit", 2);
    let first = list.clone().send(&test.app).await;
    assert_eq!(ids(first.body["items"].as_array().unwrap()), all[..2]);
    // The last item of the page moves to the front, the first one is merged, and a new one is
    // created.
    add(&test, &all[1], [90]).await;
    merge(&test, &all[0], &all[1]).await;
    create(&test, [95]).await;
    let cursor = first.body["nextCursor"].as_str().unwrap();
    let second = list.query("cursor", cursor).send(&test.app).await;
    assert_eq!(ids(second.body["items"].as_array().unwrap()), all[2..4]);
}

#[tokio::test]
async fn insights_with_long_texts_make_pages_shorter() {
    let test = TestApp::start().await;
    let mut expected = Vec::new();
    for number in 0..100 {
        // Characters of four bytes that hardly compress.
        let text = |seed: u32| -> String {
            let of = |at: u32| char::from_u32(0x2_0000 + (seed + at) * 7_919 % 40_009).unwrap();
            (0..2_000).map(of).collect()
        };
        let mut body = creation([number]);
        body["description"] = json!(text(4_001 * u32::try_from(number).unwrap()));
        body["painPoints"][0]["excerpt"] = body["description"].clone();
        expected.push(id_of(&test.call(CREATE).json(&body).send(&test.app).await));
    }
    expected.reverse();
    let pages = test.pages(&test.call(LIST), 100).await;
    assert!(pages.len() > 1, "DynamoDB reads end at 1 MB");
    assert_eq!(ids(&pages.concat()), expected);
}

#[tokio::test]
async fn insights_with_many_pain_points_make_pages_shorter() {
    let test = TestApp::start().await;
    let mut expected = vec![create(&test, [0]).await];
    // Each insight has 110 chunks, so a page of two would have more than 200.
    for number in 1..4 {
        let id = create(&test, [number]).await;
        let chunks: Vec<u128> = (0..110).map(|chunk| (number as u128) << 64 | chunk).collect();
        put_chunks(&test, &chunks).await;
        let reference =
            |chunk: &u128| [&chunk.to_be_bytes()[..], &1_u32.to_be_bytes(), &[0; 50]].concat();
        let references: Vec<u8> = chunks.iter().flat_map(reference).collect();
        let key = [&format!("project#{}", test.project_id), &format!("insight#{id}")];
        let key = [("pk", key[0].as_str()), ("sk", key[1].as_str())];
        test.tamper(TABLE, key, "chunks", AttributeValue::B(Blob::new(references))).await;
        expected.insert(0, id);
    }
    let pages = test.pages(&test.call(LIST), 100).await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 2]);
    assert_eq!(ids(&pages.concat()), expected);
    assert_eq!(pages[0][0]["firstSeen"], "1970-01-01T00:00:00.000Z");
}

/// Stores chunks with one member each, at revision 1.
async fn put_chunks(test: &TestApp, chunks: &[u128]) {
    let item = |chunk: &u128| -> Item {
        let hex = format!("{chunk:032x}");
        let id = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
        let item = [
            ("pk", AttributeValue::S(format!("chunk#{id}"))),
            ("sk", AttributeValue::S("chunk".to_owned())),
            ("revision", AttributeValue::N("1".to_owned())),
            ("members", AttributeValue::B(Blob::new([0; 57]))),
        ];
        item.map(|(name, value)| (name.to_owned(), value)).into()
    };
    test.put(TABLE, chunks.iter().map(item)).await;
}
