//! set-email-address, confirm-email-address and unsubscribe.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use lambda_http::http::Method;
use serde_json::{Value, json};

use notifications::address::{EmailAddress, Nonce};
use notifications::store::NotificationStore;
use send_notifications::senders::Senders;
use shared::app::{App, Operation};
use shared::projects::api_key::ApiKeyRecord;
use tests::app::{TestApp, clock_at};
use tests::call::{Call, Gateway, Reply};
use tests::notifications::{SentMessages, give_address, run, senders, token_in, user};
use tests::proxy::{self, Proxy, ProxyResponse};
use tests::wire::Request;

const SET: &Operation = &set_email_address::OPERATION;
const GET: &Operation = &get_email_address::OPERATION;
const CONFIRM: &Operation = &confirm_email_address::OPERATION;
const UNSUBSCRIBE: &Operation = &unsubscribe::OPERATION;
const PREFERENCES: &Operation = &get_email_preferences::OPERATION;

const CONFIRM_PATH: &str = "/v0/notifications/confirm";
const UNSUBSCRIBE_PATH: &str = "/v0/notifications/unsubscribe";

async fn set(test: &TestApp, email: &str) -> Reply {
    Call::of(SET).key(&test.key).json(&json!({ "email": email })).send(&test.app).await
}

async fn confirm(test: &TestApp, token: &str) -> Reply {
    Call::of(CONFIRM).query("token", token).send(&test.app).await
}

/// Opens a link like a link scanner.
async fn open_link(test: &TestApp, token: &str) -> Reply {
    Call::of(CONFIRM).method(Method::GET).query("token", token).send(&test.app).await
}

/// Changes and confirms the test user's address, and returns the token of the confirmation.
async fn change(test: &TestApp, outbound: &SentMessages, email: &str) -> String {
    assert_eq!(set(test, email).await.status, 200);
    outbound.run(&test.app).await;
    let token = token_in(&outbound.emails_to(email).await[0], CONFIRM_PATH);
    assert_eq!(page(&confirm(test, &token).await), (200, "Address confirmed"));
    outbound.run(&test.app).await;
    token
}

/// Returns the token in the latest security email to an address.
async fn undo_token(outbound: &SentMessages, email: &str) -> String {
    let emails = outbound.emails_to(email).await;
    assert_eq!(emails[0]["subject"], "[Waymark] Your notification address changed");
    token_in(&emails[0], CONFIRM_PATH)
}

