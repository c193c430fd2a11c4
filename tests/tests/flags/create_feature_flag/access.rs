//! Permissions for creating flags, and the order of checks.

use std::time::Duration;
use tests::call::Call;

use shared::projects::api_key::{ApiKey, ApiKeyRecord, Scope};
use shared::projects::project::Organization;
use shared::projects::store::Revocation;
use shared::timestamp::Timestamp;
use tests::app::{PROJECT, START, TestApp, key_id};

use super::{CREATE, call, create, minimal, stored_keys};

#[tokio::test]
async fn invalid_keys_get_identical_responses() {
    let test = TestApp::start().await;
    let past = Timestamp::from_millis(1_000_000_000_000);
    let unknown = ApiKey::generate().unwrap().reveal();
    let revoked = test.key_with(|key| ApiKeyRecord { revoked_at: Some(past), ..key }).await;
    let expired = test.key_with(|key| ApiKeyRecord { expires_at: Some(past), ..key }).await;
    // An existing key ID with another key's secret and a valid checksum.
    let stolen_id = test
        .key_with(|key| ApiKeyRecord {
            secret_hash: ApiKey::generate().unwrap().secret_hash(),
            ..key
        })
        .await;
    let (most, last) = test.key.split_at(test.key.len() - 1);
    let mistyped = format!("{most}{}", if last == "x" { "y" } else { "x" });
    let mut bodies = Vec::new();
    for key in [&unknown, &revoked, &expired, &stolen_id, &mistyped, &"nonsense".to_owned()] {
        let call = Call::of(CREATE).parameter("idOrSlug", PROJECT).key(key);
        let reply = call.json(&minimal("flag")).send(&test.app).await;
        assert_eq!(reply.problem(), (401, "invalid_api_key"));
        assert_eq!(reply.headers["www-authenticate"], "Bearer");
        bodies.push(reply.body);
    }
    assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]));
    let two_keys = call(&test).header("authorization", &format!("Bearer {unknown}"));
    let reply = two_keys.json(&minimal("flag")).send(&test.app).await;
    assert_eq!(reply.problem(), (401, "invalid_api_key"));
    assert_eq!(stored_keys(&test).await, [""; 0]);
}

#[tokio::test]
async fn inaccessible_projects_look_nonexistent() {
    let test = TestApp::start().await;
    let other_project =
        local::demo::ensure_project(&test.app.store, "other", "Other").await.unwrap();
    let foreign = test
        .key_with(|key| ApiKeyRecord {
            organization: Organization::parse("foreign").unwrap(),
            ..key
        })
        .await;
    let elsewhere =
        test.key_with(|key| ApiKeyRecord { projects: Some([other_project].into()), ..key }).await;
    let mut bodies = Vec::new();
    for (key, project) in [
        (&test.key, "missing"),
        (&test.key, "00000000-0000-7000-8000-000000000000"),
        (&test.key, "Not_A_Slug"),
        (&test.key, "a%2Fb"),
        (&foreign, PROJECT),
        (&elsewhere, PROJECT),
        (&elsewhere, &test.project_id.to_string()),
    ] {
        let call = Call::of(CREATE).parameter("idOrSlug", project).key(key);
        let reply = call.json(&minimal("flag")).send(&test.app).await;
        assert_eq!(reply.problem(), (404, "project_not_found"), "{project}");
        bodies.push(reply.body);
    }
    assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]));
    let call = Call::of(CREATE).parameter("idOrSlug", "other").key(&elsewhere);
    assert_eq!(call.json(&minimal("flag")).send(&test.app).await.status, 201);
}

