//! Functions of sign-in and sessions.

use people::store::PeopleStore;
use people::{Grant, Invitation, InvitationId};
use serde_json::json;
use shared::projects::api_key::UserId;
use shared::projects::project::Organization;
use shared::projects::role::Role;
use shared::projects::session::COOKIE;
use tests::app::TestApp;
use tests::call::Call;
use tests::notifications::SentMessages;
use tests::people::{add_member, sign_in_code, sign_in_token};

use super::{assert_uses_all, send};

pub(super) const FUNCTIONS: [&str; 5] = [
    accept_invitation::OPERATION.name,
    complete_sign_in::OPERATION.name,
    request_sign_in::OPERATION.name,
    sign_out::OPERATION.name,
    update_session::OPERATION.name,
];

/// Lets a new owner invite a user to an organization, and queues the email.
async fn invite(test: &TestApp, email: &str, organization: &str, grant: Grant) -> InvitationId {
    let now = test.app.clock.now();
    let id = InvitationId::new(test.app.ids.new_uuid(now));
    let user = UserId::parse(email).unwrap();
    let inviter = add_member(test, "owner@example.com", organization, Role::Owner, None).await;
    let organization = Organization::parse(organization).unwrap();
    let invitation = Invitation::new(id, organization, user, grant, inviter.user, now);
    let invitation = invitation.by(Some(inviter.id));
    let store = test.patient_store();
    let people = PeopleStore::new(&store);
    let email = vec![people.queue_invitation_email(&invitation).unwrap()];
    people.create_invitation(&invitation, None, email, None).await.unwrap();
    id
}

/// Queues a sign-in email and the email of an invitation.
pub(super) async fn queue_emails(test: &TestApp) {
    add_member(test, "mira@example.com", "acme", Role::Viewer, None).await;
    let request = Call::of(&request_sign_in::OPERATION).from_console();
    send(test, request.json(&json!({"email": "mira@example.com"})), 202).await;
    invite(test, "juno@example.com", "acme", Grant::new(Role::Viewer, None).unwrap()).await;
}

#[tokio::test]
async fn sign_in_functions_use_exactly_their_permissions() {
    let (test, sent) = (TestApp::start().await, SentMessages::open());
    let limited = Some([test.project_id].into());
    add_member(&test, "mira@example.com", "default", Role::Viewer, limited).await;
    let scenario = Box::pin(async {
        let request = Call::of(&request_sign_in::OPERATION).from_console();
        send(&test, request.json(&json!({"email": "mira@example.com"})), 202).await;
        sent.run(&test.app).await;
        let mail = sent.emails_to("mira@example.com").await.remove(0);
        let complete = |body| Call::of(&complete_sign_in::OPERATION).from_console().json(&body);
        let body = json!({"token": sign_in_token(&mail), "code": sign_in_code(&mail)});
        let reply = send(&test, complete(body), 200).await;
        let session = reply.cookie(COOKIE).unwrap();

        // The link of an invitation, for a new user with access to all projects.
        let owner = || Grant::new(Role::Owner, None).unwrap();
        invite(&test, "juno@example.com", "default", owner()).await;
        sent.run(&test.app).await;
        let mail = sent.emails_to("juno@example.com").await.remove(0);
        send(&test, complete(json!({"token": sign_in_token(&mail)})), 200).await;

        let mut session = session;
        let limited = Grant::new(Role::Viewer, Some([test.project_id].into())).unwrap();
        for (organization, grant) in [("other", limited), ("acme", owner())] {
            let id = invite(&test, "mira@example.com", organization, grant).await;
            let accept = Call::of(&accept_invitation::OPERATION).parameter("invitationId", id);
            let reply = send(&test, accept.session(&session), 200).await;
            session = reply.cookie(COOKIE).unwrap();
        }
        let switch = |session: &str, organization: &str| {
            let body = json!({"organization": organization});
            Call::of(&update_session::OPERATION).session(session).json(&body)
        };
        let reply = send(&test, switch(&session, "default"), 200).await;
        let session = reply.cookie(COOKIE).unwrap();
        let reply = send(&test, switch(&session, "acme"), 200).await;
        let session = reply.cookie(COOKIE).unwrap();
        let sign_out = Call::of(&sign_out::OPERATION).session(&session);
        send(&test, sign_out.json(&json!({"everywhere": true})), 204).await;
    });
    assert_uses_all(&FUNCTIONS, scenario).await;
}