async fn addresses_of(test: &TestApp, key: &str) -> Value {
    let reply = Call::of(GET).key(key).send(&test.app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body
}

/// Returns the status and headline of a page.
fn page(reply: &Reply) -> (u16, &str) {
    let page = reply.body.as_str().unwrap();
    (reply.status, page.split_once("<h1>").unwrap().1.split_once("</h1>").unwrap().0)
}

#[tokio::test]
async fn links_in_emails_confirm_addresses_once() {
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    let reply = set(&test, "mira@example.com").await;
    let pending = json!({"email": null, "pendingEmail": "mira@example.com"});
    assert_eq!((reply.status, &reply.body), (200, &pending));
    outbound.run(&test.app).await;
    let [mail] = &outbound.emails().await[..] else { panic!("expected one email") };
    assert_eq!(mail["to"], "mira@example.com");
    assert_eq!(mail["headers"]["List-Unsubscribe"], Value::Null);
    let token = token_in(mail, CONFIRM_PATH);
    assert_eq!(page(&confirm(&test, &token).await), (200, "Address confirmed"));

    // The link has no further effect.
    assert_eq!(page(&confirm(&test, &token).await), (400, "Link already used"));
    let same = set(&test, "mira@example.com").await;
    let confirmed = json!({"email": "mira@example.com", "pendingEmail": null});
    assert_eq!((&same.body, &addresses_of(&test, &test.key).await), (&confirmed, &confirmed));
    outbound.run(&test.app).await;
    assert_eq!(outbound.emails().await.len(), 1, "confirmed addresses need no confirmation");
    let other = test.key_of("noor@example.com").await;
    let nothing = json!({"email": null, "pendingEmail": null});
    assert_eq!(addresses_of(&test, &other).await, nothing, "of another user");
}

#[tokio::test]
async fn opening_a_confirmation_link_changes_nothing() {
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    let pending = set(&test, "mira@example.com").await.body;
    outbound.run(&test.app).await;
    let token = token_in(&outbound.emails().await[0], CONFIRM_PATH);
    for gateway in [Gateway::HttpApi, Gateway::RestApi] {
        let call = Call::of(CONFIRM).method(Method::GET).query("token", &token);
        let opened = call.gateway(gateway).send(&test.app).await;
        assert_eq!(page(&opened), (200, "Confirm your email address?"));
        let html = opened.body.as_str().unwrap();
        assert!(
            html.contains("<form method=\"post\">") && html.contains("mira@example.com"),
            "{html}"
        );
        assert_eq!(addresses_of(&test, &test.key).await, pending);
    }
    assert_eq!(page(&confirm(&test, &token).await), (200, "Address confirmed"));
    assert_eq!(page(&open_link(&test, &token).await), (400, "Link already used"));
}

#[tokio::test]
async fn keys_that_list_projects_cannot_set_an_address() {
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    let limited =
        |key: ApiKeyRecord| ApiKeyRecord { projects: Some([test.project_id].into()), ..key };
    let key = test.key_with(limited).await;
    let body = json!({"email": "attacker@example.com"});
    let reply = Call::of(SET).key(&key).json(&body).send(&test.app).await;
    assert_eq!(reply.problem(), (403, "insufficient_scope"));
    assert!(reply.body["detail"].as_str().unwrap().contains("some projects"), "{}", reply.body);
    assert_eq!(addresses_of(&test, &key).await, json!({"email": null, "pendingEmail": null}));
    outbound.run(&test.app).await;
    assert!(outbound.emails_to("attacker@example.com").await.is_empty());
}

#[tokio::test]
async fn the_old_address_undoes_a_change_within_72_hours() {
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    give_address(&test.app, &user("owner"), "old@example.com").await;
    change(&test, &outbound, "new@example.com").await;
    let emails = outbound.emails_to("old@example.com").await;
    // The first email is about the test key.
    assert_eq!(emails.len(), 2, "{emails:?}");
    assert_eq!(emails[0]["headers"]["List-Unsubscribe"], Value::Null);
    let body = emails[0]["text"].as_str().unwrap();
    assert!(body.contains("revoke the key") && !body.contains("new@example.com"), "{body}");
    let token = undo_token(&outbound, "old@example.com").await;

    // An undo also drops a pending address.
    set(&test, "newer@example.com").await;
    test.pass(Duration::from_secs(72 * 3_600 - 1));
    assert_eq!(page(&open_link(&test, &token).await), (200, "Undo the address change?"));
    assert_eq!(addresses_of(&test, &test.key).await["email"], "new@example.com");
    assert_eq!(page(&confirm(&test, &token).await), (200, "Address change undone"));
    let restored = json!({"email": "old@example.com", "pendingEmail": null});
    assert_eq!(addresses_of(&test, &test.key).await, restored);
    assert_eq!(page(&confirm(&test, &token).await), (400, "Link already used"));
    outbound.run(&test.app).await;
    assert!(outbound.emails_to("newer@example.com").await.is_empty());

    change(&test, &outbound, "new@example.com").await;
    let token = undo_token(&outbound, "old@example.com").await;
    test.pass(Duration::from_hours(72));
    assert_eq!(page(&confirm(&test, &token).await), (400, "Link expired"));
    assert_eq!(addresses_of(&test, &test.key).await["email"], "new@example.com");
}

/// An attacker with a stolen key changes the address twice.
#[tokio::test]
async fn the_first_old_address_undoes_two_changes() {
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    give_address(&test.app, &user("owner"), "old@example.com").await;
    change(&test, &outbound, "attacker@example.com").await;
    change(&test, &outbound, "attacker-2@example.com").await;
    let attacker_token = undo_token(&outbound, "attacker@example.com").await;
    let token = undo_token(&outbound, "old@example.com").await;
    assert_eq!(page(&confirm(&test, &token).await), (200, "Address change undone"));
    assert_eq!(page(&confirm(&test, &attacker_token).await), (400, "Link no longer valid"));
    assert_eq!(addresses_of(&test, &test.key).await["email"], "old@example.com");
}

#[tokio::test]
async fn first_and_operator_addresses_send_no_security_email() {
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    change(&test, &outbound, "first@example.com").await;
    give_address(&test.app, &user("owner"), "second@example.com").await;
    outbound.run(&test.app).await;
    assert_eq!(outbound.emails_to("first@example.com").await.len(), 1, "the confirmation email");
    // Links cannot replace an operator's address.
    change(&test, &outbound, "third@example.com").await;
    let token = undo_token(&outbound, "second@example.com").await;
    give_address(&test.app, &user("owner"), "fourth@example.com").await;
    assert_eq!(page(&confirm(&test, &token).await), (400, "Link no longer valid"));
}

#[tokio::test]
async fn one_address_gets_five_confirmation_emails_a_day() {
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    outbound.run(&test.app).await;
    let mut keys = Vec::new();
    for number in 0..8 {
        keys.push(test.key_of(&format!("user-{number}")).await);
    }
    // The limit ignores case.
    let victims = ["victim@example.com", "Victim@example.com", "VICTIM@EXAMPLE.COM"];
    for (number, key) in keys.iter().enumerate() {
        let body = json!({"email": victims[number % 3]});
        let reply = Call::of(SET).key(key).json(&body).send(&test.app).await;
        let pending = json!({"email": null, "pendingEmail": victims[number % 3]});
        assert_eq!((reply.status, reply.body), (200, pending), "responses do not depend on others");
    }
    let emails_to_victim = async || {
        let emails = outbound.emails().await;
        let to_victim = emails.iter().map(|mail| mail["to"].as_str().unwrap().to_lowercase());
        to_victim.filter(|to| to == "victim@example.com").count()
    };
    for emails in 1..=5 {
        outbound.run(&test.app).await;
        test.pass(Duration::from_secs(599));
        outbound.run(&test.app).await;
        assert_eq!(emails_to_victim().await, emails, "one email in ten minutes");
        test.pass(Duration::from_secs(1));
    }
    test.pass(Duration::from_hours(12));
    outbound.run(&test.app).await;
    assert_eq!(emails_to_victim().await, 5);
    // The stored times contain no plain address, and expire.
    let items = test.items("notifications").await;
    let pk = |item: &std::collections::HashMap<String, AttributeValue>| {
        item["pk"].as_s().unwrap().clone()
    };
    let stored: Vec<_> =
        items.iter().filter(|item| pk(item).starts_with("confirmations#")).collect();
    assert_eq!(stored.len(), 1);
    assert!(!format!("{stored:?}").to_lowercase().contains("victim"));
    assert!(stored[0].contains_key("expiresAt"));
    // Until 24 hours after the first.
    test.pass(Duration::from_hours(11) + Duration::from_mins(9));
    outbound.run(&test.app).await;
    assert_eq!(emails_to_victim().await, 5);
    test.pass(Duration::from_mins(1));
    let again = Call::of(SET).key(&keys[0]).json(&json!({"email": victims[0]}));
    assert_eq!(again.send(&test.app).await.status, 200);
    outbound.run(&test.app).await;
    assert_eq!(emails_to_victim().await, 6);
}

#[tokio::test]
async fn confirmation_links_are_voided_and_expire() {
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    give_address(&test.app, &user("owner"), "old@example.com").await;
    let mut tokens = Vec::new();
    for email in ["a@example.com", "b@example.com"] {
        set(&test, email).await;
        outbound.run(&test.app).await;
        tokens.push(token_in(&outbound.emails_to(email).await[0], CONFIRM_PATH));
    }
    assert_eq!(page(&confirm(&test, &tokens[0]).await), (400, "Link no longer valid"));
    let pending = set(&test, "old@example.com").await.body;
    assert_eq!(pending, json!({"email": "old@example.com", "pendingEmail": null}));
    assert_eq!(page(&confirm(&test, &tokens[1]).await), (400, "Link no longer valid"));
    set(&test, "c@example.com").await;
    outbound.run(&test.app).await;
    let token = token_in(&outbound.emails_to("c@example.com").await[0], CONFIRM_PATH);
    test.pass(Duration::from_hours(24));
    assert_eq!(page(&confirm(&test, &token).await), (400, "Link expired"));
}

#[tokio::test]
async fn invalid_links_return_an_error_page() {
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    set(&test, "mira@example.com").await;
    outbound.run(&test.app).await;
    let token = token_in(&outbound.emails().await[0], CONFIRM_PATH);
    // Tokens of another stack, truncated, changed, missing, and for another purpose.
    let (other, mut changed) = (TestApp::start().await, token.clone());
    changed.replace_range(0..1, if token.starts_with('A') { "B" } else { "A" });
    let invalid_link = (400, "Invalid link");
    assert_eq!(page(&confirm(&other, &token).await), invalid_link);
    for token in [&token[1..], &token[..token.len() - 1], &changed, "", "<script>"] {
        assert_eq!(page(&confirm(&test, token).await), invalid_link, "{token}");
        for method in [Method::GET, Method::POST] {
            for operation in [CONFIRM, UNSUBSCRIBE] {
                let call = Call::of(operation).method(method.clone()).query("token", token);
                assert_eq!(page(&call.send(&test.app).await), invalid_link, "{token}");
            }
        }
    }
    assert_eq!(page(&Call::of(CONFIRM).send(&test.app).await), invalid_link);
    let crossed = Call::of(UNSUBSCRIBE).query("token", &token).send(&test.app).await;
    assert_eq!(page(&crossed), invalid_link);
    assert_eq!(page(&confirm(&test, &token).await).0, 200);
}

/// Sets an address between the sender's read of the old one and its deletion of the request.
#[tokio::test]
async fn concurrent_confirmation_requests_are_not_lost() {
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    let name = user("owner");
    for has_address in [false, true] {
        if has_address {
            give_address(&test.app, &name, "old@example.com").await;
        }
        let read = NotificationStore::new(&test.app.store).find_address(&name).await.unwrap();
        assert!(read.pending.is_none());
        set(&test, "new@example.com").await;
        assert!(
            !NotificationStore::new(&test.app.store)
                .end_confirmation_request(&name, &read, false)
                .await
                .unwrap()
        );
        outbound.run(&test.app).await;
        let emails = outbound.emails_to("new@example.com").await.len();
        assert_eq!(emails, 1 + usize::from(has_address));
        // An address gets one confirmation email in ten minutes.
        test.pass(Duration::from_mins(10));
    }
    // The request for a withdrawn address is deleted.
    set(&test, "old@example.com").await;
    outbound.run(&test.app).await;
    let items = test.items("notifications").await;
    assert!(!items.iter().any(|item| item["sk"].as_s().unwrap().starts_with("confirm#")));
}

/// Later invocations do not read an expired request.
#[tokio::test]
async fn requests_without_a_sender_expire() {
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    outbound.run(&test.app).await;
    let no_senders = Senders::default();
    let pending = set(&test, "mira@example.com").await.body;
    test.pass(Duration::from_hours(23));
    run(&test.app, &no_senders, Duration::ZERO).await;
    assert_eq!(addresses_of(&test, &test.key).await, pending, "an operator can still set a sender");
    test.pass(Duration::from_hours(1));
    run(&test.app, &no_senders, Duration::ZERO).await;
    let nothing = json!({"email": null, "pendingEmail": null});
    assert_eq!(addresses_of(&test, &test.key).await, nothing);
    test.round_trips();
    run(&test.app, &no_senders, Duration::ZERO).await;
    assert_eq!(test.round_trips(), 8, "an idle run");
    // No confirmation email is sent.
    outbound.run(&test.app).await;
    assert!(outbound.emails().await.is_empty());
}

#[tokio::test]
async fn responses_do_not_reveal_addresses_of_others() {
    let test = TestApp::start().await;
    give_address(&test.app, &user("ada"), "taken@example.com").await;
    let [taken, free] = ["taken@example.com", "free@example.com"];
    let (taken, free) = (set(&test, taken).await, set(&test, free).await);
    assert_eq!(taken.status, free.status);
    let expected = taken.body.to_string().replace("taken", "free");
    assert_eq!(free.body.to_string(), expected);
}

#[tokio::test]
async fn users_cause_five_confirmation_emails_an_hour() {
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    for number in 0..7 {
        set(&test, &format!("victim{number}@example.com")).await;
        outbound.run(&test.app).await;
        test.pass(Duration::from_mins(1));
    }
    assert_eq!(outbound.emails().await.len(), 5);
    test.pass(Duration::from_mins(54));
    outbound.run(&test.app).await;
    // When the limit allows it, only the latest address gets an email.
    let emails = outbound.emails().await;
    assert_eq!((emails.len(), &emails[0]["to"]), (6, &json!("victim6@example.com")));
}

#[tokio::test]
async fn unsubscribe_links_turn_off_one_type() {
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    let ada = test.key_of("ada").await;
    give_address(&test.app, &user("ada"), "ada@example.com").await;
    outbound.run(&test.app).await;
    let [mail] = &outbound.emails().await[..] else {
        panic!("expected one email about the new key")
    };
    let token = token_in(mail, UNSUBSCRIBE_PATH);
    let header = mail["headers"]["List-Unsubscribe"].as_str().unwrap();
    assert!(header.contains(&token), "{header}");
    assert_eq!(mail["headers"]["List-Unsubscribe-Post"], "List-Unsubscribe=One-Click");

    let preferences = async |key: &str| Call::of(PREFERENCES).key(key).send(&test.app).await.body;
    let before = preferences(&ada).await;
    let call = Call::of(UNSUBSCRIBE).query("token", &token);
    for gateway in [Gateway::HttpApi, Gateway::RestApi] {
        let opened = call.clone().method(Method::GET).gateway(gateway).send(&test.app).await;
        assert_eq!(page(&opened), (200, "Unsubscribe from new API key emails?"));
        assert_eq!(preferences(&ada).await, before, "GET changes nothing");
    }
    let one_click = call
        .header("content-type", "application/x-www-form-urlencoded")
        .bytes("List-Unsubscribe=One-Click");
    for _ in 0..2 {
        let done = one_click.clone().send(&test.app).await;
        assert_eq!(page(&done), (200, "Unsubscribed"));
    }
    let mut expected = before.clone();
    for preference in expected.as_array_mut().unwrap() {
        if preference["type"] == "api_key_created" {
            preference["emailEnabled"] = json!(false);
        }
    }
    assert_eq!(preferences(&ada).await, expected);
    assert_eq!(preferences(&test.key).await, before);
}

/// A fake SES that changes the user's address while it accepts an email.
struct Overtaken {
    app: App,
    emails: AtomicU32,
}

impl Proxy for Overtaken {
    async fn respond(&self, _: Request) -> ProxyResponse {
        let number = self.emails.fetch_add(1, Ordering::Relaxed);
        let name = user("owner");
        let mut address =
            NotificationStore::new(&self.app.store).find_address(&name).await.unwrap();
        let email = EmailAddress::parse(&format!("victim+{number}@example.com")).unwrap();
        address.set(email, Nonce([7; 16]), self.app.clock.now());
        assert!(
            NotificationStore::new(&self.app.store)
                .replace_address(&name, &address, true)
                .await
                .unwrap()
        );
        (200, json!({"MessageId": "1"}).to_string().into_bytes())
    }
}

#[tokio::test]
async fn concurrent_changes_do_not_bypass_the_limit() {
    let test = TestApp::start().await;
    assert_eq!(set(&test, "victim@example.com").await.status, 200);
    let (app, emails) = (test.app_at(clock_at(test.app.clock.now())), AtomicU32::new(0));
    let overtaken = Arc::new(Overtaken { app, emails });
    let url = proxy::serve(Arc::clone(&overtaken)).await;
    let senders = Senders { publisher: None, ..senders(&url, &url) };
    for _ in 0..10 {
        run(&test.app, &senders, Duration::ZERO).await;
        test.pass(Duration::from_secs(30));
    }
    assert_eq!(overtaken.emails.load(Ordering::Relaxed), 5);
    test.pass(Duration::from_hours(1));
    run(&test.app, &senders, Duration::ZERO).await;
    assert!(overtaken.emails.load(Ordering::Relaxed) > 5, "the limit is over");
}
