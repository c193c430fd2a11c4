//! Functions for email preferences.

use serde_json::json;
use tests::app::TestApp;
use tests::call::Call;

use crate::{assert_uses_all, send};

pub(crate) const FUNCTIONS: [&str; 2] =
    [get_email_preferences::OPERATION.name, update_email_preferences::OPERATION.name];

#[tokio::test]
async fn preference_functions_use_exactly_their_permissions() {
    let test = TestApp::start().await;
    let scenario = Box::pin(async {
        send(&test, Call::of(&get_email_preferences::OPERATION).key(&test.key), 200).await;
        let update = Call::of(&update_email_preferences::OPERATION).key(&test.key);
        let off = json!({"preferences": [{"type": "billing", "emailEnabled": false}]});
        send(&test, update.clone().json(&off), 200).await;
        send(&test, update.json(&json!({"preferences": []})), 200).await;
    });
    assert_uses_all(&FUNCTIONS, scenario).await;
}
