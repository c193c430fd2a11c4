//! Erasure of projects.

use local::demo;
use shared::projects::api_key::ApiKeyRecord;
use shared::projects::erasure::{Erasure, Subject};
use shared::projects::project::IdOrSlug;
use shared::projects::role::Role;
use shared::timestamp::Timestamp;
use tests::app::{Item, PROJECT, START, texts};
use tests::people::add_member;

use super::*;

const FLAGS: &Operation = &list_feature_flags::OPERATION;

/// Fills two projects from the default start time. See [`filled_at`].
async fn filled() -> (TestApp, BTreeMap<String, Item>, Project) {
    filled_at(Timestamp::from_millis(i64::try_from(START).unwrap())).await
}

/// Fills a kept project and one to erase, from a time on. Returns the app, all items without those
/// of the second project, and that project.
pub(super) async fn filled_at(time: Timestamp) -> (TestApp, BTreeMap<String, Item>, Project) {
    let test = TestApp::start().await;
    test.set_time(time);
    let store = &test.app.store;
    let kept = demo::ensure_project(store, "kept", "Kept").await.unwrap();
    fill(&test, &project(&test, kept).await, 0).await;
    let erased = project(&test, test.project_id).await;
    let mut before = everything(&test).await;
    before.retain(|_, item| !format!("{item:?}").contains(&erased.id.to_string()));
    fill(&test, &erased, 1_000).await;
    let both = [kept, erased.id];
    test.key_with(|key| ApiKeyRecord { projects: Some([erased.id].into()), ..key }).await;
    test.key_with(|key| ApiKeyRecord { projects: Some(both.into()), ..key }).await;
    for (name, projects) in [("limited", [erased.id].into()), ("both", both.into())] {
        add_member(&test, name, "default", Role::Viewer, Some(projects)).await;
    }
    (test, before, erased)
}

/// Returns `true` for keys of items that jobs do not change, except for API keys, which have their
/// own check.
fn is_settled(key: &str) -> bool {
    let is_of_log = key.starts_with("errors ") && !key.ends_with("S(\"claim\")]");
    let changes = ["outbox#@", "batch#", "erasures#"];
    // Members stay, without the project.
    let is_own = ["api-keys", "people"].iter().any(|table| key.starts_with(table));
    !is_of_log && !is_own && !changes.iter().any(|it| key.contains(it))
}

pub(super) async fn assert_nothing_but(
    test: &TestApp,
    before: &BTreeMap<String, Item>,
    erased: &Project,
) {
    for text in [erased.id.to_string(), erased.ingest_id.to_string(), erased.public_key.to_string()]
    {
        let left = items_with(test, &text).await;
        assert!(left.is_empty(), "{left:#?}");
    }
    assert!(items_with(test, &format!("S(\"{}\")", erased.slug)).await.is_empty());
    let kept = IdOrSlug::parse("kept").unwrap();
    let kept = test.app.store.find_project(&kept).await.unwrap().unwrap().id.to_string();
    for item in test.items("errors").await {
        assert!(format!("{item:?}").contains(&kept), "{item:?}");
    }
    let after = everything(test).await;
    let keys = |all: &BTreeMap<String, Item>| -> BTreeSet<String> {
        all.keys().filter(|key| is_settled(key)).cloned().collect()
    };
    assert_eq!(keys(&after), keys(before), "items of other projects stay, and no others are left");
    // One key named both projects and keeps one. The others name none.
    let keys: Vec<_> = test.app.store.list_api_keys().await.unwrap();
    let named: Vec<usize> = keys.iter().map(|key| key.projects.iter().flatten().count()).collect();
    assert_eq!(named.iter().sum::<usize>(), 1, "{keys:?}");
    // A member that saw only the erased project must not see all.
    let members = test.items("people").await;
    let limited = members.iter().filter(|item| item.contains_key("projects")).count();
    assert_eq!(limited, 2);
    assert!(test.app.store.list_erasures().await.unwrap().is_empty());
}

#[tokio::test]
async fn erased_projects_leave_no_items() {
    let (test, before, erased) = filled().await;
    assert!(test.app.store.erase_project(&erased, test.app.clock.now()).await.unwrap());
    assert!(!test.app.store.erase_project(&erased, test.app.clock.now()).await.unwrap());
    run_until_erased(&test).await;
    assert_nothing_but(&test, &before, &erased).await;
}

#[tokio::test]
async fn erased_projects_return_404_and_free_their_slug() {
    let (test, _, erased) = filled().await;
    let list = || test.call(FLAGS);
    assert_eq!(list().send(&test.app).await.status, 200);
    test.app.store.erase_project(&erased, test.app.clock.now()).await.unwrap();
    // A function that has cached the project serves it for a minute.
    let (fresh, _) = tests::app::app_over(&test.engine.endpoint());
    assert_eq!(list().send(&fresh).await.problem(), (404, "project_not_found"));
    test.pass(MINUTE + Duration::from_millis(1));
    assert_eq!(list().send(&test.app).await.problem(), (404, "project_not_found"));

    // The erasure does not affect a new project with the slug.
    let new = demo::ensure_project(&test.app.store, PROJECT, "New").await.unwrap();
    assert_ne!(new, erased.id);
    run_until_erased(&test).await;
    let found = test.app.store.find_project(&IdOrSlug::parse(PROJECT).unwrap()).await.unwrap();
    assert_eq!(found.unwrap().id, new);
    assert!(items_with(&test, &erased.id.to_string()).await.is_empty());
}

