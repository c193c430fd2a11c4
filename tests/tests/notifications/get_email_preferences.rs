//! get-email-preferences with a real engine.

use serde_json::json;

use shared::app::Operation;
use tests::app::TestApp;
use tests::call::Call;
use tests::preferences::all_but;
use tests::scripted::{KEY, ScriptedReply, access, reply_under};

const GET: &Operation = &::get_email_preferences::OPERATION;

#[tokio::test]
async fn warm_reads_cost_one_round_trip() {
    let test = TestApp::start().await;
    for expected in [2, 1] {
        Call::of(GET).key(&test.key).send(&test.app).await;
        assert_eq!(test.round_trips(), expected);
    }
}

#[tokio::test]
async fn reads_one_item_strongly_consistently() {
    let script = |target: &str, _: usize| match target {
        "BatchGetItem" => access(),
        _ => ScriptedReply::Response(json!({})),
    };
    let (reply, dynamodb) = reply_under(script, Call::of(GET).key(KEY)).await;
    assert_eq!(reply.body, all_but(&[]));
    let expected = json!({
        "TableName": "waymark-email-preferences",
        "Key": {"userId": {"S": "default/owner"}},
        "ConsistentRead": true,
        "ReturnConsumedCapacity": "TOTAL",
    });
    assert_eq!(dynamodb.requests("GetItem"), [expected]);
    assert_eq!(dynamodb.requests("BatchGetItem").len(), 1);
}
