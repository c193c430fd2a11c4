//! Sessions: permissions, ends, switches and their cost.

use std::collections::BTreeSet;
use std::time::Duration;

use people::store::PeopleStore;
use people::{Grant, Invitation, InvitationId};
use serde_json::json;
use shared::projects::api_key::{ApiKeyRecord, Scope};
use shared::projects::member::Member;
use shared::projects::project::Organization;
use shared::projects::role::Role;
use tests::app::{PROJECT, TestApp};
use tests::call::Call;
use tests::people::{add_member, session_of, signed_in};

use super::support::{ACCEPT, MIRA, SESSION, SIGN_OUT, SWITCH, assert_problem, me};

async fn change(test: &TestApp, member: &Member, role: Role) {
    let store = test.patient_store();
    let grant = Grant::new(role, None).unwrap();
    PeopleStore::new(&store)
        .change_member(member, &grant, None, Vec::new(), test.app.clock.now())
        .await
        .unwrap();
}

async fn remove(test: &TestApp, member: &Member) {
    let store = test.patient_store();
    PeopleStore::new(&store)
        .remove_member(member, None, Vec::new(), test.app.clock.now())
        .await
        .unwrap();
}

#[tokio::test]
async fn sessions_have_the_scopes_of_their_role() {
    let test = TestApp::start().await;
    for role in Role::ALL {
        let (_, session) = signed_in(&test, &format!("{role}@example.com"), role).await;
        let reply = me(&test, &session).await;
        assert_eq!(reply.body["role"], role.as_str());
        let scopes: Vec<&str> = role.scopes().into_iter().map(Scope::as_str).collect();
        assert_eq!(reply.body["scopes"], json!(scopes));
    }
}

#[tokio::test]
async fn warm_sessions_cost_no_reads() {
    let test = TestApp::start().await;
    add_member(&test, "owner@example.com", "default", Role::Owner, None).await;
    let (_, session) = signed_in(&test, MIRA, Role::Viewer).await;
    let call = |call: Call| call.parameter("idOrSlug", PROJECT);
    let list = || call(Call::of(&list_feature_flags::OPERATION));
    let cost = async |call: Call| {
        test.round_trips();
        assert_eq!(call.send(&test.app).await.status, 200);
        test.round_trips()
    };
    let cold_key = cost(list().key(&test.key)).await;
    let warm_key = cost(list().key(&test.key)).await;
    let cold = cost(list().session(&session)).await;
    let warm = cost(list().session(&session)).await;
    assert_eq!(warm, warm_key);
    // The session, then its membership.
    assert_eq!((cold_key, cold), (warm_key + 1, warm + 2));
    // The caches last for a minute.
    test.pass(Duration::from_secs(59));
    assert_eq!(cost(list().session(&session)).await, warm);
}

