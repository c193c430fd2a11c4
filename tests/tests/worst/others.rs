//! Operations outside the feature areas: callers, projects, preferences, addresses, the console.

use serde_json::{Value, json};

use local::demo;
use notifications::token::MAX_TOKEN;

use super::hostile::BODY_BYTES;
use super::{Case, Expected, Fixture, Report, padded};

#[tokio::test]
async fn other_operations_cost_little() {
    let fixture = Fixture::start().await;
    let report = &mut Report::default();
    for at in 0..120 {
        let slug = format!("shop-{at}");
        demo::ensure_project(&fixture.test.app.store, &slug, &"é".repeat(100)).await.unwrap();
    }
    fixture
        .measure(
            "get-caller",
            vec![Case::of("a hundred projects", 200, fixture.call("get-caller"))],
            report,
        )
        .await;
    let page = fixture.call("list-projects").query("limit", 100);
    fixture.measure("list-projects", vec![Case::of("a page", 200, page)], report).await;

    let get = vec![Case::of("all", 200, fixture.call("get-email-preferences"))];
    fixture.measure("get-email-preferences", get, report).await;
    let get = vec![Case::of("none", 200, fixture.call("get-email-address"))];
    fixture.measure("get-email-address", get, report).await;
    let preference = json!({"type": "weekly_report", "emailEnabled": true});
    let body = json!({"preferences": vec![preference; 100]});
    let json_type = |id: &str| fixture.call(id).header("content-type", "application/json");
    let update = json_type("update-email-preferences").bytes(padded(&body, BODY_BYTES));
    let update = vec![Case::hostile("one type a hundred times", Expected::Rejection, update)];
    fixture.measure("update-email-preferences", update, report).await;
    let email = json!({"email": format!("{}@{}.com", "a".repeat(64), "b.".repeat(60) + "c")});
    let set = json_type("set-email-address").bytes(padded(&email, BODY_BYTES));
    let set = vec![Case::hostile("the longest", Expected::Anything, set)];
    fixture.measure("set-email-address", set, report).await;

    let exchange = fixture.bare("exchange-console-code").json(&json!({"code": "A".repeat(92)}));
    let exchange = vec![Case::hostile("a wrong code", Expected::Rejection, exchange)];
    fixture.measure("exchange-console-code", exchange, report).await;

    let token = "A".repeat(MAX_TOKEN);
    for id in
        ["confirm-email-address", "confirm-email-address-page", "unsubscribe", "unsubscribe-page"]
    {
        let bodies: [Value; 1] = [json!("x".repeat(BODY_BYTES))];
        let call = fixture.bare(id).query("token", &token).bytes(bodies[0].to_string());
        let cases = vec![Case::hostile("the longest token", Expected::Anything, call)];
        fixture.measure(id, cases, report).await;
    }
    let accept = "br;q=0.1, gzip;q=0.2, ".repeat(400);
    for id in ["serve-console", "serve-console-file"] {
        let call = fixture.bare(id).header("accept-encoding", &accept);
        let call =
            call.header("if-none-match", &"\"0\", ".repeat(200)).parameter("file", "index.html");
        let cases = vec![Case::hostile("the page", Expected::Anything, call)];
        fixture.measure(id, cases, report).await;
    }
    report.finish("Others");
}
