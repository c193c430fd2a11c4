//! Callers, and the projects that they may see.

use std::time::Duration;

use serde_json::json;
use shared::http::Method;
use shared::projects::api_key::{ApiKey, ApiKeyRecord};
use shared::projects::console_code::ConsoleCode;
use tests::app::TestApp;
use tests::call::Call;

use super::{answered, assert_uses_all};

pub(super) const FUNCTIONS: [&str; 3] =
    [get_caller::OPERATION.name, list_projects::OPERATION.name, serve_console::OPERATION.name];

#[tokio::test]
async fn functions_of_callers_may_do_what_they_do_and_no_more() {
    let test = TestApp::start().await;
    let projects = Some([test.project_id].into());
    let bound = test.key_with(|key| ApiKeyRecord { projects, ..key }).await;
    let (key, code) = (ApiKey::parse(&test.key).unwrap(), ConsoleCode::generate().unwrap());
    let expires_at = test.app.clock.now().plus(Duration::from_hours(1));
    test.app.store.put_console_code(&code, &key, expires_at).await.unwrap();
    let scenario = Box::pin(async {
        let exchange = Call::of(&serve_console::OPERATION).method(Method::POST);
        answered(&test, exchange.json(&json!({"code": code.reveal()})), 200).await;
        for key in [&test.key, &bound] {
            answered(&test, Call::of(&get_caller::OPERATION).key(key), 200).await;
            answered(&test, Call::of(&list_projects::OPERATION).key(key), 200).await;
        }
    });
    assert_uses_all(&FUNCTIONS, scenario).await;
}
