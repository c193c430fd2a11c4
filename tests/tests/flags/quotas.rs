//! Rate limits of API keys.

use std::time::Duration;

use serde_json::json;
use shared::http::Method;
use shared::projects::api_key::{ApiKeyRecord, Scope};
use shared::projects::limits::{Limit, Limits};
use tests::app::{PROJECT, TestApp, app_over};

use super::{EVALUATE, GET, LIST, call_for, create, valid};

async fn limited(requests_per_minute: u32) -> TestApp {
    let mut test = TestApp::start().await;
    create(&test, "f", &json!({})).await;
    let limits = Limits::default().with(Limit::RequestsPerMinute, Some(requests_per_minute));
    let (app, round_trips) = app_over(&test.engine.endpoint());
    test.app = app.with_limits(limits);
    test.count_round_trips_by(round_trips);
    test
}

#[tokio::test]
async fn every_operation_returns_429_over_the_limit() {
    let test = limited(5).await;
    test.pass(Duration::from_secs(59));
    for _ in 0..5 {
        assert_eq!(test.call(LIST).send(&test.app).await.status, 200);
    }
    // OFREP has no body for this error either.
    for operation in [LIST, GET, EVALUATE] {
        let reply = call_for(&test, operation, "f").send(&test.app).await;
        assert_eq!(reply.problem(), (429, "throttled"), "{}", operation.name);
        assert_eq!(reply.headers["retry-after"], "1");
        assert!(!reply.headers.contains_key("x-sentry-rate-limits"));
    }
    // The scope is checked later, and a request that is rejected for its key is not counted.
    let limited = test.key_with(|record| record).await;
    let lister = || test.call(LIST).method(Method::GET);
    let mut with_other = lister();
    with_other = with_other.header("authorization", "Bearer nonsense");
    assert_eq!(with_other.send(&test.app).await.status, 401);
    let other = valid(LIST, PROJECT, "f").key(&limited);
    assert_eq!(other.send(&test.app).await.status, 200);
    test.pass(Duration::from_secs(1));
    assert_eq!(test.call(LIST).send(&test.app).await.status, 200);
}

#[tokio::test]
async fn every_tenth_request_updates_the_shared_count() {
    let test = limited(6_000).await;
    assert_eq!(call_for(&test, GET, "f").send(&test.app).await.status, 200);
    test.round_trips();
    let mut trips = Vec::new();
    for _ in 0..30 {
        assert_eq!(call_for(&test, GET, "f").send(&test.app).await.status, 200);
        trips.push(test.round_trips());
    }
    let more: Vec<usize> = (0..30).filter(|number| trips[*number] > 1).collect();
    assert_eq!(more, [8, 18, 28]);
    assert_eq!(trips.iter().sum::<usize>(), 33);
}

#[tokio::test]
async fn request_limits_of_all_projects_change_within_a_minute() {
    let test = limited(5).await;
    let accepted = async || {
        let mut accepted = 0;
        while accepted < 9 && call_for(&test, GET, "f").send(&test.app).await.status == 200 {
            accepted += 1;
        }
        accepted
    };
    assert_eq!(accepted().await, 5);
    for (limit, expected) in [(Some(3), 3), (Some(0), 9), (None, 5)] {
        let limits = [(Limit::RequestsPerMinute, limit)].into();
        test.app.store.set_stack_limits(&limits).await.unwrap();
        test.pass(Duration::from_mins(1));
        assert_eq!(accepted().await, expected, "{limit:?}");
    }
}

#[tokio::test]
async fn limits_of_all_projects_cost_no_round_trip() {
    let test = limited(0).await;
    let trips = async || {
        test.round_trips();
        assert_eq!(call_for(&test, GET, "f").send(&test.app).await.status, 200);
        test.round_trips()
    };
    // Key, project and limits in one, and the flag.
    assert_eq!(trips().await, 2);
    for _ in 0..5 {
        test.pass(Duration::from_secs(11));
        assert_eq!(trips().await, 1);
    }
    test.pass(Duration::from_secs(5));
    assert_eq!(trips().await, 2);
}

#[tokio::test]
async fn requests_are_accepted_without_the_shared_count() {
    let test = limited(25).await;
    let table = format!("{}quotas", local::environment::table_prefix());
    test.client.delete_table().table_name(table).send().await.unwrap();
    for number in 0..25 {
        let reply = call_for(&test, GET, "f").send(&test.app).await;
        assert_eq!(reply.status, 200, "{number}: {}", reply.body);
    }
    // The execution environment counts its own requests.
    assert_eq!(call_for(&test, GET, "f").send(&test.app).await.status, 429);
}

/// All visitors of a page share its key.
#[tokio::test]
async fn keys_that_only_evaluate_flags_have_no_limit() {
    let test = limited(5).await;
    let key_with = async |scopes: &[Scope]| {
        let scopes = scopes.iter().copied().collect();
        test.key_with(|record| ApiKeyRecord { scopes, ..record }).await
    };
    let of_page = key_with(&[Scope::FlagsEvaluate]).await;
    let of_server = key_with(&[Scope::FlagsEvaluate, Scope::FlagsRead]).await;
    let evaluate =
        async |key: &str| valid(EVALUATE, PROJECT, "f").key(key).send(&test.app).await.status;
    for number in 0..30 {
        assert_eq!(evaluate(&of_page).await, 200, "{number}");
    }
    assert!(test.items("quotas").await.is_empty());
    for _ in 0..5 {
        assert_eq!(evaluate(&of_server).await, 200);
    }
    assert_eq!(evaluate(&of_server).await, 429);
    assert_eq!(evaluate(&of_page).await, 200);
}
