//! get-caller and list-projects against a real engine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod console_codes;
mod unauthenticated;

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use local::demo;
use serde_json::{Value, json};
use shared::app::{Clock, Ids, Operation};
use shared::http::OriginSecrets;
use shared::projects::api_key::{ApiKeyRecord, Scope, UserId};
use shared::projects::dsn::PublicKey;
use shared::projects::project::{Organization, Project, ProjectId, ProjectName, Slug};
use shared::timestamp::Timestamp;
use tests::app::{PROJECT, TestApp, app_over, key_id, left_out};
use tests::call::{Call, Gateway};

const ME: &Operation = &get_caller::OPERATION;
const LIST: &Operation = &list_projects::OPERATION;

async fn create(test: &TestApp, slug: &str) -> ProjectId {
    demo::ensure_project(&test.app.store, slug, &format!("The {slug}")).await.unwrap()
}

/// Creates a project in another organization.
async fn create_foreign(test: &TestApp, slug: &str) -> ProjectId {
    let now = Clock::System.now();
    let id = ProjectId::new(Ids::Random.new_uuid(now));
    let (slug, name) = (Slug::parse(slug).unwrap(), ProjectName::parse("Foreign").unwrap());
    let project = Project::new(id, slug, name, organization("foreign"), now).unwrap();
    test.app.store.create_project(&project).await.unwrap();
    id
}

fn organization(name: &str) -> Organization {
    Organization::parse(name).unwrap()
}

fn shown(id: ProjectId, slug: &str) -> Value {
    let name = if slug == PROJECT { "Shop".to_owned() } else { format!("The {slug}") };
    json!({"id": id, "slug": slug, "name": name})
}

/// Returns a project's item in list-projects.
async fn listed(test: &TestApp, id: ProjectId, mut shown: Value) -> Value {
    let project = test.app.store.read_project(id).await.unwrap().unwrap();
    shown["ingestId"] = json!(project.ingest_id);
    shown["publicKey"] = json!(project.public_key);
    (shown["eventsPerMinute"], shown["requestsPerMinute"]) = (Value::Null, Value::Null);
    shown
}

#[tokio::test]
async fn keys_that_only_evaluate_flags_reveal_no_user() {
    let test = TestApp::start().await;
    for (scopes, user) in [
        (&[Scope::FlagsEvaluate][..], Value::Null),
        (&[Scope::FlagsEvaluate, Scope::FlagsRead], json!("mira@example.com")),
    ] {
        let key = |key| ApiKeyRecord {
            user: UserId::parse("mira@example.com").unwrap(),
            scopes: scopes.iter().copied().collect(),
            ..key
        };
        let reply = Call::of(ME).key(&test.key_with(key).await).send(&test.app).await;
        assert_eq!((reply.status, &reply.body["user"]), (200, &user), "{scopes:?}");
    }
}

#[tokio::test]
async fn callers_see_their_identity_and_scopes() {
    let test = TestApp::start().await;
    let other = create(&test, "a-project").await;
    create_foreign(&test, "b-project").await;
    let reply = Call::of(ME).key(&test.key).send(&test.app).await;
    let all = [shown(other, "a-project"), shown(test.project_id, PROJECT)];
    let expected = json!({
        "user": "owner", "organization": "default", "scopes": Scope::ALL, "projects": all,
        "keyId": key_id(&test.key), "expiresAt": null,
    });
    assert_eq!((reply.status, reply.body), (200, expected));

    let ends = Timestamp::from_millis(1_830_000_000_000);
    let bound = test
        .key_with(|key| ApiKeyRecord {
            user: UserId::parse("mira@example.com").unwrap(),
            scopes: [Scope::FlagsWrite, Scope::FlagsRead].into(),
            projects: Some([test.project_id].into()),
            expires_at: Some(ends),
            ..key
        })
        .await;
    let reply = Call::of(ME).key(&bound).send(&test.app).await;
    let expected = json!({
        "user": "mira@example.com", "organization": "default",
        "scopes": ["flags:read", "flags:write"], "projects": [shown(test.project_id, PROJECT)],
        "keyId": key_id(&bound), "expiresAt": ends,
    });
    assert_eq!((reply.status, reply.body), (200, expected));
}

#[tokio::test]
async fn callers_see_their_first_hundred_projects() {
    let test = TestApp::start().await;
    for number in 0..105 {
        create(&test, &format!("p-{number:03}")).await;
    }
    let reply = Call::of(ME).key(&test.key).send(&test.app).await;
    let projects = reply.body["projects"].as_array().unwrap();
    let slugs: Vec<&str> = projects.iter().map(|it| it["slug"].as_str().unwrap()).collect();
    assert_eq!((slugs.len(), slugs[0], slugs[99]), (100, "p-000", "p-099"));
}

