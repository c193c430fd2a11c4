//! People, sign-in, keys and projects.

use serde_json::{Value, json};
use shared::projects::role::Role;
use tests::people::signed_in;

use super::hostile::BODY_BYTES;
use super::{Case, Expected, Fixture, Report, padded};

/// Members, invitations, keys and projects, each.
const EACH: usize = 100;

#[tokio::test]
async fn people_cost_little() {
    let fixture = Fixture::start().await;
    let report = &mut Report::default();
    sign_in(&fixture, report).await;

    let invitation = |at: usize| json!({"email": format!("i{at}@example.com"), "role": "viewer"});
    let key = |at: usize| json!({"name": format!("{at}{}", "é".repeat(190)), "scopes": ["all"]});
    let project = |at: usize| json!({"name": "é".repeat(100), "slug": format!("shop-{at}")});
    let mut member = None;
    for at in 0..EACH {
        member =
            Some(signed_in(&fixture.test, &format!("m{at}@example.com"), Role::Viewer).await.0);
    }
    let member = member.unwrap().id;
    let made = async |id: &str, field: &str, body: &dyn Fn(usize) -> Value, count: usize| {
        let mut made = String::new();
        for at in 1..count {
            let reply = fixture.make(fixture.call(id).json(&body(at))).await;
            reply.body[field].as_str().unwrap().clone_into(&mut made);
        }
        made
    };
    let once = |name: &str, status, call| vec![Case::once(name, status, call)];

    for (id, field, body, count) in [
        ("create-invitation", "id", &invitation as &dyn Fn(usize) -> Value, 50),
        ("create-api-key", "keyId", &key, EACH),
        ("create-project", "id", &project, EACH),
    ] {
        fixture.measure(id, once("one", 201, fixture.call(id).json(&body(0))), report).await;
        let last = made(id, field, body, count - 1).await;
        let (change, parameter, status) = match id {
            "create-invitation" => ("revoke-invitation", "invitationId", 204),
            "create-api-key" => ("revoke-api-key", "keyId", 204),
            _ => {
                let update = fixture.call("update-project").parameter("idOrSlug", &last);
                let update = update.json(&json!({"name": "é".repeat(100), "eventsPerMinute": 1}));
                let update = vec![Case::of("all of it", 200, update)];
                fixture.measure("update-project", update, report).await;
                ("delete-project", "idOrSlug", 202)
            }
        };
        let mut call = fixture.call(change).parameter(parameter, &last);
        if change == "delete-project" {
            call = call.json(&json!({"confirm": format!("shop-{}", count - 2)}));
        }
        fixture.measure(change, once("one", status, call), report).await;
    }

    for id in ["list-members", "list-invitations", "list-api-keys", "list-audit-entries"] {
        let page = vec![Case::of("a page", 200, fixture.call(id).query("limit", 100))];
        fixture.measure(id, page, report).await;
    }
    let update = fixture.call("update-member").parameter("memberId", member);
    let update = update.json(&json!({"role": "member", "projects": null}));
    fixture.measure("update-member", vec![Case::of("a role", 200, update)], report).await;
    let remove = fixture.call("remove-member").parameter("memberId", member);
    fixture.measure("remove-member", once("one", 204, remove), report).await;
    report.finish("People");
}

/// Measures the operations of sign-in and sessions.
async fn sign_in(fixture: &Fixture, report: &mut Report) {
    let hostile = |call| vec![Case::hostile("the longest", Expected::Anything, call)];
    let json_type = |id: &str| fixture.bare(id).header("content-type", "application/json");
    let email = json!({"email": format!("{}@example.com", "a".repeat(64))});
    let token = json!({"token": "A".repeat(10_000), "code": "1".repeat(10_000)});
    for (id, body) in [("request-sign-in", &email), ("complete-sign-in", &token)] {
        let call = json_type(id).header("x-waymark-console", "1").bytes(padded(body, BODY_BYTES));
        fixture.measure(id, hostile(call), report).await;
    }
    let long = "A".repeat(4_000);
    for id in ["get-sign-in-options", "start-oidc-sign-in", "complete-oidc-sign-in"] {
        let call = fixture.bare(id).query("state", &long).query("code", &long);
        fixture.measure(id, hostile(call.cookie("__Host-waymark", &long)), report).await;
    }
    let organization = json!({"organization": "a".repeat(64)});
    for id in ["sign-out", "update-session", "accept-invitation"] {
        let call = fixture.call(id).json(&organization);
        let call =
            if id == "accept-invitation" { call.parameter("invitationId", &long) } else { call };
        fixture.measure(id, hostile(call), report).await;
    }
}
