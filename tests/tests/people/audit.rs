//! The audit log.

use serde_json::{Value, json};
use shared::app::Operation;
use shared::audit::RETENTION;
use shared::projects::api_key::ApiKeyRecord;
use shared::projects::role::Role;
use tests::app::{PROJECT, TestApp};
use tests::call::Call;
use tests::errors::{SentEvent, project};
use tests::source_maps::{DEBUG_ID, MAP, bundle_of, upload};

use super::{Person, column, key_body};

const LIST: &Operation = &list_audit_entries::OPERATION;

fn in_project(operation: &'static Operation) -> Call {
    Call::of(operation).parameter("idOrSlug", PROJECT)
}

#[tokio::test]
async fn each_change_has_an_entry() {
    let test = TestApp::start().await;
    let admin = Person::join(&test, "admin@b.de", Role::Admin).await;
    let juno = Person::join(&test, "juno@b.de", Role::Viewer).await;
    let flag = json!({"key": "new", "name": "New", "type": "boolean"});
    let segment = json!({
        "key": "beta", "name": "Beta",
        "conditions": [{"attribute": "plan", "operator": "in", "values": ["pro"]}],
    });
    let of_flag = |operation| in_project(operation).parameter("key", "new");
    let of_segment = |operation| in_project(operation).parameter("key", "beta");
    let of_juno = |operation| Call::of(operation).parameter("memberId", juno.member.id);
    let invite = json!({"email": "ann@b.de", "role": "viewer"});
    let calls = [
        (in_project(&create_feature_flag::OPERATION).json(&flag), "flag_created"),
        (of_flag(&update_feature_flag::OPERATION).json(&json!({"enabled": true})), "flag_updated"),
        (
            of_flag(&update_feature_flag::OPERATION).json(&json!({"archived": true})),
            "flag_archived",
        ),
        (of_flag(&delete_feature_flag::OPERATION), "flag_deleted"),
        (in_project(&create_segment::OPERATION).json(&segment), "segment_created"),
        (of_segment(&update_segment::OPERATION).json(&json!({"name": "B"})), "segment_updated"),
        (of_segment(&delete_segment::OPERATION), "segment_deleted"),
        (Call::of(&create_api_key::OPERATION).json(&key_body(&["flags:read"])), "api_key_created"),
        (Call::of(&create_invitation::OPERATION).json(&invite), "invitation_created"),
        (of_juno(&update_member::OPERATION).json(&json!({"role": "member"})), "member_updated"),
        (of_juno(&remove_member::OPERATION), "member_removed"),
        (in_project(&update_project::OPERATION).json(&json!({"name": "S"})), "project_updated"),
        (
            in_project(&delete_project::OPERATION).json(&json!({"confirm": PROJECT})),
            "project_deleted",
        ),
    ];
    let mut expected = Vec::new();
    for (call, action) in calls {
        test.pass(std::time::Duration::from_millis(1));
        let reply = admin.send(&test, call.header("user-agent", "Firefox")).await;
        assert!(reply.status < 300, "{action}: {}", reply.text);
        expected.insert(0, json!(action));
    }
    // Rejected requests have no entry.
    let nothing = in_project(&update_project::OPERATION).json(&json!({"name": "S"}));
    assert_eq!(admin.send(&test, nothing).await.status, 404);
    let listed = admin.send(&test, Call::of(LIST)).await;
    assert_eq!(column(&listed, "action"), expected.iter().collect::<Vec<_>>());
    let removal = &listed.body["items"][2];
    let user = json!({"type": "user", "id": "admin@b.de", "name": "admin@b.de"});
    assert_eq!(removal["actor"], user);
    let member = json!({"type": "member", "id": juno.member.id, "name": "juno@b.de"});
    assert_eq!(removal["target"], member);
    assert_eq!(removal["source"]["userAgent"], "Firefox");
    let pages = test.pages(&Call::of(LIST).key(&test.key), 5).await;
    let actions: Vec<Value> = pages.concat().iter().map(|it| it["action"].clone()).collect();
    assert_eq!(actions, expected);
    test.pass(RETENTION);
    let listed = Call::of(LIST).key(&test.key).send(&test.app).await;
    assert_eq!(listed.body["items"], json!([]));
}

