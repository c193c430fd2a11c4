//! Failures with DynamoDB down, slow or busy, and reads with writes between them.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::app::Operation;
use tests::app::{PROJECT, TestApp, left_out};
use tests::call::{Call, Reply};
use tests::insights::pain_point;
use tests::scripted::{KEY, ScriptedReply, access, cancelled, reply_under};

use super::{
    ADD, CREATE, GET, LIST, LIST_PAIN_POINTS, MERGE, MISSING_ID, SPLIT, TABLE, UPDATE, create,
    etag, ids, stored, valid,
};

const ID: &str = "01902f3c-0000-7000-8000-eeeeeeeeeeee";
const CHUNK: &str = "01902f3c-0000-7000-8000-cccccccccccc";

fn any(operation: &'static Operation) -> Call {
    valid(operation, PROJECT, ID, MISSING_ID).key(KEY)
}

fn base64(bytes: &[u8]) -> String {
    aws_smithy_types::base64::encode(bytes)
}

/// Returns the reply to `GetItem` with an insight that has one chunk.
fn head() -> ScriptedReply {
    let id: u128 = CHUNK
        .replace('-', "")
        .chars()
        .fold(0, |id, digit| id * 16 + u128::from(digit.to_digit(16).unwrap_or_default()));
    // No member of the chunk is removed.
    let reference = [&id.to_be_bytes()[..], &1_u32.to_be_bytes(), &[0; 50]].concat();
    ScriptedReply::Response(json!({"Item": {
        "pk": {"S": "project#00000000-0000-7000-8000-000000000001"},
        "sk": {"S": format!("insight#{ID}")},
        "id": {"S": ID},
        "version": {"N": "3"},
        "title": {"S": "Checkout"},
        "description": {"S": ""},
        "status": {"S": "open"},
        "viewed": {"BOOL": false},
        "chunks": {"B": base64(&reference)},
    }}))
}

/// Returns the reply to `BatchGetItem` with the chunk, which has the pain points 0 and 1.
fn chunk() -> ScriptedReply {
    let member = |number| {
        let pain_point = pain_point(number);
        let at = pain_point.occurred_at.as_millis().to_be_bytes();
        [pain_point.id.as_bytes(), &at[..], &[7; 16], &[0; 17]].concat()
    };
    ScriptedReply::Response(json!({"Responses": {"waymark-replay-insights": [{
        "pk": {"S": format!("chunk#{CHUNK}")},
        "sk": {"S": "chunk"},
        "revision": {"N": "1"},
        "members": {"B": base64(&[member(0), member(1)].concat())},
    }]}, "UnprocessedKeys": {}}))
}

/// Returns the reply to `BatchGetItem` with the pain points 0 and 1.
fn details() -> ScriptedReply {
    let item = |number| {
        let pain_point = pain_point(number);
        json!({
            "id": {"S": pain_point.id},
            "batch": {"S": CHUNK},
            "sessionId": {"S": pain_point.session_id},
            "occurredAt": {"S": pain_point.occurred_at},
            "title": {"S": pain_point.title},
            "excerpt": {"S": pain_point.excerpt},
        })
    };
    ScriptedReply::Response(json!({
        "Responses": {"waymark-replay-insights": [item(0), item(1)]},
        "UnprocessedKeys": {},
    }))
}

/// Returns the reply to `BatchGetItem` that processes no key.
fn unprocessed() -> ScriptedReply {
    ScriptedReply::Response(
        json!({"Responses": {}, "UnprocessedKeys": {"waymark-replay-insights": {
            "Keys": [{"pk": {"S": format!("chunk#{CHUNK}")}, "sk": {"S": "chunk"}}],
            "ConsistentRead": true,
        }}}),
    )
}

fn assert_retryable(reply: &Reply, problem: (u16, &str), of: &str) {
    assert_eq!(reply.problem(), problem, "{of}");
    assert_eq!(reply.headers["retry-after"], "1");
}

/// Returns a DynamoDB with an insight, which replies to each transaction with `written`.
fn writing(written: ScriptedReply) -> impl Fn(&str, usize) -> ScriptedReply + Clone + Send {
    move |target, before| match (target, before) {
        ("BatchGetItem", 0) => access(),
        ("BatchGetItem", _) => chunk(),
        ("GetItem", _) => head(),
        _ => written.clone(),
    }
}

