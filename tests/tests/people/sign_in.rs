//! Sign-in by email: links, codes, browsers and limits.

use std::time::Duration;

use people::sign_in::PendingSignIn;
use people::store::PeopleStore;
use serde_json::{Value, json};
use shared::http::OriginSecrets;
use shared::projects::project::Organization;
use shared::projects::role::Role;
use tests::app::TestApp;
use tests::notifications::SentMessages;
use tests::people::{add_member, signed_in};

use super::support::{BROWSER, MIRA, SESSION, assert_problem, complete, me, request, requested};

#[tokio::test]
async fn members_sign_in_with_an_emailed_link() {
    let (test, sent) = (TestApp::start().await, SentMessages::open());
    add_member(&test, MIRA, "default", Role::Admin, None).await;
    let link = requested(&test, &sent, "Mira@Example.com").await;
    let reply = complete(&test, Some(&link.browser), &link.token, None).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(reply.body["email"], MIRA);
    assert_eq!(reply.body["role"], "admin");
    assert_eq!(reply.body["organizations"], json!(["default"]));
    assert_eq!(reply.body["invitations"], json!([]));
    assert_eq!(reply.body["keyId"], Value::Null);
    assert_eq!(reply.body["projects"][0]["slug"], "shop");
    assert_eq!(reply.cookie(BROWSER).as_deref(), Some(""), "the binding is used up");
    let session = reply.cookie(SESSION).unwrap();
    assert_eq!(me(&test, &session).await.body, reply.body);
    // Signing in is recorded, in the transaction of the session.
    let audit = test.items("audit").await;
    assert_eq!(audit.len(), 1);
    assert_eq!(audit[0]["action"].as_s().unwrap(), "signed_in");
    assert_eq!(audit[0]["user"].as_s().unwrap(), MIRA);
}

#[tokio::test]
async fn tokens_work_once_and_for_ten_minutes() {
    let (test, sent) = (TestApp::start().await, SentMessages::open());
    add_member(&test, MIRA, "default", Role::Viewer, None).await;
    let link = requested(&test, &sent, MIRA).await;
    assert_eq!(complete(&test, Some(&link.browser), &link.token, None).await.status, 200);
    let replayed = complete(&test, Some(&link.browser), &link.token, None).await;
    assert_problem(&replayed, 400, "invalid_token");

    let link = requested(&test, &sent, MIRA).await;
    test.pass(Duration::from_mins(10));
    let late = complete(&test, Some(&link.browser), &link.token, None).await;
    assert_problem(&late, 400, "invalid_token");
    assert_eq!(late.cookie(SESSION), None);
    for token in ["", "x", &link.browser] {
        assert_problem(&complete(&test, None, token, None).await, 400, "invalid_token");
    }
}

#[tokio::test]
async fn concurrent_uses_of_a_token_sign_in_once() {
    let (test, sent) = (TestApp::start().await, SentMessages::open());
    add_member(&test, MIRA, "default", Role::Viewer, None).await;
    let link = requested(&test, &sent, MIRA).await;
    let uses = (0..6).map(|_| complete(&test, Some(&link.browser), &link.token, None));
    let replies = futures_util::future::join_all(uses).await;
    let successes = replies.iter().filter(|reply| reply.status == 200).count();
    assert_eq!(successes, 1);
    for reply in replies.iter().filter(|reply| reply.status != 200) {
        assert_problem(reply, 400, "invalid_token");
    }
}

#[tokio::test]
async fn other_browsers_need_the_code() {
    let (test, sent) = (TestApp::start().await, SentMessages::open());
    add_member(&test, MIRA, "default", Role::Viewer, None).await;
    let link = requested(&test, &sent, MIRA).await;
    let other_browser = request(&test, MIRA).await.cookie(BROWSER).unwrap();
    for browser in [None, Some(other_browser.as_str())] {
        let reply = complete(&test, browser, &link.token, None).await;
        assert_problem(&reply, 403, "code_required");
        assert_eq!(reply.cookie(SESSION), None);
    }
    let reply = complete(&test, None, &link.token, Some(&link.code)).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
}

#[tokio::test]
async fn the_fifth_wrong_code_voids_the_link() {
    let (test, sent) = (TestApp::start().await, SentMessages::open());
    add_member(&test, MIRA, "default", Role::Viewer, None).await;
    let link = requested(&test, &sent, MIRA).await;
    let wrong = if link.code == "000 000" { "000 001" } else { "000 000" };
    // All at once: none of them is compared without being counted.
    let attempts = (0..8).map(|_| complete(&test, None, &link.token, Some(wrong)));
    let replies = futures_util::future::join_all(attempts).await;
    let compared = replies.iter().filter(|it| it.body["code"] == "invalid_code").count();
    assert_eq!(compared, 5);
    for (browser, code) in [(None, Some(&*link.code)), (Some(&*link.browser), None)] {
        let reply = complete(&test, browser, &link.token, code).await;
        assert_problem(&reply, 400, "invalid_token");
    }
}

