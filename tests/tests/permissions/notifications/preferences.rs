//! Notification email preferences.

use serde_json::json;
use tests::app::TestApp;
use tests::call::Call;

use crate::{answered, assert_uses_all};

pub(crate) const FUNCTIONS: [&str; 2] =
    [get_email_preferences::OPERATION.name, update_email_preferences::OPERATION.name];

#[tokio::test]
async fn functions_of_email_preferences_may_do_what_they_do_and_no_more() {
    let test = TestApp::start().await;
    let scenario = Box::pin(async {
        answered(&test, Call::of(&get_email_preferences::OPERATION).key(&test.key), 200).await;
        let update = Call::of(&update_email_preferences::OPERATION).key(&test.key);
        let off = json!({"preferences": [{"type": "billing", "emailEnabled": false}]});
        answered(&test, update.clone().json(&off), 200).await;
        answered(&test, update.json(&json!({"preferences": []})), 200).await;
    });
    assert_uses_all(&FUNCTIONS, scenario).await;
}
