//! Members: lists, changes, removal, and races.

use futures_util::join;
use people::Grant;
use people::store::{PeopleChange, PeopleStore};
use serde_json::{Value, json};
use shared::app::Operation;
use shared::projects::api_key::{ApiKeyRecord, Scope};
use shared::projects::role::Role;
use tests::app::{PROJECT, TestApp};
use tests::call::Call;

use super::Person;

const LIST: &Operation = &list_members::OPERATION;
const UPDATE: &Operation = &update_member::OPERATION;
const REMOVE: &Operation = &remove_member::OPERATION;

fn update(person: &Person, body: &Value) -> Call {
    Call::of(UPDATE).parameter("memberId", person.member.id).json(body)
}

fn remove(person: &Person) -> Call {
    Call::of(REMOVE).parameter("memberId", person.member.id)
}

#[tokio::test]
async fn members_are_listed_by_address() {
    let test = TestApp::start().await;
    for name in ["c@b.de", "a@b.de", "b@b.de"] {
        Person::join(&test, name, Role::Viewer).await;
    }
    Person::join_in(&test, "d@b.de", Role::Owner, "other").await;
    let pages = test.pages(&Call::of(LIST).key(&test.key), 2).await;
    let emails: Vec<_> = pages.concat().iter().map(|member| member["email"].clone()).collect();
    assert_eq!(emails, ["a@b.de", "b@b.de", "c@b.de"]);
    assert_eq!(pages[0][0]["projects"], Value::Null);
    assert_eq!(pages[0][0]["lastSeenAt"], Value::Null);
}

#[tokio::test]
async fn roles_and_projects_can_be_changed() {
    let test = TestApp::start().await;
    let owner = Person::join(&test, "owner@b.de", Role::Owner).await;
    let juno = Person::join(&test, "juno@b.de", Role::Viewer).await;
    let reply = owner.send(&test, update(&juno, &json!({"projects": [PROJECT]}))).await;
    assert_eq!(reply.body["projects"], json!([test.project_id]));
    assert_eq!(reply.body["role"], "viewer");
    let reply = owner.send(&test, update(&juno, &json!({"role": "admin"}))).await;
    assert_eq!((&reply.body["role"], &reply.body["projects"]), (&json!("admin"), &Value::Null));
    let reply = owner.send(&test, update(&juno, &json!({"projects": [PROJECT]}))).await;
    assert_eq!(reply.problem(), (400, "validation_failed"));
    let reply =
        owner.send(&test, update(&juno, &json!({"role": "member", "projects": ["no"]}))).await;
    assert_eq!(reply.problem(), (404, "project_not_found"));
    for id in ["x", "01a20c10-4b00-7e21-8d4c-1f6a9b3e5c70"] {
        let call = update(&juno, &json!({})).parameter("memberId", id);
        assert_eq!(owner.send(&test, call).await.problem(), (404, "member_not_found"));
    }
}

#[tokio::test]
async fn roles_above_the_own_cannot_be_changed_or_given() {
    let test = TestApp::start().await;
    let owner = Person::join(&test, "owner@b.de", Role::Owner).await;
    let admin = Person::join(&test, "admin@b.de", Role::Admin).await;
    let viewer = Person::join(&test, "viewer@b.de", Role::Viewer).await;
    let insufficient = (403, "insufficient_role");
    for call in [
        update(&owner, &json!({"role": "viewer"})),
        remove(&owner),
        update(&viewer, &json!({"role": "owner"})),
        update(&admin, &json!({"role": "owner"})),
    ] {
        assert_eq!(admin.send(&test, call).await.problem(), insufficient);
    }
    let member = Person::join(&test, "member@b.de", Role::Member).await;
    for person in [&viewer, &member] {
        for call in [update(person, &json!({"role": "admin"})), remove(&admin)] {
            assert_eq!(person.send(&test, call).await.problem(), (403, "insufficient_scope"));
        }
    }
    let foreign = Person::join_in(&test, "foreign@b.de", Role::Owner, "other").await;
    assert_eq!(foreign.send(&test, remove(&viewer)).await.problem(), (404, "member_not_found"));
    assert_eq!(owner.send(&test, update(&admin, &json!({"role": "owner"}))).await.status, 200);
}

