//! The function that erases projects and users.

use std::time::Duration;

use serde_json::json;

use shared::projects::api_key::{ApiKeyRecord, UserId};
use shared::projects::erasure::{Erasure, Subject};
use tests::app::TestApp;
use tests::errors::{SentEvent, delivery};
use tests::notifications::user;
use tests::source_maps;

use super::{assert_uses_all, deadline, scheduled, send};

pub(super) const FUNCTIONS: [&str; 1] = [erase_data::JOB.name];

/// Creates data of every type that is erased in a different way.
async fn fill(test: &TestApp) {
    let flag = json!({"key": "checkout", "name": "Checkout", "type": "boolean"});
    let flag = test.call(&create_feature_flag::OPERATION).json(&flag);
    send(test, flag.header("idempotency-key", "k"), 201).await;
    let insight = tests::insights::filled(&test.app.store, test.project_id, 20, 1).await;
    let split = test.call(&split_insight::OPERATION).parameter("insightId", insight);
    let split = split.json(&json!({"painPointIds": [tests::insights::id(1)]}));
    send(test, split, 201).await;
    tests::markers::filled(&test.app.store, test.project_id, 3).await;
    let project = tests::errors::project(&test.app.store, test.project_id).await;
    let at = test.app.clock.now();
    let event = SentEvent::new(1, at, "TypeError", "x").with("tags.tenant", "acme");
    send(test, delivery(&project, &event), 200).await;
    let bundle = source_maps::bundle_of(source_maps::MAP, source_maps::DEBUG_ID);
    let upload = json!({"projects": [test.project_id]});
    source_maps::upload(&test.app, &test.key, &bundle, &upload).await;
    let other = test.other_project().await;
    for projects in [vec![test.project_id], vec![test.project_id, other]] {
        let projects = Some(projects.into_iter().collect());
        test.key_with(|key| ApiKeyRecord { projects, ..key }).await;
    }
    let (gone, created_at) = (UserId::parse("gone").unwrap(), test.app.clock.now());
    test.key_with(|key| ApiKeyRecord { user: gone, created_at, ..key }).await;
}

#[tokio::test]
async fn erasure_function_uses_exactly_its_permissions() {
    let test = TestApp::start().await;
    fill(&test).await;
    let store = &test.app.store;
    let project = tests::errors::project(store, test.project_id).await;
    let (name, now) = (user("gone"), test.app.clock.now());
    let subject = Subject::User(name.organization.clone(), name.user.clone());
    assert!(store.erase_project(&project, now).await.unwrap());
    let erasure = Erasure::new(subject, name.organization, "gone".to_owned(), now);
    assert!(store.erase_user(&erasure, vec![]).await.unwrap());
    let scenario = Box::pin(async {
        for minutes in [3, 6, 6, 6, 24 * 60, 60] {
            test.pass(Duration::from_mins(minutes));
            let run = Box::pin((erase_data::JOB.run)(&test.app, deadline()));
            scheduled(erase_data::JOB.name, run).await;
            (purge_event_markers::JOB.run)(&test.app, deadline()).await.unwrap();
        }
        assert!(store.list_erasures().await.unwrap().is_empty());
    });
    assert_uses_all(&FUNCTIONS, scenario).await;
}
