//! The number of the state that a project's flags are in.

use serde_json::json;
use tests::app::TestApp;

use super::{
    archive, change, create, create_dependent, creation, delete, flags_state, other_project, update,
};

#[tokio::test]
async fn every_write_of_a_flag_grows_the_state_of_its_project_and_nothing_else_does() {
    let test = TestApp::start().await;
    other_project(&test).await;
    create(&test, "base", &json!({})).await;
    create_dependent(&test, "f", &["base"]).await;
    assert_eq!(flags_state(&test).await, 2);
    test.round_trips();
    change(&test, "f", json!({"enabled": false})).await;
    assert_eq!(test.round_trips(), 2, "the flag, and one transaction");
    assert_eq!(flags_state(&test).await, 3);
    change(&test, "f", json!({"enabled": false})).await;
    assert_eq!(flags_state(&test).await, 3, "nothing is different");
    change(&test, "f", json!({"prerequisites": []})).await;
    change(&test, "f", json!({"variants": [{"key": "on", "value": "true"}], "offVariant": "on"}))
        .await;
    assert_eq!(flags_state(&test).await, 5);
    for refused in [json!({"prerequisites": [{"flagKey": "f", "variant": "on"}]}), json!({"a": 1})]
    {
        assert_eq!(update(&test, "f", refused).await.status, 400);
    }
    let taken = super::call(&test, super::CREATE).json(&creation("f", &json!({})));
    assert_eq!(taken.send(&test.app).await.status, 409);
    assert_eq!(delete(&test, "f").await.status, 409);
    assert_eq!(flags_state(&test).await, 5);
    archive(&test, "f").await;
    change(&test, "f", json!({"archived": false})).await;
    archive(&test, "f").await;
    assert_eq!(flags_state(&test).await, 8);
    test.round_trips();
    assert_eq!(delete(&test, "f").await.status, 204);
    assert_eq!(test.round_trips(), 2);
    assert_eq!(flags_state(&test).await, 9);
}
