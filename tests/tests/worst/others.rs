//! What belongs to no field: callers, projects, preferences, addresses, the console.

use serde_json::{Value, json};

use local::demo;
use notifications::token::MAX_TOKEN;

use super::hostile::BODY_BYTES;
use super::{Case, Expected, Field, Report, Visibility, padded};

#[tokio::test]
async fn all_else_costs_little() {
    let scene = Visibility::start().await;
    let report = &mut Report::default();
    for at in 0..120 {
        let slug = format!("shop-{at}");
        demo::ensure_project(&scene.test.app.store, &slug, &"é".repeat(100)).await.unwrap();
    }
    scene
        .measure(
            "get-caller",
            vec![Case::of("a hundred projects", 200, scene.call("get-caller"))],
            report,
        )
        .await;
    let page = scene.call("list-projects").query("limit", 100);
    scene.measure("list-projects", vec![Case::of("a page", 200, page)], report).await;

    let get = vec![Case::of("all", 200, scene.call("get-email-preferences"))];
    scene.measure("get-email-preferences", get, report).await;
    let get = vec![Case::of("none", 200, scene.call("get-email-address"))];
    scene.measure("get-email-address", get, report).await;
    let preference = json!({"type": "weekly_report", "emailEnabled": true});
    let body = json!({"preferences": vec![preference; 100]});
    let json_type = |id: &str| scene.call(id).header("content-type", "application/json");
    let update = json_type("update-email-preferences").bytes(padded(&body, BODY_BYTES));
    let update = vec![Case::hostile("one type a hundred times", Expected::Refusal, update)];
    scene.measure("update-email-preferences", update, report).await;
    let email = json!({"email": format!("{}@{}.com", "a".repeat(64), "b.".repeat(60) + "c")});
    let set = json_type("set-email-address").bytes(padded(&email, BODY_BYTES));
    let set = vec![Case::hostile("the longest", Expected::Anything, set)];
    scene.measure("set-email-address", set, report).await;

    let exchange = scene.bare("exchange-console-code").json(&json!({"code": "A".repeat(92)}));
    let exchange = vec![Case::hostile("a wrong code", Expected::Refusal, exchange)];
    scene.measure("exchange-console-code", exchange, report).await;

    let token = "A".repeat(MAX_TOKEN);
    for id in
        ["confirm-email-address", "confirm-email-address-page", "unsubscribe", "unsubscribe-page"]
    {
        let bodies: [Value; 1] = [json!("x".repeat(BODY_BYTES))];
        let call = scene.bare(id).query("token", &token).bytes(bodies[0].to_string());
        let cases = vec![Case::hostile("the longest token", Expected::Anything, call)];
        scene.measure(id, cases, report).await;
    }
    let accept = "br;q=0.1, gzip;q=0.2, ".repeat(400);
    for id in ["serve-console", "serve-console-file"] {
        let call = scene.bare(id).header("accept-encoding", &accept);
        let call =
            call.header("if-none-match", &"\"0\", ".repeat(200)).parameter("file", "index.html");
        let cases = vec![Case::hostile("the page", Expected::Anything, call)];
        scene.measure(id, cases, report).await;
    }
    report.finish(Field::Others);
}
