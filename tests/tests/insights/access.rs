//! Permissions, insight IDs, and the order of checks.

use serde_json::json;
use tests::app::{PROJECT, TestApp};
use tests::call::{Call, Gateway};
use tests::insights::upload;

use super::{
    ADD, CREATE, GET, LIST, LIST_PAIN_POINTS, MERGE, MISSING_ID, OPERATIONS,
    OPERATIONS_ON_AN_INSIGHT, SPLIT, UPDATE, call, call_for, create, creation, merge,
    other_project, split_of, stored, valid,
};

#[tokio::test]
async fn inaccessible_projects_do_not_exist() {
    let test = TestApp::start().await;
    let (id, into) = (create(&test, 0..2).await, create(&test, 10..11).await);
    let other = other_project(&test).await;
    let unseen = test.unseen_projects(other).await;
    let before = stored(&test).await;
    for operation in OPERATIONS {
        for (project, key) in &unseen {
            let reply = valid(operation, project, &id, &into).key(key).send(&test.app).await;
            assert_eq!(reply.problem(), (404, "project_not_found"), "{} {project}", operation.name);
        }
    }
    assert_eq!(stored(&test).await, before);
}

#[tokio::test]
async fn insights_are_found_only_in_their_own_project() {
    let test = TestApp::start().await;
    other_project(&test).await;
    let (id, into) = (create(&test, 0..2).await, create(&test, 10..11).await);
    let before = stored(&test).await;
    for operation in OPERATIONS_ON_AN_INSIGHT {
        for (project, id) in [("other", id.as_str()), (PROJECT, MISSING_ID)] {
            let reply = valid(operation, project, id, &into).key(&test.key).send(&test.app).await;
            assert_eq!(reply.problem(), (404, "insight_not_found"), "{}", operation.name);
        }
    }
    // Merging into an insight of another project is also impossible.
    let other = valid(CREATE, "other", "", "").key(&test.key).send(&test.app).await;
    let reply = merge(&test, &id, other.body["id"].as_str().unwrap()).await;
    assert_eq!(reply.violations(), [("/into", "unknown_insight")]);
    let unchanged = before.iter().all(|item| !item.contains("merged"));
    assert!(unchanged && stored(&test).await.iter().all(|item| !item.contains("mergedInto")));
}

/// Texts that the API accepts as UUIDs.
const UUIDS: [&str; 12] = [
    "00000000-0000-0000-0000-000000000000",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
    "FFFFFFFF-FFFF-ffff-FFFF-ffffffffffff",
    "0b24dd5a-0000-1000-8000-000000000000",
    "0b24dd5a-0000-2000-9000-000000000000",
    "0b24dd5a-0000-3000-a000-000000000000",
    "0b24dd5a-0000-4000-b000-000000000000",
    "0B24DD5A-0000-5000-A000-000000000000",
    "0b24dd5a-0000-6000-B000-000000000000",
    "0b24dd5a-0000-7000-8000-000000000000",
    "0b24dd5a-0000-8000-8fff-000000000000",
    "0b24dd5a-0000-8FFF-bFff-00000000000F",
];
/// Texts that the API rejects, although many parsers accept them.
const NO_UUIDS: [&str; 14] = [
    "{0b24dd5a-0000-4000-8000-000000000000}",
    "0b24dd5a000040008000000000000000",
    "urn:uuid:0b24dd5a-0000-4000-8000-000000000000",
    "0b24dd5a-0000-0000-8000-000000000000",
    "0b24dd5a-0000-9000-8000-000000000000",
    "0b24dd5a-0000-a000-8000-000000000000",
    "0b24dd5a-0000-4000-7000-000000000000",
    "0b24dd5a-0000-4000-c000-000000000000",
    "0b24dd5a-0000-4000-e000-000000000000",
    "00000000-0000-0000-0000-000000000001",
    "ffffffff-ffff-ffff-ffff-fffffffffffe",
    "0b24dd5a-0000-4000-8000-00000000000g",
    " 0b24dd5a-0000-4000-8000-000000000000",
    "checkout",
];

#[tokio::test]
async fn insight_ids_must_be_valid_uuids() {
    let test = TestApp::start().await;
    let into = create(&test, 10..11).await;
    for operation in OPERATIONS_ON_AN_INSIGHT {
        for id in NO_UUIDS {
            let reply = valid(operation, PROJECT, id, &into).key(&test.key).send(&test.app).await;
            assert_eq!(reply.problem(), (400, "validation_failed"), "{} {id}", operation.name);
            assert_eq!(reply.violations(), [("path:insightId", "invalid_format")]);
        }
        for id in UUIDS {
            let reply = valid(operation, PROJECT, id, &into).key(&test.key).send(&test.app).await;
            assert_eq!(reply.problem(), (404, "insight_not_found"), "{} {id}", operation.name);
        }
    }
}

