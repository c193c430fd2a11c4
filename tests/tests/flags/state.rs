//! The revision of a project's flags.

use serde_json::json;
use tests::app::TestApp;

use super::{
    archive, change, create, create_dependent, creation, delete, flag_set_revision, update,
};

#[tokio::test]
async fn only_flag_writes_increment_the_revision() {
    let test = TestApp::start().await;
    test.other_project().await;
    create(&test, "base", &json!({})).await;
    create_dependent(&test, "f", &["base"]).await;
    assert_eq!(flag_set_revision(&test).await, 2);
    test.round_trips();
    change(&test, "f", json!({"enabled": false})).await;
    assert_eq!(test.round_trips(), 2, "the flag and one transaction");
    assert_eq!(flag_set_revision(&test).await, 3);
    change(&test, "f", json!({"enabled": false})).await;
    assert_eq!(flag_set_revision(&test).await, 3, "an equal patch changes nothing");
    change(&test, "f", json!({"prerequisites": []})).await;
    change(&test, "f", json!({"variants": [{"key": "on", "value": "true"}], "offVariant": "on"}))
        .await;
    assert_eq!(flag_set_revision(&test).await, 5);
    for rejected in [json!({"prerequisites": [{"flagKey": "f", "variant": "on"}]}), json!({"a": 1})]
    {
        assert_eq!(update(&test, "f", rejected).await.status, 400);
    }
    let taken = test.call(super::CREATE).json(&creation("f", &json!({})));
    assert_eq!(taken.send(&test.app).await.status, 409);
    assert_eq!(delete(&test, "f").await.status, 409);
    assert_eq!(flag_set_revision(&test).await, 5);
    archive(&test, "f").await;
    change(&test, "f", json!({"archived": false})).await;
    archive(&test, "f").await;
    assert_eq!(flag_set_revision(&test).await, 8);
    test.round_trips();
    assert_eq!(delete(&test, "f").await.status, 204);
    assert_eq!(test.round_trips(), 2);
    assert_eq!(flag_set_revision(&test).await, 9);
}