#[tokio::test]
async fn key_scope_headers_project_and_body_are_checked() {
    let test = TestApp::start().await;
    let reader =
        test.key_with(|key| ApiKeyRecord { scopes: [Scope::FlagsRead].into(), ..key }).await;
    // Every part of this call is invalid; each step fixes one.
    let too_large = vec![b' '; 256 * 1024 + 1];
    let wrong =
        Call::of(CREATE).parameter("idOrSlug", "missing").header("content-type", "text/plain");
    let wrong = wrong.bytes(too_large);
    let reply = wrong.clone().header("idempotency-key", "é").send(&test.app).await;
    assert_eq!(reply.problem(), (401, "missing_api_key"));
    let reply = wrong.clone().key(&reader).header("idempotency-key", "é").send(&test.app).await;
    assert_eq!(reply.problem(), (403, "insufficient_scope"));
    let reply = wrong.clone().key(&test.key).header("idempotency-key", "é").send(&test.app).await;
    assert_eq!(reply.problem(), (400, "validation_failed"));
    assert_eq!(reply.violations(), [("header:idempotency-key", "invalid_format")]);
    let reply = wrong.clone().key(&test.key).send(&test.app).await;
    assert_eq!(reply.problem(), (404, "project_not_found"));
    let reply = call(&test).header("content-type", "text/plain").bytes(vec![b' '; 256 * 1024 + 1]);
    assert_eq!(reply.send(&test.app).await.problem(), (413, "body_too_large"));
    let reply = call(&test).header("content-type", "text/plain").bytes("{").send(&test.app).await;
    assert_eq!(reply.problem(), (415, "unsupported_media_type"));
    assert_eq!(call(&test).bytes("{").send(&test.app).await.problem(), (400, "malformed_json"));
    assert_eq!(call(&test).bytes("{}").send(&test.app).await.problem(), (400, "validation_failed"));
}

#[tokio::test]
async fn keys_are_cached_for_less_than_a_minute() {
    let test = TestApp::start().await;
    assert_eq!(create(&test, &minimal("one")).await.status, 201);
    let now = Timestamp::from_millis(i64::try_from(START).unwrap());
    let revocation = test.app.store.revoke_api_key(&key_id(&test.key), now).await.unwrap();
    assert!(matches!(revocation, Revocation::Revoked(_)));
    test.round_trips();
    test.pass(Duration::from_millis(59_999));
    assert_eq!(create(&test, &minimal("two")).await.status, 201);
    assert_eq!(test.round_trips(), 1);
    test.pass(Duration::from_millis(1));
    assert_eq!(create(&test, &minimal("three")).await.problem(), (401, "invalid_api_key"));
}

#[tokio::test]
async fn missing_keys_and_projects_are_not_cached() {
    let test = TestApp::start().await;
    let call = Call::of(CREATE).parameter("idOrSlug", "new").key(&test.key);
    assert_eq!(call.clone().json(&minimal("flag")).send(&test.app).await.status, 404);
    local::demo::ensure_project(&test.app.store, "new", "New").await.unwrap();
    assert_eq!(call.json(&minimal("flag")).send(&test.app).await.status, 201);
}

#[tokio::test]
async fn cached_key_ids_do_not_accept_other_secrets() {
    let test = TestApp::start().await;
    create(&test, &minimal("warm")).await;
    let secret_of = |key: &str| key[20..63].to_owned();
    let other = ApiKey::generate().unwrap().reveal();
    let forged = test.key.replace(&secret_of(&test.key), &secret_of(&other));
    let unchecked = &forged[..63];
    let checksum = base62_checksum(unchecked);
    let forged = format!("{unchecked}{checksum}");
    assert!(ApiKey::parse(&forged).is_some(), "the key has a valid format");
    let call = Call::of(CREATE).parameter("idOrSlug", PROJECT).key(&forged);
    let reply = call.json(&minimal("flag")).send(&test.app).await;
    assert_eq!(reply.problem(), (401, "invalid_api_key"));
}

/// Finds the checksum by trial, so that the test needs no second implementation.
fn base62_checksum(unchecked: &str) -> String {
    const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut rest = crc32fast::hash(unchecked.as_bytes()) as usize;
    let mut checksum = vec![b'0'; 6];
    for digit in checksum.iter_mut().rev() {
        *digit = DIGITS[rest % 62];
        rest /= 62;
    }
    String::from_utf8(checksum).unwrap()
}