#[tokio::test]
async fn conflicting_writes_are_retried() {
    for operation in [CREATE, ADD, UPDATE, MERGE] {
        let (reply, dynamodb) = reply_under(
            |target, before| match (target, before) {
                ("BatchGetItem", 0) => access(),
                ("BatchGetItem", _) => chunk(),
                ("GetItem", _) => head(),
                (_, 0) => cancelled(&["TransactionConflict", "None"]),
                (_, 1) => cancelled(&["None", "ThrottlingError"]),
                _ => ScriptedReply::Response(json!({})),
            },
            any(operation),
        )
        .await;
        assert!(reply.status < 300, "{}: {}", operation.name, reply.body);
        let claims = usize::from([CREATE.name, ADD.name].contains(&operation.name));
        let transactions = dynamodb.requests("TransactWriteItems");
        assert_eq!(transactions.len(), 3 + claims, "{}", operation.name);
    }
}

#[tokio::test]
async fn permanently_conflicting_writes_give_409() {
    let replies = [CREATE, ADD, UPDATE, MERGE].map(|operation| async move {
        let script = writing(cancelled(&["TransactionConflict", "None"]));
        let (reply, _) = reply_under(script, any(operation)).await;
        assert_retryable(&reply, (409, "conflict"), operation.name);
    });
    let splitting = async {
        let (reply, _) = reply_under(
            |target, before| match (target, before) {
                ("BatchGetItem", 0) => access(),
                ("BatchGetItem", 1) => chunk(),
                ("BatchGetItem", _) => details(),
                ("GetItem", _) => head(),
                _ => cancelled(&["None", "TransactionConflict", "None"]),
            },
            any(SPLIT),
        )
        .await;
        assert_retryable(&reply, (409, "conflict"), SPLIT.name);
    };
    tokio::join!(join_all(replies), splitting);
}

#[tokio::test]
async fn permanently_outdated_writes_give_409() {
    let updating = async {
        let script = writing(cancelled(&["ConditionalCheckFailed"]));
        let (reply, dynamodb) = reply_under(script, any(UPDATE)).await;
        assert_retryable(&reply, (409, "conflict"), UPDATE.name);
        let (read, written) =
            (dynamodb.requests("GetItem").len(), dynamodb.requests("TransactWriteItems").len());
        assert!(read > 2 && read == written, "each attempt reads again: {read} {written}");
    };
    let merging = async {
        let script = writing(cancelled(&["None", "ConditionalCheckFailed"]));
        let (reply, _) = reply_under(script, any(MERGE)).await;
        assert_retryable(&reply, (409, "conflict"), MERGE.name);
    };
    let splitting = async {
        let script = |target: &str, before| match (target, before) {
            ("BatchGetItem", 0) => access(),
            ("BatchGetItem", before) if before % 2 == 1 => chunk(),
            ("BatchGetItem", _) => details(),
            ("GetItem", _) => head(),
            _ => cancelled(&["ConditionalCheckFailed", "None", "None", "None", "None"]),
        };
        let (reply, dynamodb) = reply_under(script, any(SPLIT)).await;
        assert_retryable(&reply, (409, "conflict"), SPLIT.name);
        assert!(dynamodb.requests("GetItem").len() > 2);
    };
    let adding = async {
        let script = |target: &str, before| match (target, before) {
            ("BatchGetItem", 0) => access(),
            ("BatchGetItem", _) => chunk(),
            ("GetItem", _) => head(),
            // Claims, then the insight.
            (_, before) if before % 2 == 0 => ScriptedReply::Response(json!({})),
            _ => cancelled(&["ConditionalCheckFailed", "None", "None"]),
        };
        let (reply, dynamodb) = reply_under(script, any(ADD)).await;
        assert_retryable(&reply, (409, "conflict"), ADD.name);
        assert!(dynamodb.requests("GetItem").len() > 2);
    };
    tokio::join!(updating, merging, splitting, adding);
}

/// The batch of the first upload is abandoned: the last condition of the second transaction fails.
fn abandoned(target: &str, before: usize, reasons: &[&str]) -> ScriptedReply {
    match (target, before) {
        ("BatchGetItem", 0) => access(),
        ("BatchGetItem", _) => chunk(),
        ("GetItem", _) => head(),
        ("TransactWriteItems", 1) => cancelled(reasons),
        _ => ScriptedReply::Response(json!({})),
    }
}