#[tokio::test]
async fn ids_in_bodies_must_be_valid_uuids() {
    let test = TestApp::start().await;
    let id = create(&test, 0..2).await;
    for wrong in NO_UUIDS {
        let mut body = upload(5..6);
        body["painPoints"][0]["id"] = json!(wrong);
        let reply = call_for(&test, ADD, &id).json(&body).send(&test.app).await;
        assert_eq!(reply.violations(), [("/painPoints/0/id", "invalid_format")], "{wrong}");
        body["title"] = json!("t");
        let reply = call(&test, CREATE).json(&body).send(&test.app).await;
        assert_eq!(reply.violations(), [("/painPoints/0/id", "invalid_format")], "{wrong}");
        let split = call_for(&test, SPLIT, &id).json(&json!({"painPointIds": [wrong]}));
        let reply = split.send(&test.app).await;
        assert_eq!(reply.violations(), [("/painPointIds/0", "invalid_format")], "{wrong}");
        let reply = merge(&test, &id, wrong).await;
        assert_eq!(reply.violations(), [("/into", "invalid_format")], "{wrong}");
    }
    for taken in UUIDS {
        let mut body = upload(5..6);
        body["painPoints"][0]["id"] = json!(taken);
        let reply = call_for(&test, ADD, &id).json(&body).send(&test.app).await;
        assert_eq!(reply.status, 200, "{taken}: {}", reply.body);
        let listed = call_for(&test, LIST_PAIN_POINTS, &id).query("limit", 100);
        let listed = super::ids(listed.send(&test.app).await.body["items"].as_array().unwrap());
        assert!(listed.contains(&taken.to_lowercase()), "{taken} is kept in lower case");
        // The all-f UUID is listed in both cases.
        let again = call_for(&test, SPLIT, &id).json(&json!({"painPointIds": [taken]}));
        let split = again.send(&test.app).await;
        assert_eq!(split.status, 201, "{taken}: {}", split.body);
        assert_eq!(merge(&test, split.body["id"].as_str().unwrap(), &id).await.status, 200);
        let reply = merge(&test, &id, taken).await;
        assert_eq!(reply.violations(), [("/into", "unknown_insight")], "{taken}");
    }
}

#[tokio::test]
async fn ids_are_case_insensitive() {
    let test = TestApp::start().await;
    let (id, into) = (create(&test, 0..2).await, create(&test, 10..11).await);
    let project = test.project_id.to_string().to_uppercase();
    for operation in OPERATIONS_ON_AN_INSIGHT {
        let call = valid(operation, &project, &id.to_uppercase(), &into.to_uppercase());
        for gateway in [Gateway::HttpApi, Gateway::RestApi] {
            let reply = call.clone().gateway(gateway).key(&test.key).send(&test.app).await;
            assert!(reply.status < 300, "{}: {}", operation.name, reply.body);
            if reply.body["mergedInto"].is_string() {
                assert_eq!(reply.body["mergedInto"], into);
            }
        }
    }
    assert_eq!(super::get(&test, &id).await.body["mergedInto"], json!(into));
}

#[tokio::test]
async fn path_query_and_header_violations_are_listed_together() {
    let test = TestApp::start().await;
    for operation in [ADD, SPLIT, MERGE] {
        let call = valid(operation, "missing", "checkout", MISSING_ID).key(&test.key);
        let reply = call.header("idempotency-key", "").bytes("{").send(&test.app).await;
        let expected =
            [("path:insightId", "invalid_format"), ("header:idempotency-key", "invalid_format")];
        assert_eq!(reply.violations(), expected, "{}", operation.name);
    }
    let call =
        valid(CREATE, "missing", "", MISSING_ID).key(&test.key).header("idempotency-key", "é");
    let reply = call.bytes("{").send(&test.app).await;
    assert_eq!(reply.violations(), [("header:idempotency-key", "invalid_format")]);
    let call = valid(LIST_PAIN_POINTS, "missing", "checkout", MISSING_ID).key(&test.key);
    let reply = call.query("limit", 0).query("cursor", "x").send(&test.app).await;
    let expected = [
        ("path:insightId", "invalid_format"),
        ("query:limit", "out_of_range"),
        ("query:cursor", "invalid_value"),
    ];
    assert_eq!(reply.violations(), expected);
    let call = valid(LIST, "missing", "", MISSING_ID).key(&test.key).query("status", "new");
    let reply = call.query("limit", 101).query("cursor", "x").send(&test.app).await;
    let expected = [
        ("query:status", "invalid_value"),
        ("query:limit", "out_of_range"),
        ("query:cursor", "invalid_value"),
    ];
    assert_eq!(reply.violations(), expected);
}