#[tokio::test]
async fn projects_are_listed_in_pages_by_slug() {
    let test = TestApp::start().await;
    let mut expected = vec![listed(&test, test.project_id, shown(test.project_id, PROJECT)).await];
    let mut named = vec![test.project_id, create_foreign(&test, "foreign").await];
    for slug in ["a", "shop-2", "b-c", "b", "0"] {
        let id = create(&test, slug).await;
        expected.push(listed(&test, id, shown(id, slug)).await);
        named.push(id);
    }
    // A project that no longer exists.
    named.push(ProjectId::new(Ids::Random.new_uuid(Clock::System.now())));
    expected.sort_by_key(|it| it["slug"].as_str().unwrap().to_owned());
    let naming = test
        .key_with(|key| ApiKeyRecord { projects: Some(named.into_iter().collect()), ..key })
        .await;
    for key in [&test.key, &naming] {
        let list = Call::of(LIST).key(key);
        for call in [list.clone(), list.gateway(Gateway::RestApi)] {
            for limit in [1, 2, 4, 6, 100] {
                assert_eq!(test.pages(&call, limit).await.concat(), expected, "{limit}");
            }
        }
    }
}

#[tokio::test]
async fn callers_cannot_see_other_organizations() {
    let test = TestApp::start().await;
    let foreign = create_foreign(&test, "foreign").await;
    let of_foreign = |projects| {
        test.key_with(move |key| ApiKeyRecord {
            organization: organization("foreign"),
            projects,
            ..key
        })
    };
    let theirs = json!({"id": foreign, "slug": "foreign", "name": "Foreign"});
    let theirs_listed = json!([listed(&test, foreign, theirs.clone()).await]);
    let theirs = json!([theirs]);
    let both = Some([foreign, test.project_id].into());
    for (key, seen) in [
        (of_foreign(None).await, theirs.clone()),
        (of_foreign(both).await, theirs.clone()),
        (of_foreign(Some([test.project_id].into())).await, json!([])),
        (
            test.key_with(|key| ApiKeyRecord { organization: organization("none"), ..key }).await,
            json!([]),
        ),
    ] {
        let list = Call::of(LIST).key(&key).send(&test.app).await.body;
        let items = if seen == theirs { &theirs_listed } else { &seen };
        assert_eq!(list, json!({"items": items, "nextCursor": null}));
        assert_eq!(Call::of(ME).key(&key).send(&test.app).await.body["projects"], seen);
    }
}

#[tokio::test]
async fn only_the_listed_dsn_accepts_errors() {
    let test = TestApp::start().await;
    let listed = async || {
        let mut list = Call::of(LIST).key(&test.key).send(&test.app).await.body;
        list["items"][0].take()
    };
    let report = async |project: &Value| {
        let call = Call::of(&ingest_error_events::OPERATION).path("/api/{ingestId}/store/");
        let call = call.parameter("ingestId", &project["ingestId"]);
        let key = project["publicKey"].as_str().unwrap();
        call.query("sentry_key", key).json(&json!({"message": "x"})).send(&test.app).await.status
    };
    let before = listed().await;
    assert_eq!(report(&before).await, 200);
    let key = PublicKey::generate().unwrap();
    let project = test.app.store.read_project(test.project_id).await.unwrap().unwrap();
    assert!(test.app.store.replace_dsn_key(&project, key, vec![]).await.unwrap());
    let after = listed().await;
    assert_eq!(after["publicKey"], json!(key));
    assert_eq!(after["ingestId"], before["ingestId"]);
    test.pass(Duration::from_secs(61));
    assert_eq!((report(&before).await, report(&after).await), (403, 200));
}

#[tokio::test]
async fn unreadable_projects_are_skipped_and_reported() {
    let test = TestApp::start().await;
    let damaged = create(&test, "damaged").await;
    let key = damaged.to_string();
    let name = AttributeValue::S("\u{7}".to_owned());
    test.tamper("projects", [("idOrSlug", &key)], "name", name).await;
    let projects = Some([damaged, test.project_id].into());
    let naming = test.key_with(|key| ApiKeyRecord { projects, ..key }).await;
    let whole = listed(&test, test.project_id, shown(test.project_id, PROJECT)).await;
    for caller in [&test.key, &naming] {
        let list = Call::of(LIST).key(caller).send(&test.app).await.body;
        assert_eq!(list["items"], json!([whole]));
    }
    assert_eq!(left_out(&key), [("projects", "name")].into());
}

#[tokio::test]
async fn requests_that_bypass_the_distribution_are_rejected_first() {
    let test = TestApp::start().await;
    let (app, round_trips) = app_over(&test.engine.endpoint());
    let app = app.with_origin_secrets(OriginSecrets::parse("a-secret-of-the-edge,the-one-before"));
    let call = || Call::of(ME).key(&test.key);
    for call in [call(), call().header("x-origin-secret", "a-secret-of-the-edg")] {
        let reply = call.send(&app).await;
        assert_eq!((reply.status, reply.body), (403, json!({"message": "Forbidden"})));
    }
    assert_eq!(round_trips.load(std::sync::atomic::Ordering::Relaxed), 0);
    for secret in ["a-secret-of-the-edge", "the-one-before"] {
        assert_eq!(call().header("x-origin-secret", secret).send(&app).await.status, 200);
    }
    // Without a configured secret, no header is required.
    assert_eq!(call().send(&test.app).await.status, 200);
}