#[tokio::test]
async fn emails_are_limited_per_address() {
    let (test, sent) = (TestApp::start().await, SentMessages::open());
    add_member(&test, MIRA, "default", Role::Viewer, None).await;
    for _ in 0..7 {
        assert_eq!(request(&test, MIRA).await.status, 202);
    }
    sent.run(&test.app).await;
    assert_eq!(sent.emails_to(MIRA).await.len(), 5);
    // The next hour has its own limit.
    test.pass(Duration::from_hours(1));
    assert_eq!(request(&test, MIRA).await.status, 202);
    sent.run(&test.app).await;
    assert_eq!(sent.emails_to(MIRA).await.len(), 6);
}

#[tokio::test]
async fn emails_are_limited_per_network() {
    let (test, sent) = (TestApp::start().await, SentMessages::open());
    for number in 0..6 {
        let email = format!("user{number}@example.com");
        add_member(&test, &email, "default", Role::Viewer, None).await;
    }
    for number in 0..24 {
        let email = format!("user{}@example.com", number % 6);
        assert_eq!(request(&test, &email).await.status, 202);
    }
    sent.run(&test.app).await;
    assert_eq!(sent.emails().await.len(), 20);
}

#[tokio::test]
async fn stored_items_sign_no_user_in() {
    let (test, sent) = (TestApp::start().await, SentMessages::open());
    add_member(&test, MIRA, "default", Role::Viewer, None).await;
    assert_eq!(request(&test, MIRA).await.status, 202);
    let queued = test.items("people").await;
    assert!(queued.iter().any(|item| item["pk"].as_s().unwrap() == "email#queue"));
    let link = requested(&test, &sent, MIRA).await;
    let stored = format!("{:?}", test.items("people").await);
    for secret in [&link.token, &link.browser, &link.code.replace(' ', "")] {
        assert!(!stored.contains(secret.as_str()));
    }
    let reply = complete(&test, Some(&link.browser), &link.token, None).await;
    let session = reply.cookie(SESSION).unwrap();
    assert!(!format!("{:?}", test.items("people").await).contains(&session));
}

#[tokio::test]
async fn waiting_emails_expire_with_their_links() {
    let (test, sent) = (TestApp::start().await, SentMessages::open());
    add_member(&test, MIRA, "default", Role::Viewer, None).await;
    assert_eq!(request(&test, MIRA).await.status, 202);
    test.pass(Duration::from_mins(11));
    sent.run(&test.app).await;
    assert!(sent.emails().await.is_empty());
}

#[tokio::test]
async fn links_of_the_command_need_no_code() {
    let test = TestApp::start().await;
    let member = add_member(&test, MIRA, "acme", Role::Owner, None).await;
    add_member(&test, MIRA, "default", Role::Viewer, None).await;
    let organization = Organization::parse("default").unwrap();
    let now = test.app.clock.now();
    let (pending, token) =
        PendingSignIn::by_command(member.user.clone(), organization, now).unwrap();
    let store = test.patient_store();
    PeopleStore::new(&store).put_sign_in(&pending).await.unwrap();
    let reply = complete(&test, None, &token.reveal(), None).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(reply.body["organization"], "default");
    assert_eq!(reply.body["organizations"], json!(["acme", "default"]));
}

#[tokio::test]
async fn removed_members_cannot_complete() {
    let (test, sent) = (TestApp::start().await, SentMessages::open());
    let (member, _) = signed_in(&test, MIRA, Role::Viewer).await;
    let link = requested(&test, &sent, MIRA).await;
    let store = test.patient_store();
    PeopleStore::new(&store)
        .remove_member(&member, None, Vec::new(), test.app.clock.now())
        .await
        .unwrap();
    let reply = complete(&test, Some(&link.browser), &link.token, None).await;
    assert_problem(&reply, 400, "invalid_token");
}

#[tokio::test]
async fn sign_in_emails_name_organization_browser_and_time() {
    let (test, sent) = (TestApp::start().await, SentMessages::open());
    add_member(&test, MIRA, "acme", Role::Viewer, None).await;
    let chrome = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like \
                  Gecko) Chrome/126.0.0.0 Safari/537.36";
    let call = tests::call::Call::of(super::support::REQUEST).from_console();
    let call = call.header("user-agent", chrome).header("cloudfront-viewer-country-name", "Norway");
    let call =
        call.json(&json!({"email": MIRA})).header("x-origin-secret", "the-secret-of-the-edge");
    let secrets = OriginSecrets::parse("the-secret-of-the-edge");
    let (behind, _) = tests::app::app_over(&test.engine.endpoint());
    assert_eq!(call.clone().send(&behind.with_origin_secrets(secrets)).await.status, 202);
    sent.run(&test.app).await;
    let mail = &sent.emails_to(MIRA).await[0];
    assert_eq!(mail["subject"], "[Waymark] Sign in to acme");
    let text = mail["text"].as_str().unwrap();
    let line = "Chrome on macOS from Norway requested this email at 2026-11-21 04:16 UTC.";
    assert!(text.contains(line), "{text}");
    // Without a distribution, a client could have sent the place.
    assert_eq!(call.send(&test.app).await.status, 202);
    sent.run(&test.app).await;
    let text = sent.emails_to(MIRA).await[0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("Chrome on macOS requested this email"), "{text}");
}