#[tokio::test]
async fn uploads_with_abandoned_batches_start_a_new_one() {
    // A new insight is also announced.
    const OF_ADD: [&str; 3] = ["None", "None", "ConditionalCheckFailed"];
    const OF_CREATE: [&str; 4] = ["None", "None", "None", "ConditionalCheckFailed"];
    type Script = fn(&str, usize) -> ScriptedReply;
    let scripts: [(_, Script, usize); 2] = [
        (CREATE, |target, before| abandoned(target, before, &OF_CREATE), OF_CREATE.len()),
        (ADD, |target, before| abandoned(target, before, &OF_ADD), OF_ADD.len()),
    ];
    for (operation, script, actions) in scripts {
        let (reply, dynamodb) = reply_under(script, any(operation)).await;
        assert!(reply.status < 300, "{}: {}", operation.name, reply.body);
        let transactions = dynamodb.requests("TransactWriteItems");
        let batch = |transaction: &Value| {
            transaction["TransactItems"][0]["Put"]["Item"]["batch"]["S"].as_str().map(str::to_owned)
        };
        let batches: Vec<Option<String>> = transactions.iter().map(batch).collect();
        let [Some(first), None, Some(second), None] = &batches[..] else { panic!("{batches:?}") };
        assert_ne!(first, second);
        let committed = &transactions[3]["TransactItems"][actions - 1]["Put"]["Item"]["pk"]["S"];
        assert_eq!(committed, &format!("batch#{second}"));
    }
}

#[tokio::test]
async fn unprocessed_keys_are_requested_again() {
    for operation in [GET, LIST_PAIN_POINTS, UPDATE] {
        let (reply, dynamodb) = reply_under(
            |target, before| match (target, before) {
                ("BatchGetItem", 0) => access(),
                ("BatchGetItem", 1 | 2) => unprocessed(),
                ("BatchGetItem", 3) => chunk(),
                ("BatchGetItem", _) => details(),
                ("GetItem", _) => head(),
                _ => ScriptedReply::Response(json!({})),
            },
            any(operation),
        )
        .await;
        assert_eq!(reply.status, 200, "{}: {}", operation.name, reply.body);
        let requests = dynamodb.requests("BatchGetItem");
        assert_eq!(requests[1]["RequestItems"], requests[3]["RequestItems"]);
        if operation.name == GET.name {
            assert_eq!((etag(&reply), &reply.body["occurrences"]), ("\"3\"", &json!(2)));
        }
    }
    let replies = [GET, LIST_PAIN_POINTS, UPDATE, ADD, SPLIT, MERGE].map(|operation| async move {
        let script = |target: &str, before| match (target, before) {
            ("BatchGetItem", 0) => access(),
            ("BatchGetItem", _) => unprocessed(),
            ("GetItem", _) => head(),
            _ => ScriptedReply::Response(json!({})),
        };
        let (reply, dynamodb) = reply_under(script, any(operation)).await;
        assert_retryable(&reply, (503, "unavailable"), operation.name);
        assert!(dynamodb.requests("TransactWriteItems").is_empty());
    });
    join_all(replies).await;
}

/// Sets the chunk's revision to one that the insight does not reference, or another attribute.
async fn tamper_with_chunk(test: &TestApp, attribute: &str, value: AttributeValue) {
    let items = test.items(TABLE).await;
    let pk = |item: &std::collections::HashMap<String, AttributeValue>| {
        item["pk"].as_s().unwrap().clone()
    };
    let chunk = items.iter().map(pk).find(|pk| pk.starts_with("chunk#")).unwrap();
    test.tamper(TABLE, [("pk", &chunk), ("sk", "chunk")], attribute, value).await;
}

fn revision(revision: u32) -> AttributeValue {
    AttributeValue::N(revision.to_string())
}

#[tokio::test]
async fn insights_with_mismatched_chunks_are_unavailable() {
    let test = TestApp::start().await;
    let id = create(&test, 0..2).await;
    tamper_with_chunk(&test, "revision", revision(2)).await;
    let before = stored(&test).await;
    let started = Instant::now();
    let operations = [GET, LIST_PAIN_POINTS, UPDATE, ADD, SPLIT, MERGE];
    let replies = operations
        .map(|operation| valid(operation, PROJECT, &id, MISSING_ID).key(&test.key).send(&test.app));
    for (reply, operation) in join_all(replies).await.iter().zip(operations) {
        assert_retryable(reply, (503, "unavailable"), operation.name);
    }
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(stored(&test).await, before);
}

#[tokio::test]
async fn reads_interrupted_by_writes_are_repeated() {
    let test = TestApp::start().await;
    let id = create(&test, 0..2).await;
    let operations = [GET, LIST, LIST_PAIN_POINTS, UPDATE];
    for operation in operations {
        tamper_with_chunk(&test, "revision", revision(2)).await;
        let writing = async {
            tokio::time::sleep(Duration::from_millis(60)).await;
            tamper_with_chunk(&test, "revision", revision(1)).await;
        };
        // A patch without changes.
        let call = super::call_for(&test, operation, &id);
        let call = if operation.name == UPDATE.name { call.json(&json!({})) } else { call };
        test.round_trips();
        let (reply, ()) = tokio::join!(call.send(&test.app), writing);
        assert_eq!(reply.status, 200, "{}: {}", operation.name, reply.body);
        assert!(test.round_trips() > 3, "{}", operation.name);
    }
}

