//! API keys: creation within the caller's permissions, lists and revocation.

use std::time::Duration;

use serde_json::{Value, json};
use shared::app::{Clock, Operation};
use shared::projects::api_key::{ApiKeyRecord, Scope};
use shared::projects::role::Role;
use tests::app::{PROJECT, TestApp};
use tests::call::Call;
use tests::notifications::SentMessages;

use super::{EFFECT, Person, column, key_body};

const CREATE: &Operation = &create_api_key::OPERATION;
const LIST: &Operation = &list_api_keys::OPERATION;
const REVOKE: &Operation = &revoke_api_key::OPERATION;
const ME: &Operation = &get_caller::OPERATION;

#[tokio::test]
async fn new_keys_work_until_they_are_revoked() {
    let test = TestApp::start().await;
    let admin = Person::join(&test, "admin@b.de", Role::Admin).await;
    let body = json!({"name": " CI ", "scopes": ["flags:read"], "projects": [PROJECT]});
    let created = admin.send(&test, Call::of(CREATE).json(&body)).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let expected = json!({
        "name": "CI", "scopes": ["flags:read"], "projects": [test.project_id],
        "createdBy": "admin@b.de", "revokedAt": null, "lastUsedAt": null, "expiresAt": null,
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(created.body[field], *value, "{field}");
    }
    let key = created.body["apiKey"].as_str().unwrap().to_owned();
    let me = Call::of(ME).key(&key).send(&test.app).await;
    assert_eq!(me.body["user"], "admin@b.de");

    let id = created.body["keyId"].as_str().unwrap();
    let revoke = || Call::of(REVOKE).parameter("keyId", id);
    let foreign = Person::join_in(&test, "foreign@b.de", Role::Owner, "other").await;
    assert_eq!(foreign.send(&test, revoke()).await.problem(), (404, "api_key_not_found"));
    assert_eq!(admin.send(&test, revoke()).await.status, 204);
    assert_eq!(admin.send(&test, revoke()).await.problem(), (404, "api_key_not_found"));
    test.pass(EFFECT);
    let me = Call::of(ME).key(&key).send(&test.app).await;
    assert_eq!(me.problem(), (401, "invalid_api_key"));
    let listed = admin.send(&test, Call::of(LIST)).await;
    let items = listed.body["items"].as_array().unwrap();
    let revoked = items.iter().find(|key| key["keyId"] == id).unwrap();
    assert!(revoked["revokedAt"].is_string());
    assert!(!listed.text.contains(&key[20..]), "lists contain no secrets");
    let bytes = format!("{:?}", test.items("api-keys").await);
    assert!(!bytes.contains(&key[20..63]), "secrets are not stored");
}

#[tokio::test]
async fn emails_about_keys_and_addresses_name_the_browser() {
    let (test, sent) = (TestApp::start().await, SentMessages::open());
    let admin = Person::join(&test, "admin@b.de", Role::Admin).await;
    let chrome = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like \
                  Gecko) Chrome/126.0.0.0 Safari/537.36";
    let create = Call::of(CREATE).json(&key_body(&["notifications:write"]));
    let created = admin.send(&test, create.header("user-agent", chrome)).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let text = async |to: &str| {
        sent.run(&test.app).await;
        sent.emails_to(to).await[0]["text"].as_str().unwrap().to_owned()
    };
    let mail = text("admin@b.de").await;
    assert!(mail.contains("Chrome on macOS"), "{mail}");
    let address = |email: &str| {
        let call = Call::of(&set_email_address::OPERATION).json(&json!({"email": email}));
        call.header("user-agent", chrome)
    };
    assert_eq!(admin.send(&test, address("a@c.de")).await.status, 200);
    let mail = text("a@c.de").await;
    assert!(mail.contains("with Chrome on macOS"), "{mail}");
    // Any program can send this header with a key.
    let key = created.body["apiKey"].as_str().unwrap();
    assert_eq!(address("b@c.de").key(key).send(&test.app).await.status, 200);
    let mail = text("b@c.de").await;
    assert!(!mail.contains("Chrome"), "{mail}");
}

#[tokio::test]
async fn ends_of_memberships_expire_with_their_keys() {
    let test = TestApp::start().await;
    let juno = Person::join(&test, "juno@b.de", Role::Admin).await;
    let created = juno.send(&test, Call::of(CREATE).json(&key_body(&["flags:read"]))).await;
    Person::join(&test, "owner@b.de", Role::Owner).await;
    let remove = Call::of(&remove_member::OPERATION).parameter("memberId", juno.member.id);
    assert_eq!(remove.key(&test.key).send(&test.app).await.status, 204);
    let listed = async || {
        let list = Call::of(LIST).key(&test.key).send(&test.app).await;
        column(&list, "keyId").contains(&&created.body["keyId"])
    };
    assert!(listed().await);
    let end = format!("member#{}", juno.member.id);
    let items = test.items("people").await;
    let ended = items.iter().find(|item| item["pk"].as_s() == Ok(&end)).unwrap();
    let days = Duration::from_hours(400 * 24);
    let expiry = test.app.clock.now().plus(days).as_seconds().to_string();
    assert_eq!(ended["expiresAt"].as_n(), Ok(&expiry));
    let key = ["pk", "sk"].map(|name| (name, ended[name].as_s().unwrap().as_str()));
    test.remove("people", key).await;
    assert!(!listed().await);
}

