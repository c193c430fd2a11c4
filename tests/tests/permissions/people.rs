//! Functions of members, invitations, keys, projects and the audit log.

use serde_json::json;
use shared::app::Operation;
use shared::projects::role::Role;
use tests::app::{PROJECT, TestApp};
use tests::call::Call;
use tests::operations::OPERATIONS;
use tests::people::signed_in;

use super::{assert_uses_all, send, text};

pub(super) const FUNCTIONS: [&str; 13] = [
    create_api_key::OPERATION.name,
    create_invitation::OPERATION.name,
    create_project::OPERATION.name,
    delete_project::OPERATION.name,
    list_api_keys::OPERATION.name,
    list_audit_entries::OPERATION.name,
    list_invitations::OPERATION.name,
    list_members::OPERATION.name,
    remove_member::OPERATION.name,
    revoke_api_key::OPERATION.name,
    revoke_invitation::OPERATION.name,
    update_member::OPERATION.name,
    update_project::OPERATION.name,
];

#[tokio::test]
async fn people_functions_use_exactly_their_permissions() {
    let test = TestApp::start().await;
    let (_, owner) = signed_in(&test, "owner@example.com", Role::Owner).await;
    let (other, _) = signed_in(&test, "other@example.com", Role::Owner).await;
    let scenario = Box::pin(async {
        let call = |operation: &'static Operation| Call::of(operation).session(&owner);
        let member = |operation| call(operation).parameter("memberId", other.id);
        let limited = json!({"role": "member", "projects": [PROJECT]});
        send(&test, member(&update_member::OPERATION).json(&limited), 200).await;
        let again = json!({"role": "owner"});
        send(&test, member(&update_member::OPERATION).json(&again), 200).await;
        send(&test, call(&list_members::OPERATION), 200).await;
        send(&test, member(&remove_member::OPERATION), 204).await;

        let invitation = json!({"email": "a@b.de", "role": "member", "projects": [PROJECT]});
        let invite = call(&create_invitation::OPERATION).header("idempotency-key", "k");
        let created = send(&test, invite.json(&invitation), 201).await;
        send(&test, call(&list_invitations::OPERATION), 200).await;
        let revoke = call(&revoke_invitation::OPERATION);
        send(&test, revoke.parameter("invitationId", text(&created, "id")), 204).await;

        let key = json!({"name": "CI", "scopes": ["all"], "projects": [PROJECT]});
        let created = send(&test, call(&create_api_key::OPERATION).json(&key), 201).await;
        send(&test, call(&list_api_keys::OPERATION), 200).await;
        let revoke = call(&revoke_api_key::OPERATION);
        send(&test, revoke.parameter("keyId", text(&created, "keyId")), 204).await;

        let project = json!({"name": "New", "slug": "new"});
        let create = call(&create_project::OPERATION).header("idempotency-key", "k");
        send(&test, create.json(&project), 201).await;
        let in_new = |operation| call(operation).parameter("idOrSlug", "new");
        let limits = json!({"name": "Newer", "eventsPerMinute": 7, "requestsPerMinute": 70});
        send(&test, in_new(&update_project::OPERATION).json(&limits), 200).await;
        send(&test, in_new(&delete_project::OPERATION).json(&json!({"confirm": "new"})), 202).await;
        send(&test, call(&list_audit_entries::OPERATION), 200).await;
        // Authentication by key uses other tables.
        for name in FUNCTIONS {
            let operation = OPERATIONS.into_iter().find(|it| it.name == name).unwrap();
            let call = test.call(operation);
            call.send(&test.app).await;
        }
    });
    assert_uses_all(&FUNCTIONS, scenario).await;
}