/// Otherwise a key that only changes members could make one with all scopes.
#[tokio::test]
async fn keys_give_no_role_beyond_their_scopes() {
    let test = TestApp::start().await;
    let owner = Person::join(&test, "owner@b.de", Role::Owner).await;
    let admin = Person::join(&test, "admin@b.de", Role::Admin).await;
    let juno = Person::join(&test, "juno@b.de", Role::Viewer).await;
    let key = async |scopes: &[Scope], person: Option<&Person>| {
        let scopes = scopes.iter().copied().collect();
        let member = person.map(|person| person.member.id);
        let user = person.map(|person| person.member.user.clone());
        test.key_with(|key| {
            let user = user.unwrap_or(key.user);
            ApiKeyRecord { user, member, scopes, ..key }
        })
        .await
    };
    let invite = |role: Role| {
        let email = format!("{role}@c.de");
        Call::of(&create_invitation::OPERATION).json(&json!({"email": email, "role": role}))
    };
    let status = async |key: &str, call: Call| {
        let reply = call.key(key).send(&test.app).await;
        if reply.status == 403 {
            assert_eq!(reply.body["code"], "insufficient_role", "{}", reply.text);
        }
        reply.status
    };
    let narrow = key(&[Scope::MembersWrite], None).await;
    for call in
        [invite(Role::Viewer), invite(Role::Admin), update(&juno, &json!({"role": "owner"}))]
    {
        assert_eq!(status(&narrow, call).await, 403);
    }
    // More projects are also more permissions.
    assert_eq!(status(&narrow, update(&juno, &json!({"projects": null}))).await, 403);
    assert_eq!(status(&narrow, remove(&owner)).await, 403);

    let scopes = Role::Member.scopes().into_iter().chain([Scope::MembersWrite]);
    let of_member = key(&scopes.collect::<Vec<_>>(), None).await;
    assert_eq!(status(&of_member, invite(Role::Member)).await, 201);
    assert_eq!(status(&of_member, invite(Role::Admin)).await, 403);

    // A key of an admin with all scopes gives no more than the admin can.
    let of_admin = key(&Scope::ALL, Some(&admin)).await;
    assert_eq!(status(&of_admin, invite(Role::Owner)).await, 403);
    assert_eq!(status(&of_admin, remove(&owner)).await, 403);
    assert_eq!(status(&of_admin, invite(Role::Admin)).await, 201);
    let of_owner = key(&Scope::ALL, Some(&owner)).await;
    assert_eq!(status(&of_owner, invite(Role::Owner)).await, 201);
    assert_eq!(status(&narrow, remove(&juno)).await, 204);
}

#[tokio::test]
async fn stale_roles_permit_no_changes() {
    let test = TestApp::start().await;
    Person::join(&test, "owner@b.de", Role::Owner).await;
    let former = Person::join(&test, "former@b.de", Role::Owner).await;
    let viewer = Person::join(&test, "viewer@b.de", Role::Viewer).await;
    // The function caches the owner's role.
    assert_eq!(former.send(&test, update(&viewer, &json!({}))).await.status, 200);
    former.give(&test, Role::Admin).await;
    for call in [
        update(&former, &json!({"role": "owner"})),
        update(&viewer, &json!({"role": "owner"})),
        remove(&viewer),
    ] {
        assert_eq!(former.send(&test, call).await.problem(), (403, "insufficient_role"));
    }
}

#[tokio::test]
async fn outdated_members_are_not_changed() {
    let test = TestApp::start().await;
    let rising = Person::join(&test, "rising@b.de", Role::Member).await;
    let store = test.patient_store();
    let people = PeopleStore::new(&store);
    rising.give(&test, Role::Owner).await;
    // An admin read the member before the promotion.
    let viewer = Grant::new(Role::Viewer, None).unwrap();
    let now = test.app.clock.now();
    let outcome = people.change_member(&rising.member, &viewer, None, vec![], now).await.unwrap();
    assert_eq!(outcome, PeopleChange::Outdated);
    let outcome = people.remove_member(&rising.member, None, vec![], now).await.unwrap();
    assert_eq!(outcome, PeopleChange::Outdated);
}

#[tokio::test]
async fn last_owners_stay() {
    let test = TestApp::start().await;
    let owner = Person::join(&test, "owner@b.de", Role::Owner).await;
    for call in [update(&owner, &json!({"role": "admin"})), remove(&owner)] {
        assert_eq!(owner.send(&test, call).await.problem(), (409, "last_owner"));
    }
    Person::join(&test, "other@b.de", Role::Owner).await;
    assert_eq!(owner.send(&test, remove(&owner)).await.status, 204);
}

#[tokio::test]
async fn concurrent_changes_keep_an_owner() {
    let test = TestApp::start().await;
    let one = Person::join(&test, "one@b.de", Role::Owner).await;
    let two = Person::join(&test, "two@b.de", Role::Owner).await;
    for round in 0..10 {
        let call = |person: &Person| match round % 2 {
            0 => update(person, &json!({"role": "admin"})).key(&test.key),
            _ => update(person, &json!({"role": "viewer"})).key(&test.key),
        };
        let (first, second) = join!(call(&one).send(&test.app), call(&two).send(&test.app));
        let mut statuses = [first.status, second.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{} {}", first.text, second.text);
        for person in [&one, &two] {
            person.give(&test, Role::Owner).await;
        }
    }
    let (first, second) = join!(
        remove(&one).key(&test.key).send(&test.app),
        remove(&two).key(&test.key).send(&test.app)
    );
    let succeeded = [&first, &second].iter().filter(|reply| reply.status == 204).count();
    assert_eq!(succeeded, 1, "{} {}", first.text, second.text);
}