#[tokio::test]
async fn interrupted_erasures_resume() {
    let (test, before, erased) = filled().await;
    test.app.store.erase_project(&erased, test.app.clock.now()).await.unwrap();
    let mut cut = 0;
    for round in 0..3_000_u64 {
        if test.app.store.list_erasures().await.unwrap().is_empty() {
            break;
        }
        test.pass(MINUTE * 20);
        let run = Box::pin((erase_data::JOB.run)(&test.app, Deadline::after(MINUTE)));
        // The time increases, so that the erasure completes.
        let lifetime = Duration::from_micros(200 + round * 50);
        cut += u64::from(tokio::time::timeout(lifetime, run).await.is_err());
        (purge_event_markers::JOB.run)(&test.app, Deadline::after(MINUTE)).await.unwrap();
    }
    assert!(cut > 20, "{cut}");
    assert_nothing_but(&test, &before, &erased).await;
}

/// Puts `count` payloads of 50 kB of a project into table errors.
async fn put_payloads(test: &TestApp, project: &str, count: usize) {
    let text = "x".repeat(50_000);
    let payload = |number: usize| {
        let pk = format!("event#{project}#{number:032x}");
        texts([("pk", &*pk), ("sk", "payload"), ("text", &text)])
    };
    test.put("errors", (0..count).map(payload)).await;
}

#[tokio::test]
async fn large_tables_are_read_in_parts_and_steps_can_be_repeated() {
    const COUNT: usize = 60;
    let test = TestApp::start().await;
    let other = ProjectId::new(uuid::Uuid::nil());
    for project in [test.project_id, other] {
        put_payloads(&test, &project.to_string(), COUNT).await;
    }
    let store = errors::store::ErrorStore::new(&test.app.store);
    let (mut removed, mut after, mut steps) = (0, None, 0);
    loop {
        // A killed function repeats its last step.
        removed += store.sweep_errors(test.project_id, after.as_deref()).await.unwrap().removed;
        let swept = store.sweep_errors(test.project_id, after.as_deref()).await.unwrap();
        assert_eq!(swept.removed, 0, "the first time removes all items of a step");
        steps += 1;
        let Some(position) = swept.after else { break };
        let parts: Vec<serde_json::Value> = serde_json::from_str(&position).unwrap();
        assert_eq!(parts.len(), 32);
        after = Some(position);
    }
    // The first page, then all parts: a part has less than 1 MB.
    assert_eq!((removed, steps), (COUNT as u64, 2));
    let left = test.items("errors").await;
    let is_left = |id: ProjectId| {
        let id = id.to_string();
        left.iter().filter(|item| format!("{item:?}").contains(&id)).count()
    };
    assert_eq!((is_left(test.project_id), is_left(other)), (0, COUNT));
}

#[tokio::test]
async fn concurrent_erasures_do_not_conflict() {
    let (test, before, erased) = filled().await;
    test.app.store.erase_project(&erased, test.app.clock.now()).await.unwrap();
    for minutes in [3, 3, 6, 6, 6, 6, 24 * 60, 60, 60] {
        test.pass(MINUTE * minutes);
        tokio::join!(erase(&test.app), erase(&test.app), erase(&test.app));
        (purge_event_markers::JOB.run)(&test.app, Deadline::after(MINUTE)).await.unwrap();
    }
    assert_nothing_but(&test, &before, &erased).await;
}

#[tokio::test]
async fn restored_items_of_erased_projects_are_erased() {
    let (test, before, erased) = filled().await;
    let flags: Vec<Item> = test.items("feature-flags").await;
    let store = &test.app.store;
    let again = || {
        let (organization, name) = (erased.organization.clone(), erased.id.to_string());
        Erasure::new(Subject::Project(erased.id), organization, name, test.app.clock.now())
    };
    let accepted = store.erase_rest_of_project(erased.id, &again()).await.unwrap();
    assert!(!accepted, "existing projects need a full erasure");
    store.erase_project(&erased, test.app.clock.now()).await.unwrap();
    let accepted = store.erase_rest_of_project(erased.id, &again()).await.unwrap();
    assert!(!accepted, "the erasure is in progress");
    run_until_erased(&test).await;
    let is_erased = |it: &Item| format!("{it:?}").contains(&erased.id.to_string());
    test.put("feature-flags", flags.into_iter().filter(is_erased)).await;
    assert!(!items_with(&test, &erased.id.to_string()).await.is_empty());

    assert!(store.erase_rest_of_project(erased.id, &again()).await.unwrap());
    run_until_erased(&test).await;
    assert_nothing_but(&test, &before, &erased).await;
}

#[tokio::test]
async fn expired_stored_responses_are_erased() {
    let (test, _, erased) = filled().await;
    assert!(!test.items("idempotency").await.is_empty());
    test.app.store.erase_project(&erased, test.app.clock.now()).await.unwrap();
    run_until_erased(&test).await;
    assert!(test.items("idempotency").await.is_empty(), "all responses are older than a day");
}
