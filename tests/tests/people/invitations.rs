//! Invitations: creation, limits, revocation and acceptance.

use std::time::Duration;

use futures_util::join;
use people::InvitationId;
use people::sign_in::PendingSignIn;
use people::store::{PeopleChange, PeopleStore};
use serde_json::{Value, json};
use shared::app::{Ids, Operation};
use shared::projects::member::MemberId;
use shared::projects::role::Role;
use tests::app::{PROJECT, TestApp};
use tests::call::Call;

use super::support::complete;
use super::{Person, column};

const CREATE: &Operation = &create_invitation::OPERATION;
const LIST: &Operation = &list_invitations::OPERATION;
const REVOKE: &Operation = &revoke_invitation::OPERATION;

fn create(test: &TestApp, email: &str) -> Call {
    Call::of(CREATE).key(&test.key).json(&json!({"email": email, "role": "member"}))
}

async fn queued_emails(test: &TestApp) -> usize {
    let items = test.items("people").await;
    items.iter().filter(|item| item["pk"].as_s().unwrap() == "email#queue").count()
}

#[tokio::test]
async fn invitations_are_listed_until_revoked() {
    let test = TestApp::start().await;
    let admin = Person::join(&test, "admin@b.de", Role::Admin).await;
    let body = json!({"email": "Juno@B.de", "role": "viewer", "projects": [PROJECT]});
    let created = admin.send(&test, Call::of(CREATE).json(&body)).await;
    assert_eq!(created.status, 201, "{}", created.text);
    assert_eq!(created.body["invitedBy"], "admin@b.de");
    assert_eq!(created.body["projects"], json!([test.project_id]));
    assert_eq!(queued_emails(&test).await, 1);
    let again = admin.send(&test, Call::of(CREATE).json(&body)).await;
    assert_eq!(again.problem(), (409, "invitation_exists"));
    create(&test, "ann@b.de").send(&test.app).await;
    let list = || Call::of(LIST).key(&test.key).send(&test.app);
    assert_eq!(column(&list().await, "email"), ["ann@b.de", "juno@b.de"]);

    let id = created.body["id"].as_str().unwrap();
    let revoke = || Call::of(REVOKE).parameter("invitationId", id);
    let foreign = Person::join_in(&test, "foreign@b.de", Role::Owner, "other").await;
    let reply = foreign.send(&test, revoke()).await;
    assert_eq!(reply.problem(), (404, "invitation_not_found"));
    assert_eq!(admin.send(&test, revoke()).await.status, 204);
    assert_eq!(admin.send(&test, revoke()).await.problem(), (404, "invitation_not_found"));
    assert_eq!(column(&list().await, "email"), ["ann@b.de"]);
    test.pass(people::LIFETIME);
    assert!(column(&list().await, "email").is_empty());
    // Expired invitations can be replaced.
    assert_eq!(create(&test, "ann@b.de").send(&test.app).await.status, 201);
}

#[tokio::test]
async fn invitations_do_not_exceed_the_own_role() {
    let test = TestApp::start().await;
    Person::join(&test, "owner@b.de", Role::Owner).await;
    let admin = Person::join(&test, "admin@b.de", Role::Admin).await;
    let call = |role| Call::of(CREATE).json(&json!({"email": "a@b.de", "role": role}));
    let reply = admin.send(&test, call("owner")).await;
    assert_eq!(reply.problem(), (403, "insufficient_role"));
    let created = call("owner").key(&test.key).send(&test.app).await;
    let revoke = Call::of(REVOKE).parameter("invitationId", created.body["id"].as_str().unwrap());
    assert_eq!(admin.send(&test, revoke).await.problem(), (403, "insufficient_role"));
    // The function caches the role of a demoted admin.
    admin.give(&test, Role::Viewer).await;
    let body = json!({"email": "c@b.de", "role": "admin"});
    let reply = admin.send(&test, Call::of(CREATE).json(&body)).await;
    assert_eq!(reply.problem(), (403, "insufficient_role"));
    let viewer = Person::join(&test, "viewer@b.de", Role::Viewer).await;
    let reply = viewer.send(&test, call("viewer")).await;
    assert_eq!(reply.problem(), (403, "insufficient_scope"));
}

#[tokio::test]
async fn members_cannot_be_invited() {
    let test = TestApp::start().await;
    Person::join(&test, "juno@b.de", Role::Viewer).await;
    let reply = create(&test, "JUNO@b.de").send(&test.app).await;
    assert_eq!(reply.problem(), (409, "member_exists"));
    assert_eq!(queued_emails(&test).await, 0);
}

#[tokio::test]
async fn repeated_requests_get_the_stored_response() {
    let test = TestApp::start().await;
    let call = create(&test, "juno@b.de").header("idempotency-key", "one");
    let first = call.clone().send(&test.app).await;
    let second = call.send(&test.app).await;
    assert_eq!((first.status, &first.body), (second.status, &second.body));
    assert_eq!(second.headers["idempotency-replayed"], "true");
    assert_eq!(queued_emails(&test).await, 1);
}

