//! Each operation requires a valid key with its own scope, if it has one, before any other check, and
//! then an accessible project.
//! `tests/tests/contract.rs` checks that `openapi.yaml` names this scope.

use shared::app::{Access, Operation};
use shared::projects::api_key::{ApiKey, ApiKeyRecord, Scope};
use shared::timestamp::Timestamp;
use tests::app::{PROJECT, TestApp};
use tests::call::{Call, Reply};
use tests::contract::example_body;
use tests::errors::project;
use tests::operations::OPERATIONS;
use tests::permissions::used_during;

/// The id of an insight that does not exist.
const ID: &str = "01902f3c-0000-7000-8000-ffffffffffff";

/// Returns a call without a key that is otherwise valid, except for resources that do not exist.
fn call(operation: &'static Operation) -> Call {
    let call = Call::of(operation).parameter("idOrSlug", PROJECT);
    let ids = ["key", "insightId", "collectionId", "errorId", "memberId", "invitationId", "keyId"];
    let ids = ids.into_iter().filter(|name| operation.path.contains(&format!("{{{name}}}")));
    let call = ids.fold(call, |call, name| call.parameter(name, "missing"));
    example_body(operation.name).into_iter().fold(call, Call::json)
}

/// Sends a call that may only read keys and projects.
async fn send_rejected(test: &TestApp, call: Call) -> Reply {
    let mut reply = None;
    let used = used_during(async { reply = Some(call.send(&test.app).await) }).await;
    for permission in used.values().flatten() {
        let reads = permission.action == "BatchGetItem";
        let before = ["api-keys", "projects"].contains(&permission.resource.as_str());
        assert!(reads && before, "{permission}");
    }
    reply.unwrap()
}

#[tokio::test]
async fn every_operation_requires_a_key_with_its_scope() {
    let test = TestApp::start().await;
    let past = Some(Timestamp::from_millis(1_000_000_000_000));
    let invalid = [
        "wm_nonsense".to_owned(),
        ApiKey::generate().unwrap().reveal(),
        test.key_with(|key| ApiKeyRecord { revoked_at: past, ..key }).await,
        test.key_with(|key| ApiKeyRecord { expires_at: past, ..key }).await,
        // A DSN's key only allows reporting errors.
        project(&test.app.store, test.project_id).await.public_key.to_string(),
    ];
    for operation in OPERATIONS {
        if matches!(operation.access, Access::Dsn(_) | Access::Public(_)) {
            continue;
        }
        let (name, call) = (operation.name, call(operation));
        // Problems for Sentry's tools have no code.
        let has_code = operation.protocol.name != "Sentry tools";
        let code = |code| if has_code { code } else { "" };
        // Key and scope are checked before headers and body.
        let wrong = call.clone().header("idempotency-key", "é").bytes("{");
        let reply = send_rejected(&test, wrong.clone()).await;
        assert_eq!(reply.problem(), (401, code("missing_api_key")), "{name}");
        assert_eq!(reply.headers["www-authenticate"], "Bearer", "{name}");
        let mut bodies = Vec::new();
        for key in &invalid {
            let reply = send_rejected(&test, wrong.clone().key(key)).await;
            assert_eq!(reply.problem(), (401, code("invalid_api_key")), "{name}");
            assert_eq!(reply.headers["www-authenticate"], "Bearer", "{name}");
            bodies.push(reply.body);
        }
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{name}: {bodies:#?}");
        let Some(scope) = operation.scope() else {
            let any = test.key_with(|key| ApiKeyRecord { scopes: [].into(), ..key }).await;
            let reply = call.key(&any).send(&test.app).await;
            let needs_session = [
                accept_invitation::OPERATION.name,
                sign_out::OPERATION.name,
                update_session::OPERATION.name,
            ];
            if needs_session.contains(&name) {
                assert_eq!(reply.problem(), (403, "session_required"), "{name}");
            } else {
                assert_eq!(reply.status, 200, "{name}: {}", reply.body);
            }
            continue;
        };
        let admits = |other: &Scope| *other == scope || operation.other_scope == Some(*other);
        let others = Scope::ALL.into_iter().filter(|other| !admits(other)).collect();
        let unauthorized = test.key_with(|key| ApiKeyRecord { scopes: others, ..key }).await;
        let reply = send_rejected(&test, wrong.clone().key(&unauthorized)).await;
        assert_eq!(reply.problem(), (403, code("insufficient_scope")), "{name}");
        assert!(reply.body["detail"].as_str().unwrap().contains(scope.as_str()), "{}", reply.body);
        let authorized = test.key_with(|key| ApiKeyRecord { scopes: [scope].into(), ..key }).await;
        let reply = call.key(&authorized).send(&test.app).await;
        // A key cannot give a scope that it lacks, nor a role with one.
        let giving = [create_api_key::OPERATION.name, create_invitation::OPERATION.name];
        let exceeds = giving.contains(&name);
        assert!(exceeds || !matches!(reply.status, 401 | 403), "{name}: {}", reply.body);
    }
}

/// The project is checked before the body and the resource. Its 404 does not show whether it exists.
#[tokio::test]
async fn inaccessible_projects_look_nonexistent() {
    let test = TestApp::start().await;
    let other = test.other_project().await;
    let unseen = test.unseen_projects(other).await;
    for operation in OPERATIONS.iter().filter(|it| it.path.contains("{idOrSlug}")) {
        let name = operation.name;
        let mut bodies = Vec::new();
        for (project, key) in &unseen {
            // Parameters are checked earlier.
            let call = call(operation).parameter("insightId", ID).query("debugId", ID);
            let call = call.parameter("idOrSlug", project).key(key).bytes("{");
            let reply = send_rejected(&test, call).await;
            let is_ofrep = reply.body["errorCode"] == "FLAG_NOT_FOUND";
            assert!(is_ofrep || reply.code() == "project_not_found", "{name}: {}", reply.text);
            assert_eq!(reply.status, 404, "{name} {project}");
            bodies.push(reply.body);
        }
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{name}: {bodies:#?}");
    }
}
