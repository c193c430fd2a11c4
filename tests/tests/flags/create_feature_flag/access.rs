//! Caching of keys and projects.

use shared::projects::store::Revocation;
use shared::timestamp::Timestamp;
use std::time::Duration;

use tests::app::{START, TestApp, key_id};
use tests::call::Call;

use super::{CREATE, create, minimal};

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