#[tokio::test]
async fn unreadable_items_are_internal_errors() {
    let test = TestApp::start().await;
    let id = create(&test, 0..2).await;
    tamper_with_chunk(&test, "members", AttributeValue::B(Blob::new([0; 56]))).await;
    for operation in [GET, LIST_PAIN_POINTS, UPDATE, ADD, SPLIT] {
        let reply = valid(operation, PROJECT, &id, MISSING_ID).key(&test.key).send(&test.app).await;
        assert_eq!(reply.problem(), (500, "internal"), "{}", operation.name);
    }
    let other = create(&test, 10..11).await;
    for (attribute, value) in [
        ("chunks", AttributeValue::B(Blob::new([0; 19]))),
        ("status", AttributeValue::S("closed".to_owned())),
        ("status", AttributeValue::S("merged".to_owned())),
        ("version", AttributeValue::N("-1".to_owned())),
    ] {
        let (project, key) = (format!("project#{}", test.project_id), format!("insight#{other}"));
        test.tamper(TABLE, [("pk", &project), ("sk", &key)], attribute, value).await;
        let reply = super::call_for(&test, GET, &other).send(&test.app).await;
        assert_eq!(reply.problem(), (500, "internal"), "{attribute}");
    }
}

#[tokio::test]
async fn lists_omit_only_unreadable_items() {
    let test = TestApp::start().await;
    let good = create(&test, 0..3).await;
    let [head, chunk, unfitting] =
        [create(&test, 10..11).await, create(&test, 20..21).await, create(&test, 30..31).await];
    let project = format!("project#{}", test.project_id);
    let sk = format!("insight#{head}");
    let status = AttributeValue::S("closed".to_owned());
    test.tamper(TABLE, [("pk", &project), ("sk", &sk)], "status", status).await;
    for (insight, attribute, value) in [
        (&chunk, "members", AttributeValue::B(Blob::new([0; 56]))),
        (&unfitting, "revision", revision(7)),
    ] {
        let pk = chunk_of(&test, insight).await;
        test.tamper(TABLE, [("pk", &pk), ("sk", "chunk")], attribute, value).await;
    }
    for limit in [1, 2, 100] {
        let pages = test.pages(&test.call(LIST), limit).await;
        assert_eq!(ids(&pages.concat()), std::slice::from_ref(&good), "{limit}");
    }
    assert_eq!(left_out(&head), BTreeSet::from([(TABLE, "status")]));
    assert_eq!(left_out(&unfitting), BTreeSet::from([(TABLE, "chunks")]));
    assert_eq!(left_out(&chunk_of(&test, &chunk).await), BTreeSet::from([(TABLE, "members")]));

    let listed = super::call_for(&test, LIST_PAIN_POINTS, &good).send(&test.app).await;
    let pain_points = ids(listed.body["items"].as_array().unwrap());
    let pk = |id: &str| format!("pain-point#{}#{id}", test.project_id);
    let key = pk(&pain_points[0]);
    test.tamper(TABLE, [("pk", &key), ("sk", "pain-point")], "title", revision(1)).await;
    let gone = pk(&pain_points[1]);
    test.remove(TABLE, [("pk", &gone), ("sk", "pain-point")]).await;
    let pages = test.pages(&super::call_for(&test, LIST_PAIN_POINTS, &good), 2).await;
    assert_eq!(ids(&pages.concat()), pain_points[2..]);
    assert_eq!(left_out(&pain_points[0]), BTreeSet::from([(TABLE, "title")]));
    assert_eq!(left_out(&pain_points[1]), BTreeSet::from([(TABLE, "pk")]));
}

/// Returns the partition key of an insight's only chunk.
async fn chunk_of(test: &TestApp, insight: &str) -> String {
    let items = test.items(TABLE).await;
    let is_head = |item: &&HashMap<String, AttributeValue>| {
        item["sk"].as_s().unwrap() == &format!("insight#{insight}")
    };
    let head = items.iter().find(is_head).unwrap();
    let id = &head["chunks"].as_b().unwrap().as_ref()[..16];
    format!("chunk#{}", uuid::Uuid::from_slice(id).unwrap())
}