#[tokio::test]
async fn sessions_evaluate_flags_but_need_the_proof() {
    let test = TestApp::start().await;
    let (_, session) = signed_in(&test, MIRA, Role::Viewer).await;
    let call = Call::of(&evaluate_feature_flags::OPERATION).parameter("idOrSlug", PROJECT);
    let call = call.json(&json!({"context": {"targetingKey": "user-1"}}));
    let reply = call.clone().session(&session).send(&test.app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let reply = call.cookie(SESSION, &session).send(&test.app).await;
    assert_problem(&reply, 403, "cross_site_request");
}

#[tokio::test]
async fn unused_sessions_end_after_twelve_hours() {
    let test = TestApp::start().await;
    let (_, session) = signed_in(&test, MIRA, Role::Viewer).await;
    test.pass(Duration::from_hours(11));
    assert_eq!(me(&test, &session).await.status, 200);
    test.pass(Duration::from_hours(1));
    assert_problem(&me(&test, &session).await, 401, "invalid_session");
}

#[tokio::test]
async fn used_sessions_end_after_seven_days() {
    let mut test = TestApp::start().await;
    let (_, session) = signed_in(&test, MIRA, Role::Viewer).await;
    test.app = std::mem::replace(&mut test.app, tests::app::app_over("http://127.0.0.1:9").0)
        .recording_uses();
    for _ in 0..15 {
        assert_eq!(me(&test, &session).await.status, 200);
        test.pass(Duration::from_hours(11));
    }
    assert_eq!(me(&test, &session).await.status, 200);
    test.pass(Duration::from_hours(3));
    assert_problem(&me(&test, &session).await, 401, "invalid_session");
}

#[tokio::test]
async fn signing_out_ends_one_session_or_all() {
    let test = TestApp::start().await;
    let member = add_member(&test, MIRA, "default", Role::Viewer, None).await;
    let (one, other) = (session_of(&test, &member).await, session_of(&test, &member).await);
    test.pass(Duration::from_secs(1));
    let reply = Call::of(SIGN_OUT).session(&one).send(&test.app).await;
    assert_eq!((reply.status, reply.cookie(SESSION).as_deref()), (204, Some("")));
    test.pass(Duration::from_mins(1));
    assert_problem(&me(&test, &one).await, 401, "invalid_session");
    assert_eq!(me(&test, &other).await.status, 200);

    let third = session_of(&test, &member).await;
    test.pass(Duration::from_secs(1));
    let everywhere = Call::of(SIGN_OUT).session(&third).json(&json!({"everywhere": true}));
    assert_eq!(everywhere.send(&test.app).await.status, 204);
    test.pass(Duration::from_mins(1));
    for session in [&other, &third] {
        assert_problem(&me(&test, session).await, 401, "invalid_session");
    }
    let newer = session_of(&test, &member).await;
    assert_eq!(me(&test, &newer).await.status, 200);
}

#[tokio::test]
async fn role_changes_and_removals_take_effect_within_a_minute() {
    let test = TestApp::start().await;
    add_member(&test, "owner@example.com", "default", Role::Owner, None).await;
    let (member, session) = signed_in(&test, MIRA, Role::Member).await;
    assert_eq!(me(&test, &session).await.body["role"], "member");
    change(&test, &member, Role::Viewer).await;
    test.pass(Duration::from_mins(1));
    assert_problem(&me(&test, &session).await, 401, "invalid_session");
    let session = session_of(&test, &member).await;
    assert_eq!(me(&test, &session).await.body["role"], "viewer");

    remove(&test, &Member { version: 2, role: Role::Viewer, ..member.clone() }).await;
    test.pass(Duration::from_mins(1));
    assert_problem(&me(&test, &session).await, 401, "invalid_session");
    // Joining again does not revive the session.
    add_member(&test, MIRA, "default", Role::Owner, None).await;
    assert_problem(&me(&test, &session).await, 401, "invalid_session");
}

#[tokio::test]
async fn sessions_that_a_role_change_ended_are_not_replaced() {
    let test = TestApp::start().await;
    add_member(&test, "owner@example.com", "default", Role::Owner, None).await;
    let (member, session) = signed_in(&test, MIRA, Role::Member).await;
    let elsewhere = add_member(&test, MIRA, "acme", Role::Owner, None).await;
    let other = session_of(&test, &elsewhere).await;
    let invitation = invite(&test, &member, "third").await;
    // The function caches the session and the membership.
    assert_eq!(me(&test, &session).await.status, 200);
    change(&test, &member, Role::Viewer).await;
    test.pass(Duration::from_secs(1));
    for organization in ["default", "acme"] {
        let call = Call::of(SWITCH).session(&session).json(&json!({"organization": organization}));
        assert_problem(&call.send(&test.app).await, 401, "invalid_session");
    }
    let accept = Call::of(ACCEPT).parameter("invitationId", invitation).session(&session);
    assert_problem(&accept.send(&test.app).await, 401, "invalid_session");
    // The role in another organization is the same, and so is the session there.
    test.pass(Duration::from_mins(1));
    assert_eq!(me(&test, &other).await.status, 200);
}

/// Invites a user to an organization, and returns the invitation's ID.
async fn invite(test: &TestApp, member: &Member, organization: &str) -> InvitationId {
    let now = test.app.clock.now();
    let id = InvitationId::new(test.app.ids.new_uuid(now));
    let organization = Organization::parse(organization).unwrap();
    let grant = Grant::new(Role::Admin, None).unwrap();
    let invited = member.user.clone();
    let invitation = Invitation::new(id, organization, invited.clone(), grant, invited, now);
    let store = test.patient_store();
    let people = PeopleStore::new(&store);
    people.create_invitation(&invitation, None, Vec::new(), None).await.unwrap();
    id
}

#[tokio::test]
async fn keys_of_members_follow_role_projects_and_removal() {
    let test = TestApp::start().await;
    add_member(&test, "owner@example.com", "default", Role::Owner, None).await;
    let member = add_member(&test, MIRA, "default", Role::Member, None).await;
    let of_member = |key| ApiKeyRecord {
        user: member.user.clone(),
        member: Some(member.id),
        scopes: BTreeSet::from([Scope::FlagsRead, Scope::FlagsWrite, Scope::AuditRead]),
        ..key
    };
    let key = test.key_with(of_member).await;
    let scopes = async || {
        let reply = Call::of(super::support::CALLER).key(&key).send(&test.app).await;
        (reply.status, reply.body["scopes"].clone())
    };
    assert_eq!(scopes().await, (200, json!(["flags:read", "flags:write"])));
    change(&test, &member, Role::Viewer).await;
    test.pass(Duration::from_mins(1));
    assert_eq!(scopes().await, (200, json!(["flags:read"])));
    remove(&test, &Member { version: 2, role: Role::Viewer, ..member.clone() }).await;
    test.pass(Duration::from_mins(1));
    assert_eq!(scopes().await.0, 401);
    // Another membership of the user does not revive the key.
    add_member(&test, MIRA, "default", Role::Owner, None).await;
    assert_eq!(scopes().await.0, 401);
}

#[tokio::test]
async fn switching_gives_the_session_a_new_secret() {
    let test = TestApp::start().await;
    let (member, session) = signed_in(&test, MIRA, Role::Owner).await;
    add_member(&test, MIRA, "acme", Role::Viewer, None).await;
    let switch = async |session: &str, organization: &str| {
        let body = json!({"organization": organization});
        Call::of(SWITCH).session(session).json(&body).send(&test.app).await
    };
    let reply = switch(&session, "acme").await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(
        (&reply.body["organization"], &reply.body["role"]),
        (&json!("acme"), &json!("viewer"))
    );
    let switched = reply.cookie(SESSION).unwrap();
    assert_ne!(switched, session);
    assert_eq!(me(&test, &switched).await.body["organization"], "acme");
    test.pass(Duration::from_mins(1));
    assert_problem(&me(&test, &session).await, 401, "invalid_session");
    for organization in ["foreign", "not/valid", ""] {
        let reply = switch(&switched, organization).await;
        assert_problem(&reply, 404, "organization_not_found");
    }
    let same = switch(&switched, "acme").await;
    assert_eq!(same.status, 200);
    assert_ne!(same.cookie(SESSION), Some(switched));
    assert_eq!(member.organization.as_str(), "default");
}

#[tokio::test]
async fn keys_cannot_use_the_operations_of_sessions() {
    let test = TestApp::start().await;
    let switch = Call::of(SWITCH).json(&json!({"organization": "default"}));
    let accept = Call::of(ACCEPT).parameter("invitationId", "01902f3c-0000-7000-8000-000000000000");
    for call in [Call::of(SIGN_OUT), switch, accept] {
        assert_problem(&call.key(&test.key).send(&test.app).await, 403, "session_required");
    }
}

#[tokio::test]
async fn signed_in_users_accept_their_invitations() {
    let test = TestApp::start().await;
    let (member, session) = signed_in(&test, MIRA, Role::Viewer).await;
    let (_, other) = signed_in(&test, "juno@example.com", Role::Owner).await;
    let id = invite(&test, &member, "acme").await;
    let listed = me(&test, &session).await.body["invitations"].clone();
    assert_eq!(listed[0]["id"], id.to_string());
    assert_eq!((&listed[0]["organization"], &listed[0]["role"]), (&json!("acme"), &json!("admin")));

    let accept = async |session: &str| {
        let call = Call::of(ACCEPT).parameter("invitationId", id).session(session);
        call.send(&test.app).await
    };
    assert_problem(&accept(&other).await, 404, "invitation_not_found");
    let reply = accept(&session).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(
        (&reply.body["organization"], &reply.body["role"]),
        (&json!("acme"), &json!("admin"))
    );
    let switched = reply.cookie(SESSION).unwrap();
    assert_eq!(me(&test, &switched).await.body["invitations"], json!([]));
    assert_problem(&accept(&switched).await, 404, "invitation_not_found");
}

#[tokio::test]
async fn uses_are_recorded_once_an_hour() {
    let mut test = TestApp::start().await;
    let (_, session) = signed_in(&test, MIRA, Role::Viewer).await;
    test.app = std::mem::replace(&mut test.app, tests::app::app_over("http://127.0.0.1:9").0)
        .recording_uses();
    let call = || Call::of(super::support::CALLER);
    let key = test.key.clone();
    let cost = async |call: Call| {
        test.round_trips();
        assert_eq!(call.send(&test.app).await.status, 200);
        test.round_trips()
    };
    let first = cost(call().key(&key)).await;
    let second = cost(call().key(&key)).await;
    assert_eq!(first, second + 2, "the key is read, and its use is written");
    cost(call().session(&session)).await;
    let warm = cost(call().session(&session)).await;
    test.pass(Duration::from_mins(59));
    cost(call().session(&session)).await;
    assert_eq!(cost(call().session(&session)).await, warm);
    let uses = test.items("people").await;
    let uses = uses.iter().filter(|item| item["pk"].as_s().unwrap().starts_with("use#"));
    assert_eq!(uses.count(), 3, "of the key, the session and the member");
}