#[tokio::test]
async fn other_changes_have_entries_too() {
    let test = TestApp::start().await;
    let admin = Person::join(&test, "admin@b.de", Role::Admin).await;
    let guest = Person::join_in(&test, "guest@b.de", Role::Viewer, "other").await;
    let by = async |person: &Person, call: Call| {
        test.pass(std::time::Duration::from_millis(1));
        let reply = person.send(&test, call).await;
        assert!(reply.status < 300, "{}", reply.text);
        reply
    };
    let invite = |email| {
        let body = json!({"email": email, "role": "viewer"});
        Call::of(&create_invitation::OPERATION).json(&body)
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();

    let body = json!({"name": "Second", "slug": "second"});
    by(&admin, Call::of(&create_project::OPERATION).json(&body)).await;
    let body = key_body(&["flags:read"]);
    let key = by(&admin, Call::of(&create_api_key::OPERATION).json(&body)).await;
    let revoke = Call::of(&revoke_api_key::OPERATION);
    by(&admin, revoke.parameter("keyId", text(&key.body["keyId"]))).await;
    let ann = by(&admin, invite("ann@b.de")).await;
    let revoke = Call::of(&revoke_invitation::OPERATION);
    by(&admin, revoke.parameter("invitationId", text(&ann.body["id"]))).await;
    let invited = by(&admin, invite("guest@b.de")).await;
    let accept = Call::of(&accept_invitation::OPERATION);
    by(&guest, accept.parameter("invitationId", text(&invited.body["id"]))).await;

    let create = in_project(&create_event_marker_collection::OPERATION);
    let collection = by(&admin, create.json(&json!({"name": "Campaigns"}))).await;
    let delete = in_project(&delete_event_marker_collection::OPERATION);
    by(&admin, delete.parameter("collectionId", text(&collection.body["id"]))).await;
    let dsn = project(&test.patient_store(), test.project_id).await;
    let event = SentEvent::new(1, test.app.clock.now(), "TypeError", "x is undefined");
    let ingest = Call::of(&ingest_error_events::OPERATION)
        .path("/api/{ingestId}/envelope/")
        .parameter("ingestId", dsn.ingest_id)
        .query("sentry_key", dsn.public_key)
        .bytes(event.envelope());
    assert_eq!(ingest.send(&test.app).await.status, 200);
    let errors = by(&admin, in_project(&list_errors::OPERATION)).await;
    let delete = in_project(&delete_error::OPERATION);
    by(&admin, delete.parameter("errorId", text(&errors.body["items"][0]["errorId"]))).await;

    let release = json!({"projects": [PROJECT]});
    let uploaded = upload(&test.app, &test.key, &bundle_of(MAP, DEBUG_ID), &release).await;
    assert_eq!(uploaded.status, 200, "{}", uploaded.text);
    for _ in 0..2 {
        let delete = in_project(&delete_source_maps::OPERATION).query("debugId", DEBUG_ID);
        by(&admin, delete).await;
    }

    let listed = admin.send(&test, Call::of(LIST)).await;
    let target = json!({"type": "source_map", "id": DEBUG_ID, "name": DEBUG_ID});
    assert_eq!(listed.body["items"][0]["target"], target);
    let expected = [
        // Only one: the second deletion found no map.
        "source_map_deleted",
        "error_deleted",
        "collection_deleted",
        "invitation_accepted",
        "invitation_created",
        "invitation_revoked",
        "invitation_created",
        "api_key_revoked",
        "api_key_created",
        "project_created",
    ];
    assert_eq!(column(&listed, "action"), expected);
}

#[tokio::test]
async fn entries_are_visible_to_admins_of_the_organization() {
    let test = TestApp::start().await;
    let create = Call::of(&create_api_key::OPERATION).json(&key_body(&["flags:read"]));
    assert_eq!(create.key(&test.key).send(&test.app).await.status, 201);
    let listed = Call::of(LIST).key(&test.key).send(&test.app).await;
    let actor = json!({"type": "key", "id": &test.key[3..19], "name": "owner"});
    assert_eq!(listed.body["items"][0]["actor"], actor);
    let foreign = Person::join_in(&test, "foreign@b.de", Role::Owner, "other").await;
    assert_eq!(foreign.send(&test, Call::of(LIST)).await.body["items"], json!([]));
    let member = Person::join(&test, "member@b.de", Role::Member).await;
    let reply = member.send(&test, Call::of(LIST)).await;
    assert_eq!(reply.problem(), (403, "insufficient_scope"));
    let projects = Some([test.project_id].into());
    let limited = test.key_with(|key| ApiKeyRecord { projects, ..key }).await;
    let reply = Call::of(LIST).key(&limited).send(&test.app).await;
    assert_eq!(reply.problem(), (403, "insufficient_scope"));
}