#[tokio::test]
async fn organizations_create_50_invitations_per_day() {
    let test = TestApp::start().await;
    for number in 0..50 {
        let reply = create(&test, &format!("a{number}@b.de")).send(&test.app).await;
        assert_eq!(reply.status, 201);
    }
    let reply = create(&test, "more@b.de").send(&test.app).await;
    assert_eq!(reply.problem(), (429, "throttled"));
    // The test starts at 04:16. The header has at most 16 bits.
    assert_eq!(reply.headers["retry-after"], u16::MAX.to_string().as_str());
    test.pass(Duration::from_mins(19 * 60 + 44));
    assert_eq!(create(&test, "more@b.de").send(&test.app).await.status, 201);
}

#[tokio::test]
async fn users_who_turned_invitations_off_get_no_email() {
    let test = TestApp::start().await;
    let juno = Person::join_in(&test, "juno@b.de", Role::Viewer, "other").await;
    let body = json!({"preferences": [{"type": "organization_invite", "emailEnabled": false}]});
    let update = Call::of(&update_email_preferences::OPERATION).json(&body);
    assert_eq!(juno.send(&test, update).await.status, 200);
    assert_eq!(create(&test, "juno@b.de").send(&test.app).await.status, 201);
    assert_eq!(queued_emails(&test).await, 0);
    let me = juno.send(&test, Call::of(&get_caller::OPERATION)).await;
    assert_eq!(me.body["invitations"][0]["organization"], "default");
}

#[tokio::test]
async fn invitations_are_accepted_or_revoked_once() {
    let test = TestApp::start().await;
    let store = test.patient_store();
    let people = PeopleStore::new(&store);
    for round in 0..10 {
        let created = create(&test, &format!("juno{round}@b.de")).send(&test.app).await;
        let id = created.body["id"].as_str().unwrap();
        let now = test.app.clock.now();
        let id = InvitationId::parse(id).unwrap();
        let invitation = people.find_invitation(id, now).await.unwrap().unwrap();
        let member_id = MemberId::new(Ids::Random.new_uuid(now));
        let member = invitation.clone().into_member(member_id, now);
        let revoke = Call::of(REVOKE).parameter("invitationId", id).key(&test.key);
        let (accepted, revoked) =
            join!(people.accept_invitation(&invitation, &member, vec![]), revoke.send(&test.app));
        let is_member =
            people.find_member_of(&member.organization, &member.user).await.unwrap().is_some();
        match accepted.unwrap() {
            PeopleChange::Done => assert!(is_member && revoked.status == 404),
            other => assert!(!is_member && revoked.status == 204, "{other:?}"),
        }
        assert_eq!(people.find_invitation(id, now).await.unwrap(), None);
    }
}

#[tokio::test]
async fn invitations_end_with_the_right_of_their_inviter() {
    let test = TestApp::start().await;
    let owner = Person::join(&test, "owner@b.de", Role::Owner).await;
    let removed = Person::join(&test, "removed@b.de", Role::Admin).await;
    let demoted = Person::join(&test, "demoted@b.de", Role::Owner).await;
    let juno = Person::join_in(&test, "juno@b.de", Role::Viewer, "other").await;
    let store = test.patient_store();
    let people = PeopleStore::new(&store);
    let invite = async |by: &Person, email: &str, role: &str| {
        let call = Call::of(CREATE).json(&json!({"email": email, "role": role}));
        let created = by.send(&test, call).await;
        assert_eq!(created.status, 201, "{}", created.text);
        let id = InvitationId::parse(created.body["id"].as_str().unwrap()).unwrap();
        people.find_invitation(id, test.app.clock.now()).await.unwrap().unwrap()
    };
    let invitations = [
        invite(&removed, "juno@b.de", "member").await,
        invite(&demoted, "ann@b.de", "owner").await,
    ];
    // An admin may still give this role.
    invite(&demoted, "ben@b.de", "admin").await;
    let open = async || {
        let list = Call::of(LIST).key(&test.key).send(&test.app).await;
        column(&list, "email").into_iter().cloned().collect::<Vec<Value>>()
    };
    assert_eq!(open().await, ["ann@b.de", "ben@b.de", "juno@b.de"]);
    let links = invitations.each_ref().map(|it| PendingSignIn::by_invitation(it).unwrap());
    for (pending, _) in &links {
        people.put_sign_in(pending).await.unwrap();
    }

    let remove = Call::of(&remove_member::OPERATION).parameter("memberId", removed.member.id);
    assert_eq!(owner.send(&test, remove).await.status, 204);
    demoted.give(&test, Role::Admin).await;
    assert_eq!(open().await, ["ben@b.de"]);
    let me = juno.send(&test, Call::of(&get_caller::OPERATION)).await;
    assert_eq!(me.body["invitations"], json!([]));
    for (invitation, (_, token)) in invitations.iter().zip(&links) {
        let reply = complete(&test, None, &token.reveal(), None).await;
        assert_eq!(reply.problem(), (400, "invalid_token"));
        // A request that read the invitation before the change fails, too.
        let id = MemberId::new(Ids::Random.new_uuid(invitation.created_at));
        let member = invitation.clone().into_member(id, invitation.created_at);
        let accepted = people.accept_invitation(invitation, &member, vec![]).await.unwrap();
        assert_eq!(accepted, PeopleChange::InvitationGone);
    }
    // Another invitation can be created.
    invite(&owner, "juno@b.de", "member").await;
    let again = Call::of(CREATE).json(&json!({"email": "juno@b.de", "role": "member"}));
    assert_eq!(owner.send(&test, again).await.problem(), (409, "invitation_exists"));
}
