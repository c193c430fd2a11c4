//! Functions for callers and their projects.

use std::time::Duration;

use serde_json::json;
use shared::http::Method;
use shared::projects::api_key::{ApiKey, ApiKeyRecord};
use shared::projects::console_code::ConsoleCode;
use shared::projects::role::Role;
use tests::app::TestApp;
use tests::call::Call;

use tests::people::signed_in;

use super::{assert_uses_all, send};

pub(super) const FUNCTIONS: [&str; 3] =
    [get_caller::OPERATION.name, list_projects::OPERATION.name, serve_console::OPERATION.name];

#[tokio::test]
async fn caller_functions_use_exactly_their_permissions() {
    let test = TestApp::start().await;
    let projects = Some([test.project_id].into());
    let bound = test.key_with(|key| ApiKeyRecord { projects, ..key }).await;
    let (key, code) = (ApiKey::parse(&test.key).unwrap(), ConsoleCode::generate().unwrap());
    let expires_at = test.app.clock.now().plus(Duration::from_hours(1));
    test.app.store.put_console_code(&code, &key, expires_at).await.unwrap();
    let scenario = Box::pin(async {
        let exchange = Call::of(&serve_console::OPERATION).method(Method::POST);
        send(&test, exchange.json(&json!({"code": code.reveal()})), 200).await;
        for key in [&test.key, &bound] {
            send(&test, Call::of(&get_caller::OPERATION).key(key), 200).await;
            send(&test, Call::of(&list_projects::OPERATION).key(key), 200).await;
        }
        // The organizations and invitations of a signed-in user.
        let (_, session) = signed_in(&test, "mira@example.com", Role::Viewer).await;
        send(&test, Call::of(&get_caller::OPERATION).session(&session), 200).await;
    });
    assert_uses_all(&FUNCTIONS, scenario).await;
}
