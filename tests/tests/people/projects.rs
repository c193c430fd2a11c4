//! Projects: creation, changes, limits and deletion.

use serde_json::{Value, json};
use shared::app::Operation;
use shared::projects::api_key::ApiKeyRecord;
use shared::projects::limits::Limit;
use shared::projects::role::Role;
use tests::app::{PROJECT, TestApp};
use tests::call::Call;

use super::{EFFECT, Person};

const CREATE: &Operation = &create_project::OPERATION;
const UPDATE: &Operation = &update_project::OPERATION;
const DELETE: &Operation = &delete_project::OPERATION;
const LIST: &Operation = &list_projects::OPERATION;

fn create(slug: &str) -> Call {
    Call::of(CREATE).json(&json!({"name": "New shop", "slug": slug}))
}

fn update(body: &Value) -> Call {
    Call::of(UPDATE).parameter("idOrSlug", PROJECT).json(body)
}

fn delete(slug: &str) -> Call {
    Call::of(DELETE).parameter("idOrSlug", PROJECT).json(&json!({"confirm": slug}))
}

#[tokio::test]
async fn admins_create_projects() {
    let test = TestApp::start().await;
    let admin = Person::join(&test, "admin@b.de", Role::Admin).await;
    let created = admin.send(&test, create("new-shop")).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let location = created.headers["location"].to_str().unwrap();
    assert_eq!(location, format!("/v0/projects/{}", created.body["id"].as_str().unwrap()));
    let listed = admin.send(&test, Call::of(LIST)).await;
    assert_eq!(listed.body["items"][0], created.body);
    for person in [&admin, &Person::join_in(&test, "foreign@b.de", Role::Owner, "other").await] {
        let reply = person.send(&test, create("new-shop")).await;
        assert_eq!(reply.problem(), (409, "project_exists"));
    }
    let member = Person::join(&test, "member@b.de", Role::Member).await;
    let reply = member.send(&test, create("another")).await;
    assert_eq!(reply.problem(), (403, "insufficient_scope"));
    let projects = Some([test.project_id].into());
    let limited = test.key_with(|key| ApiKeyRecord { projects, ..key }).await;
    let reply = create("another").key(&limited).send(&test.app).await;
    assert_eq!(reply.problem(), (403, "insufficient_scope"));
}

#[tokio::test]
async fn repeated_creations_get_the_stored_response() {
    let test = TestApp::start().await;
    let call = create("new-shop").key(&test.key).header("idempotency-key", "one");
    let first = call.clone().send(&test.app).await;
    let second = call.send(&test.app).await;
    assert_eq!((first.status, &first.body), (201, &second.body));
    assert_eq!(second.headers["idempotency-replayed"], "true");
}

#[tokio::test]
async fn names_and_limits_can_be_changed() {
    let test = TestApp::start().await;
    let send = |body: Value| update(&body).key(&test.key).send(&test.app);
    let changed = send(json!({"name": "Web shop", "eventsPerMinute": 7})).await;
    assert_eq!(changed.body["name"], "Web shop");
    let project = test.app.store.read_project(test.project_id).await.unwrap().unwrap();
    let (ingested, _) = test.app.store.find_ingest_access(project.ingest_id, false).await.unwrap();
    assert_eq!(ingested.unwrap().limits.get(Limit::EventsPerMinute), Some(7));
    let changed = send(json!({"requestsPerMinute": 0})).await;
    let limits = (&changed.body["eventsPerMinute"], &changed.body["requestsPerMinute"]);
    assert_eq!(limits, (&json!(7), &json!(0)));
    let changed = send(json!({"eventsPerMinute": null, "requestsPerMinute": null})).await;
    let limits = (&changed.body["eventsPerMinute"], &changed.body["requestsPerMinute"]);
    assert_eq!(limits, (&Value::Null, &Value::Null));
    let listed = Call::of(LIST).key(&test.key).send(&test.app).await;
    assert_eq!(listed.body["items"][0], changed.body);
}

#[tokio::test]
async fn production_is_a_setting() {
    let test = TestApp::start().await;
    let body = json!({"name": "Shop", "slug": "production-shop"});
    let created = Call::of(CREATE).key(&test.key).json(&body).send(&test.app).await;
    assert_eq!((created.status, &created.body["production"]), (201, &json!(null)));
    let body = json!({"name": "Live", "slug": "live", "production": true});
    let created = Call::of(CREATE).key(&test.key).json(&body).send(&test.app).await;
    assert_eq!((created.status, &created.body["production"]), (201, &json!(true)));
    let shown = async || {
        let caller = Call::of(&get_caller::OPERATION).key(&test.key).send(&test.app).await;
        let listed = Call::of(LIST).key(&test.key).send(&test.app).await;
        [&caller.body["projects"], &listed.body["items"]].map(|projects| {
            let all = projects.as_array().unwrap().iter();
            all.filter(|it| it["production"] == true)
                .map(|it| it["slug"].clone())
                .collect::<Value>()
        })
    };
    assert_eq!(shown().await, [json!(["live"]), json!(["live"])]);
    for (value, expected) in [(json!(true), true), (json!(true), true), (Value::Null, false)] {
        let changed = update(&json!({"production": value})).key(&test.key).send(&test.app).await;
        assert_eq!(
            (changed.status, &changed.body["production"]),
            (200, &json!(expected.then_some(true)))
        );
        assert_eq!(changed.body["name"], "Shop");
        let slugs = if expected { json!(["live", PROJECT]) } else { json!(["live"]) };
        assert_eq!(shown().await, [slugs.clone(), slugs]);
    }
    let reply = update(&json!({"production": "yes"})).key(&test.key).send(&test.app).await;
    assert_eq!((reply.status, reply.violations()), (400, vec![("/production", "invalid_type")]));
}

#[tokio::test]
async fn projects_limit_the_requests_of_each_key() {
    let test = TestApp::start().await;
    let body = json!({"requestsPerMinute": 10});
    assert_eq!(update(&body).key(&test.key).send(&test.app).await.status, 200);
    test.pass(EFFECT);
    let list = |project: &str| {
        let call = Call::of(&list_feature_flags::OPERATION).parameter("idOrSlug", project);
        call.key(&test.key).send(&test.app)
    };
    for _ in 0..5 {
        assert_eq!(list(PROJECT).await.status, 200);
        assert_eq!(list(&test.project_id.to_string()).await.status, 200);
    }
    assert_eq!(list(PROJECT).await.problem(), (429, "throttled"));
    let other = test.other_project().await;
    assert_eq!(list(&other.to_string()).await.status, 200);
}

#[tokio::test]
async fn deletions_need_the_slug() {
    let test = TestApp::start().await;
    let admin = Person::join(&test, "admin@b.de", Role::Admin).await;
    for slug in ["", "SHOP", "other"] {
        let reply = admin.send(&test, delete(slug)).await;
        assert_eq!(reply.problem(), (400, "validation_failed"));
        assert_eq!(reply.body["errors"][0]["pointer"], "/confirm");
    }
    let deleted = admin.send(&test, delete(PROJECT)).await;
    assert_eq!((deleted.status, &deleted.body["slug"]), (202, &json!(PROJECT)), "{}", deleted.text);
    assert_eq!(test.app.store.list_erasures().await.unwrap().len(), 1);
    assert_eq!(admin.send(&test, delete(PROJECT)).await.problem(), (404, "project_not_found"));
    let listed = admin.send(&test, Call::of(LIST)).await;
    assert_eq!(listed.body["items"], json!([]));
}