#[tokio::test]
async fn keys_cannot_exceed_their_creator() {
    let test = TestApp::start().await;
    let scopes = || [Scope::KeysWrite, Scope::FlagsRead].into();
    let weak = test.key_with(|key| ApiKeyRecord { scopes: scopes(), ..key }).await;
    let create = |key: &str, body: Value| Call::of(CREATE).key(key).json(&body).send(&test.app);
    for scopes in [&["all"][..], &["flags:read", "flags:write"]] {
        let reply = create(&weak, key_body(scopes)).await;
        assert_eq!(reply.problem(), (403, "insufficient_scope"));
    }
    assert_eq!(create(&weak, key_body(&["flags:read"])).await.status, 201);

    let projects = Some([test.project_id].into());
    let limited = test.key_with(|key| ApiKeyRecord { scopes: scopes(), projects, ..key }).await;
    let reply = create(&limited, key_body(&["flags:read"])).await;
    assert_eq!(reply.problem(), (403, "insufficient_scope"));
    let other = test.other_project().await;
    let body =
        |projects: Value| json!({"name": "a", "scopes": ["flags:read"], "projects": projects});
    let reply = create(&limited, body(json!([other]))).await;
    assert_eq!(reply.problem(), (404, "project_not_found"));
    assert_eq!(create(&limited, body(json!([PROJECT]))).await.status, 201);
    // The key sees and revokes only keys within its projects: itself, and the new one.
    let listed = Call::of(LIST).key(&limited).send(&test.app).await;
    assert_eq!(column(&listed, "keyId").len(), 2);
    let id = &test.key[3..19];
    let reply = Call::of(REVOKE).parameter("keyId", id).key(&limited).send(&test.app).await;
    assert_eq!(reply.problem(), (404, "api_key_not_found"));

    let now = test.app.clock.now();
    let ends = Some(now.plus(Duration::from_mins(5)));
    let short = test.key_with(|key| ApiKeyRecord { expires_at: ends, ..key }).await;
    let reply = create(&short, key_body(&["flags:read"])).await;
    assert_eq!(reply.problem(), (400, "validation_failed"));
    assert_eq!(reply.body["errors"][0]["pointer"], "/expiresAt");
}

#[tokio::test]
async fn keys_of_removed_members_are_listed_as_revoked() {
    let test = TestApp::start().await;
    let owner = Person::join(&test, "owner@b.de", Role::Owner).await;
    let juno = Person::join(&test, "juno@b.de", Role::Admin).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let created = juno.send(&test, Call::of(CREATE).json(&key_body(&["flags:read"]))).await;
        ids.push(created.body["keyId"].as_str().unwrap().to_owned());
    }
    let revoke = |id: &str| Call::of(REVOKE).parameter("keyId", id);
    test.pass(Duration::from_mins(5));
    let revoked_at = test.app.clock.now();
    assert_eq!(owner.send(&test, revoke(&ids[0])).await.status, 204);
    test.pass(Duration::from_mins(5));
    let removed_at = test.app.clock.now();
    let remove = Call::of(&remove_member::OPERATION).parameter("memberId", juno.member.id);
    assert_eq!(owner.send(&test, remove).await.status, 204);
    test.pass(Duration::from_mins(5));
    let listed = owner.send(&test, Call::of(LIST)).await;
    let listed = listed.body["items"].as_array().unwrap();
    for (id, at) in [(&*ids[0], json!(revoked_at)), (&ids[1], json!(removed_at))] {
        let key = listed.iter().find(|key| key["keyId"] == id).unwrap();
        assert_eq!(key["revokedAt"], at);
        assert_eq!(owner.send(&test, revoke(id)).await.problem(), (404, "api_key_not_found"));
    }
    let own = listed.iter().find(|key| key["keyId"] == test.key[3..19]).unwrap();
    assert_eq!(own["revokedAt"], Value::Null);
}

#[tokio::test]
async fn keys_are_listed_newest_first() {
    let test = TestApp::start().await;
    let mut created = Vec::new();
    for number in 0..5 {
        test.pass(Duration::from_secs(1));
        let body = json!({"name": format!("key {number}"), "scopes": ["flags:read"]});
        let reply = Call::of(CREATE).key(&test.key).json(&body).send(&test.app).await;
        assert_eq!(reply.body["createdBy"], Value::Null, "a key without a member created it");
        created.insert(0, reply.body["name"].clone());
    }
    let pages = test.pages(&Call::of(LIST).key(&test.key), 2).await;
    let names: Vec<Value> = pages.concat().iter().map(|key| key["name"].clone()).collect();
    // The tests' own key was created at the time of the system's clock.
    let names: Vec<Value> = names.into_iter().filter(|name| *name != "").collect();
    assert_eq!(names, created);
}

#[tokio::test]
async fn last_uses_are_recorded_once_an_hour() {
    let test = TestApp::start().await;
    let start = test.app.clock.now();
    let millis = |at: shared::timestamp::Timestamp| u64::try_from(at.as_millis()).unwrap();
    let app = |minutes| {
        let at = start.plus(Duration::from_mins(minutes));
        test.app_at(Clock::Fixed(millis(at).into())).recording_uses()
    };
    let used = async |minutes| {
        Call::of(ME).key(&test.key).send(&app(minutes)).await;
        let listed = Call::of(LIST).key(&test.key).send(&test.app).await;
        listed.body["items"][0]["lastUsedAt"].clone()
    };
    let first = used(0).await;
    assert_eq!(first, json!(start));
    assert_eq!(used(130).await, json!(start.plus(Duration::from_mins(130))));
}