#[tokio::test]
async fn checks_run_from_form_to_insight() {
    let test = TestApp::start().await;
    for operation in [CREATE, ADD, SPLIT, MERGE, UPDATE] {
        let bad = |project: &str| -> Call {
            let call = Call::of(operation).parameter("idOrSlug", project);
            call.parameter("insightId", MISSING_ID).key(&test.key)
        };
        let reply = bad("missing").bytes("{").send(&test.app).await;
        assert_eq!(reply.problem(), (404, "project_not_found"), "{}", operation.name);
        let large = bad(PROJECT).header("content-type", "text/plain").bytes(" ".repeat(1_048_577));
        assert_eq!(large.send(&test.app).await.problem(), (413, "body_too_large"));
        let other = bad(PROJECT).header("content-type", "text/plain").bytes("{");
        assert_eq!(other.send(&test.app).await.problem(), (415, "unsupported_media_type"));
        for malformed in ["", "{", "{} {}"] {
            let reply = bad(PROJECT).bytes(malformed).send(&test.app).await;
            assert_eq!(reply.problem(), (400, "malformed_json"), "{} {malformed}", operation.name);
        }
        let reply = bad(PROJECT).json(&json!({"surprise": 1})).send(&test.app).await;
        assert_eq!(reply.problem(), (400, "validation_failed"), "{}", operation.name);
        assert!(reply.violations().contains(&("/surprise", "unknown_field")));
    }
    for operation in OPERATIONS_ON_AN_INSIGHT {
        let reply =
            valid(operation, PROJECT, MISSING_ID, MISSING_ID).key(&test.key).send(&test.app);
        assert_eq!(reply.await.problem(), (404, "insight_not_found"), "{}", operation.name);
    }
}

#[tokio::test]
async fn merged_insights_are_reported_before_other_conflicts() {
    let test = TestApp::start().await;
    let (id, into) = (create(&test, 0..2).await, create(&test, 10..11).await);
    assert_eq!(merge(&test, &id, &into).await.status, 200);
    let before = stored(&test).await;
    let other = create(&test, 20..21).await;
    for (operation, body) in [
        (ADD, upload(10..11)),
        (ADD, upload(0..1)),
        (ADD, upload(30..31)),
        (SPLIT, split_of(0..1)),
        (SPLIT, split_of(30..31)),
        (UPDATE, json!({"title": "t"})),
        (UPDATE, json!({})),
        (MERGE, json!({"into": other})),
    ] {
        let reply = call_for(&test, operation, &id).json(&body).send(&test.app).await;
        assert_eq!(reply.problem(), (409, "insight_merged"), "{} {body}", operation.name);
    }
    // Violations that depend on other insights follow the 404 checks.
    let reply = merge(&test, &id, &id).await;
    assert_eq!(reply.violations(), [("/into", "invalid_value")]);
    assert_eq!(stored(&test).await.len(), before.len() + 4, "only `other` was written");
}

#[tokio::test]
async fn only_pain_points_can_have_large_bodies() {
    let test = TestApp::start().await;
    let id = create(&test, 0..2).await;
    let padded = |body: &serde_json::Value, bytes: usize| {
        let sent = body.to_string();
        format!("{}{sent}", " ".repeat(bytes - sent.len()))
    };
    for (operation, body, most) in [
        (CREATE, creation(5..7), 1_048_576),
        (ADD, upload(7..9), 1_048_576),
        (SPLIT, split_of([1]), 262_144),
        (UPDATE, json!({"viewed": true}), 262_144),
    ] {
        let call = call_for(&test, operation, &id);
        let reply = call.clone().bytes(padded(&body, most + 1)).send(&test.app).await;
        assert_eq!(reply.problem(), (413, "body_too_large"), "{}", operation.name);
        let reply = call.bytes(padded(&body, most)).send(&test.app).await;
        assert!(reply.status < 300, "{}: {}", operation.name, reply.body);
    }
}

#[tokio::test]
async fn warm_functions_make_few_round_trips() {
    let test = TestApp::start().await;
    let id = create(&test, 0..500).await;
    let trips = async |call: Call| {
        test.round_trips();
        let reply = call.send(&test.app).await;
        assert!(reply.status < 300, "{}", reply.body);
        test.round_trips()
    };
    // Claims of a hundred pain points each, then the insight.
    assert_eq!(trips(call(&test, CREATE).json(&creation(600..601))).await, 2);
    assert_eq!(trips(call(&test, CREATE).json(&creation(1_000..1_500))).await, 6);
    // An insight, then its chunks.
    assert_eq!(trips(call_for(&test, GET, &id)).await, 2);
    assert_eq!(trips(call(&test, LIST)).await, 2);
    assert_eq!(trips(call_for(&test, LIST_PAIN_POINTS, &id)).await, 3);
    assert_eq!(trips(call_for(&test, UPDATE, &id).json(&json!({"viewed": true}))).await, 3);
    assert_eq!(trips(call_for(&test, UPDATE, &id).json(&json!({"viewed": true}))).await, 2);
    assert_eq!(trips(call_for(&test, ADD, &id).json(&upload(500..510))).await, 4);
    assert_eq!(trips(call_for(&test, ADD, &id).json(&upload(500..510))).await, 2);
    // Also the latest pain point of each half, unless it is known.
    let split_off = call_for(&test, SPLIT, &id).json(&split_of([3, 4]));
    assert_eq!(trips(split_off.clone()).await, 4);
    assert_eq!(trips(split_off.clone()).await, 5, "a repeated split also reads the new insight");
    let split_off = super::id_of(&split_off.send(&test.app).await);
    // Both insights with their chunks.
    assert_eq!(trips(call_for(&test, MERGE, &split_off).json(&json!({"into": id}))).await, 5);
}
