//! Projects.

use local::demo;
use local::environment::table_prefix;
use shared::projects::api_key::ApiKeyRecord;
use shared::projects::erasure::{Erasure, Subject};
use shared::projects::project::IdOrSlug;
use shared::timestamp::Timestamp;
use tests::app::{PROJECT, START};

use super::*;

const FLAGS: &Operation = &list_feature_flags::OPERATION;

/// A project that stays, everything that there is before the other one is filled, and that one.
async fn filled() -> (TestApp, BTreeMap<String, Item>, Project) {
    filled_at(Timestamp::from_millis(i64::try_from(START).unwrap())).await
}

/// The same, from a time on.
pub(super) async fn filled_at(time: Timestamp) -> (TestApp, BTreeMap<String, Item>, Project) {
    let test = TestApp::start().await;
    test.set_time(time);
    let store = &test.app.store;
    let kept = demo::ensure_project(store, "kept", "Kept").await.unwrap();
    fill(&test, &project(&test, kept).await, 0).await;
    let erased = project(&test, test.project_id).await;
    // What is there already of the project that is to go.
    let mut before = everything(&test).await;
    before.retain(|_, item| !format!("{item:?}").contains(&erased.id.to_string()));
    fill(&test, &erased, 1_000).await;
    let both = [kept, erased.id];
    test.key_with(|key| ApiKeyRecord { projects: Some([erased.id].into()), ..key }).await;
    test.key_with(|key| ApiKeyRecord { projects: Some(both.into()), ..key }).await;
    (test, before, erased)
}

/// What of another project does not change by itself, as its log does while it is packed, nor is about keys,
/// which are looked at apart.
fn is_settled(key: &str) -> bool {
    let is_of_log = key.starts_with("errors ") && !key.ends_with("S(\"claim\")]");
    let changes = ["outbox#@", "batch#", "erasures#"];
    !is_of_log && !key.starts_with("api-keys") && !changes.iter().any(|it| key.contains(it))
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
    assert_eq!(
        keys(&after),
        keys(before),
        "nothing of others is missing, and nothing else is left"
    );
    // The key that named both, and those that name none.
    let keys: Vec<_> = test.app.store.list_api_keys().await.unwrap();
    let named: Vec<usize> = keys.iter().map(|key| key.projects.iter().flatten().count()).collect();
    assert_eq!(named.iter().sum::<usize>(), 1, "{keys:?}");
    assert!(test.app.store.list_erasures().await.unwrap().is_empty());
}

#[tokio::test]
async fn nothing_of_a_project_is_left_and_nothing_of_others_is_missing() {
    let (test, before, erased) = filled().await;
    assert!(test.app.store.erase_project(&erased, test.app.clock.now()).await.unwrap());
    assert!(!test.app.store.erase_project(&erased, test.app.clock.now()).await.unwrap());
    until_erased(&test).await;
    assert_nothing_but(&test, &before, &erased).await;
}

#[tokio::test]
async fn it_refuses_requests_at_once_and_its_slug_is_free() {
    let (test, _, erased) = filled().await;
    let list = || Call::of(FLAGS).parameter("idOrSlug", PROJECT).key(&test.key);
    assert_eq!(list().send(&test.app).await.status, 200);
    test.app.store.erase_project(&erased, test.app.clock.now()).await.unwrap();
    // Whoever has just looked it up remembers it for a minute, all others refuse.
    let (fresh, _) = tests::app::app_over(&test.engine.endpoint());
    assert_eq!(list().send(&fresh).await.problem(), (404, "project_not_found"));
    test.pass(MINUTE + Duration::from_millis(1));
    assert_eq!(list().send(&test.app).await.problem(), (404, "project_not_found"));

    // A new one of the same slug is another project, which the erasure leaves alone.
    let new = demo::ensure_project(&test.app.store, PROJECT, "New").await.unwrap();
    assert_ne!(new, erased.id);
    until_erased(&test).await;
    let found = test.app.store.find_project(&IdOrSlug::parse(PROJECT).unwrap()).await.unwrap();
    assert_eq!(found.unwrap().id, new);
    assert!(items_with(&test, &erased.id.to_string()).await.is_empty());
}

#[tokio::test]
async fn wherever_it_is_cut_short_it_goes_on() {
    let (test, before, erased) = filled().await;
    test.app.store.erase_project(&erased, test.app.clock.now()).await.unwrap();
    let mut cut = 0;
    for round in 0..3_000_u64 {
        if test.app.store.list_erasures().await.unwrap().is_empty() {
            break;
        }
        test.pass(MINUTE * 20);
        let run = Box::pin((erase_data::JOB.run)(&test.app, Deadline::after(MINUTE)));
        // Later and later, so that it gets through in the end.
        let lifetime = Duration::from_micros(500 + round * 200);
        cut += u64::from(tokio::time::timeout(lifetime, run).await.is_err());
        (purge_event_markers::JOB.run)(&test.app, Deadline::after(MINUTE)).await.unwrap();
    }
    assert!(cut > 20, "{cut}");
    assert_nothing_but(&test, &before, &erased).await;
}

#[tokio::test]
async fn twins_do_no_harm() {
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
async fn what_a_restored_table_brings_back_is_erased_again_without_the_project() {
    let (test, before, erased) = filled().await;
    let flags: Vec<Item> = test.items("feature-flags").await;
    let store = &test.app.store;
    let again = || {
        let (organization, name) = (erased.organization.clone(), erased.id.to_string());
        Erasure::new(Subject::Project(erased.id), organization, name, test.app.clock.now())
    };
    let refused = store.erase_rest_of_project(erased.id, &again()).await.unwrap();
    assert!(!refused, "a project that is there has requests and a slug to be taken away");
    store.erase_project(&erased, test.app.clock.now()).await.unwrap();
    assert!(!store.erase_rest_of_project(erased.id, &again()).await.unwrap(), "it is under way");
    until_erased(&test).await;
    for flag in flags.into_iter().filter(|it| format!("{it:?}").contains(&erased.id.to_string())) {
        let put = test.client.put_item().table_name(format!("{}feature-flags", table_prefix()));
        put.set_item(Some(flag)).send().await.unwrap();
    }
    assert!(!items_with(&test, &erased.id.to_string()).await.is_empty());

    assert!(store.erase_rest_of_project(erased.id, &again()).await.unwrap());
    until_erased(&test).await;
    assert_nothing_but(&test, &before, &erased).await;
}

#[tokio::test]
async fn stored_answers_go_once_they_have_expired() {
    let (test, _, erased) = filled().await;
    assert!(!test.items("idempotency").await.is_empty());
    test.app.store.erase_project(&erased, test.app.clock.now()).await.unwrap();
    until_erased(&test).await;
    assert!(test.items("idempotency").await.is_empty(), "all are older than a day");
}
