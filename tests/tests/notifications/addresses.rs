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
use shared::projects::api_key::{ApiKeyRecord, UserId};
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

/// Opens a link, as a program that looks at links before people do.
async fn look(test: &TestApp, token: &str) -> Reply {
    Call::of(CONFIRM).method(Method::GET).query("token", token).send(&test.app).await
}

/// Changes the address of the tests' own user, and returns the token of the confirmation.
async fn change(test: &TestApp, post: &SentMessages, email: &str) -> String {
    assert_eq!(set(test, email).await.status, 200);
    post.run(&test.app).await;
    let token = token_in(&post.mails_to(email).await[0], CONFIRM_PATH);
    assert_eq!(page(&confirm(test, &token).await), (200, "Your address is confirmed"));
    post.run(&test.app).await;
    token
}

/// Returns the token in the latest security email to an address.
async fn undo_token(post: &SentMessages, email: &str) -> String {
    let mails = post.mails_to(email).await;
    assert_eq!(mails[0]["subject"], "Your notifications of Waymark go to another address");
    token_in(&mails[0], CONFIRM_PATH)
}

async fn told(test: &TestApp, key: &str) -> Value {
    let reply = Call::of(GET).key(key).send(&test.app).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.body
}

/// Status and headline of a page.
fn page(reply: &Reply) -> (u16, &str) {
    let page = reply.body.as_str().unwrap();
    (reply.status, page.split_once("<h1>").unwrap().1.split_once("</h1>").unwrap().0)
}

#[tokio::test]
async fn an_address_counts_once_the_link_in_the_mail_was_followed() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    let reply = set(&test, "mira@example.com").await;
    let waits = json!({"email": null, "pendingEmail": "mira@example.com"});
    assert_eq!((reply.status, &reply.body), (200, &waits));
    post.run(&test.app).await;
    let [mail] = &post.mails().await[..] else { panic!("one mail") };
    assert_eq!(mail["to"], "mira@example.com");
    assert_eq!(mail["headers"]["List-Unsubscribe"], Value::Null);
    let token = token_in(mail, CONFIRM_PATH);
    assert_eq!(page(&confirm(&test, &token).await), (200, "Your address is confirmed"));

    // The link is used up; the address stays.
    assert_eq!(page(&confirm(&test, &token).await), (400, "This link was used before"));
    let same = set(&test, "mira@example.com").await;
    assert_eq!(same.body, json!({"email": "mira@example.com", "pendingEmail": null}));
    post.run(&test.app).await;
    assert_eq!(post.mails().await.len(), 1, "nobody is asked for what is confirmed");
}

#[tokio::test]
async fn looking_at_a_confirmation_link_changes_nothing() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    let waits = set(&test, "mira@example.com").await.body;
    post.run(&test.app).await;
    let token = token_in(&post.mails().await[0], CONFIRM_PATH);
    for gateway in [Gateway::HttpApi, Gateway::RestApi] {
        let call = Call::of(CONFIRM).method(Method::GET).query("token", &token);
        let asked = call.gateway(gateway).send(&test.app).await;
        assert_eq!(page(&asked), (200, "Confirm your address?"));
        let html = asked.body.as_str().unwrap();
        assert!(
            html.contains("<form method=\"post\">") && html.contains("mira@example.com"),
            "{html}"
        );
        assert_eq!(told(&test, &test.key).await, waits);
    }
    assert_eq!(page(&confirm(&test, &token).await), (200, "Your address is confirmed"));
    assert_eq!(page(&look(&test, &token).await), (400, "This link was used before"));
}

#[tokio::test]
async fn keys_that_list_projects_cannot_set_an_address() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    let narrow =
        |key: ApiKeyRecord| ApiKeyRecord { projects: Some([test.project_id].into()), ..key };
    let key = test.key_with(narrow).await;
    let body = json!({"email": "attacker@example.com"});
    let reply = Call::of(SET).key(&key).json(&body).send(&test.app).await;
    assert_eq!(reply.problem(), (403, "insufficient_scope"));
    assert!(reply.body["detail"].as_str().unwrap().contains("some projects"), "{}", reply.body);
    assert_eq!(told(&test, &key).await, json!({"email": null, "pendingEmail": null}));
    post.run(&test.app).await;
    assert!(post.mails_to("attacker@example.com").await.is_empty());
}

#[tokio::test]
async fn the_old_address_undoes_a_change_within_72_hours() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    give_address(&test.app, &user("owner"), "old@example.com").await;
    change(&test, &post, "new@example.com").await;
    let mails = post.mails_to("old@example.com").await;
    // That of the tests' key came first.
    assert_eq!(mails.len(), 2, "{mails:?}");
    assert_eq!(mails[0]["headers"]["List-Unsubscribe"], Value::Null);
    let body = mails[0]["text"].as_str().unwrap();
    assert!(body.contains("revoke the key") && !body.contains("new@example.com"), "{body}");
    let token = undo_token(&post, "old@example.com").await;

    // An address that waits is dropped, too.
    set(&test, "newer@example.com").await;
    test.pass(Duration::from_secs(72 * 3_600 - 1));
    assert_eq!(page(&look(&test, &token).await), (200, "Undo the change of your address?"));
    assert_eq!(told(&test, &test.key).await["email"], "new@example.com");
    assert_eq!(page(&confirm(&test, &token).await), (200, "The change is undone"));
    let restored = json!({"email": "old@example.com", "pendingEmail": null});
    assert_eq!(told(&test, &test.key).await, restored);
    assert_eq!(page(&confirm(&test, &token).await), (400, "This link was used before"));
    post.run(&test.app).await;
    assert!(post.mails_to("newer@example.com").await.is_empty());

    change(&test, &post, "new@example.com").await;
    let token = undo_token(&post, "old@example.com").await;
    test.pass(Duration::from_hours(72));
    assert_eq!(page(&confirm(&test, &token).await), (400, "This link has expired"));
    assert_eq!(told(&test, &test.key).await["email"], "new@example.com");
}

/// An attacker with a stolen key changes the address twice.
#[tokio::test]
async fn the_first_old_address_undoes_two_changes() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    give_address(&test.app, &user("owner"), "old@example.com").await;
    change(&test, &post, "attacker@example.com").await;
    change(&test, &post, "attacker-2@example.com").await;
    let theirs = undo_token(&post, "attacker@example.com").await;
    let token = undo_token(&post, "old@example.com").await;
    assert_eq!(page(&confirm(&test, &token).await), (200, "The change is undone"));
    assert_eq!(page(&confirm(&test, &theirs).await), (400, "This link is void"));
    assert_eq!(told(&test, &test.key).await["email"], "old@example.com");
}

#[tokio::test]
async fn first_addresses_and_those_of_operators_send_no_security_email() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    change(&test, &post, "first@example.com").await;
    give_address(&test.app, &user("owner"), "second@example.com").await;
    post.run(&test.app).await;
    assert_eq!(post.mails_to("first@example.com").await.len(), 1, "that which asked");
    // Links cannot change an operator's decision.
    change(&test, &post, "third@example.com").await;
    let token = undo_token(&post, "second@example.com").await;
    give_address(&test.app, &user("owner"), "fourth@example.com").await;
    assert_eq!(page(&confirm(&test, &token).await), (400, "This link is void"));
}

#[tokio::test]
async fn one_address_gets_five_confirmation_emails_a_day() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    post.run(&test.app).await;
    let mut keys = Vec::new();
    for number in 0..8 {
        let user = UserId::parse(&format!("user-{number}")).unwrap();
        keys.push(test.key_with(|key| ApiKeyRecord { user, ..key }).await);
    }
    // The limit ignores case.
    let victims = ["victim@example.com", "Victim@example.com", "VICTIM@EXAMPLE.COM"];
    for (number, key) in keys.iter().enumerate() {
        let body = json!({"email": victims[number % 3]});
        let reply = Call::of(SET).key(key).json(&body).send(&test.app).await;
        let waits = json!({"email": null, "pendingEmail": victims[number % 3]});
        assert_eq!((reply.status, reply.body), (200, waits), "nobody learns of the others");
    }
    let asked = async || {
        let mails = post.mails().await;
        let to_victim = mails.iter().map(|mail| mail["to"].as_str().unwrap().to_lowercase());
        to_victim.filter(|to| to == "victim@example.com").count()
    };
    for mails in 1..=5 {
        post.run(&test.app).await;
        test.pass(Duration::from_secs(599));
        post.run(&test.app).await;
        assert_eq!(asked().await, mails, "ten minutes must pass");
        test.pass(Duration::from_secs(1));
    }
    test.pass(Duration::from_hours(12));
    post.run(&test.app).await;
    assert_eq!(asked().await, 5);
    // Nothing names the address in the clear, and DynamoDB removes what is noted of it.
    let items = test.items("notifications").await;
    let pk = |item: &std::collections::HashMap<String, AttributeValue>| {
        item["pk"].as_s().unwrap().clone()
    };
    let noted: Vec<_> = items.iter().filter(|item| pk(item).starts_with("asked#")).collect();
    assert_eq!(noted.len(), 1);
    assert!(!format!("{noted:?}").to_lowercase().contains("victim"));
    assert!(noted[0].contains_key("expiresAt"));
    // 24 hours after the first.
    test.pass(Duration::from_hours(11) + Duration::from_mins(9));
    post.run(&test.app).await;
    assert_eq!(asked().await, 5);
    test.pass(Duration::from_mins(1));
    let again = Call::of(SET).key(&keys[0]).json(&json!({"email": victims[0]}));
    assert_eq!(again.send(&test.app).await.status, 200);
    post.run(&test.app).await;
    assert_eq!(asked().await, 6);
}

#[tokio::test]
async fn setting_the_same_address_again_keeps_its_link() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    set(&test, "mira@example.com").await;
    post.run(&test.app).await;
    let token = token_in(&post.mails().await[0], CONFIRM_PATH);
    test.pass(Duration::from_mins(1));
    set(&test, "mira@example.com").await;
    post.run(&test.app).await;
    assert_eq!(post.mails_to("mira@example.com").await.len(), 1);
    test.pass(Duration::from_mins(9));
    post.run(&test.app).await;
    let mails = post.mails_to("mira@example.com").await;
    assert_eq!((mails.len(), token_in(&mails[0], CONFIRM_PATH)), (2, token.clone()));
    assert_eq!(page(&confirm(&test, &token).await), (200, "Your address is confirmed"));
}

#[tokio::test]
async fn everybody_is_told_their_own_address_and_whether_it_is_confirmed() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    let nothing = json!({"email": null, "pendingEmail": null});
    assert_eq!(told(&test, &test.key).await, nothing);
    let waits = set(&test, "mira@example.com").await.body;
    assert_eq!(told(&test, &test.key).await, waits);
    assert_eq!(waits["pendingEmail"], "mira@example.com");
    post.run(&test.app).await;
    let token = token_in(&post.mails().await[0], CONFIRM_PATH);
    confirm(&test, &token).await;
    let confirmed = json!({"email": "mira@example.com", "pendingEmail": null});
    assert_eq!(told(&test, &test.key).await, confirmed);

    let of_another = |record: ApiKeyRecord| ApiKeyRecord {
        user: UserId::parse("noor@example.com").unwrap(),
        ..record
    };
    let other = test.key_with(of_another).await;
    assert_eq!(told(&test, &other).await, nothing);
}

#[tokio::test]
async fn a_newer_address_voids_older_links_and_time_all_of_them() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    give_address(&test.app, &user("owner"), "old@example.com").await;
    let mut tokens = Vec::new();
    for email in ["a@example.com", "b@example.com"] {
        set(&test, email).await;
        post.run(&test.app).await;
        tokens.push(token_in(&post.mails_to(email).await[0], CONFIRM_PATH));
    }
    assert_eq!(page(&confirm(&test, &tokens[0]).await), (400, "This link is void"));
    let waits = set(&test, "old@example.com").await.body;
    assert_eq!(waits, json!({"email": "old@example.com", "pendingEmail": null}));
    assert_eq!(page(&confirm(&test, &tokens[1]).await), (400, "This link is void"));
    set(&test, "c@example.com").await;
    post.run(&test.app).await;
    let token = token_in(&post.mails_to("c@example.com").await[0], CONFIRM_PATH);
    test.pass(Duration::from_hours(24));
    assert_eq!(page(&confirm(&test, &token).await), (400, "This link has expired"));
}

#[tokio::test]
async fn links_that_are_not_ours_lead_to_a_page_that_says_what_to_do() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    set(&test, "mira@example.com").await;
    post.run(&test.app).await;
    let token = token_in(&post.mails().await[0], CONFIRM_PATH);
    // Another stack's, one that was cut or changed, none, and one for another purpose.
    let (other, mut changed) = (TestApp::start().await, token.clone());
    changed.replace_range(0..1, if token.starts_with('A') { "B" } else { "A" });
    let refused = (400, "This link cannot be used");
    assert_eq!(page(&confirm(&other, &token).await), refused);
    for token in [&token[1..], &token[..token.len() - 1], &changed, "", "<script>"] {
        assert_eq!(page(&confirm(&test, token).await), refused, "{token}");
        for method in [Method::GET, Method::POST] {
            for operation in [CONFIRM, UNSUBSCRIBE] {
                let call = Call::of(operation).method(method.clone()).query("token", token);
                assert_eq!(page(&call.send(&test.app).await), refused, "{token}");
            }
        }
    }
    assert_eq!(page(&Call::of(CONFIRM).send(&test.app).await), refused);
    let crossed = Call::of(UNSUBSCRIBE).query("token", &token).send(&test.app).await;
    assert_eq!(page(&crossed), refused);
    assert_eq!(page(&confirm(&test, &token).await).0, 200);
}

/// Between the read of an address that need not be asked for and the end of its request, another is set.
#[tokio::test]
async fn a_request_that_comes_while_an_older_one_ends_is_not_lost() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    let name = user("owner");
    for has_one in [false, true] {
        if has_one {
            give_address(&test.app, &name, "old@example.com").await;
        }
        let read = NotificationStore::new(&test.app.store).find_address(&name).await.unwrap();
        assert!(read.pending.is_none());
        set(&test, "new@example.com").await;
        assert!(
            !NotificationStore::new(&test.app.store).forget_asking(&name, &read).await.unwrap()
        );
        post.run(&test.app).await;
        let asked = post.mails_to("new@example.com").await.len();
        assert_eq!(asked, 1 + usize::from(has_one));
        // One address is asked once in ten minutes.
        test.pass(Duration::from_mins(10));
    }
    // One that was taken back ends.
    set(&test, "old@example.com").await;
    post.run(&test.app).await;
    let items = test.items("notifications").await;
    assert!(!items.iter().any(|item| item["sk"].as_s().unwrap().starts_with("confirm#")));
}

/// Without a sender nobody can be asked. Such a request keeps no run busy for longer than it is good for.
#[tokio::test]
async fn without_a_sender_a_request_is_forgotten_in_time() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    post.run(&test.app).await;
    let nobody = Senders::default();
    let waits = set(&test, "mira@example.com").await.body;
    test.pass(Duration::from_hours(23));
    run(&test.app, &nobody, Duration::ZERO).await;
    assert_eq!(told(&test, &test.key).await, waits, "somebody may still set a sender");
    test.pass(Duration::from_hours(1));
    run(&test.app, &nobody, Duration::ZERO).await;
    let nothing = json!({"email": null, "pendingEmail": null});
    assert_eq!(told(&test, &test.key).await, nothing);
    test.round_trips();
    run(&test.app, &nobody, Duration::ZERO).await;
    assert_eq!(test.round_trips(), 8, "a run that finds nothing");
    // Nobody is asked for it any more.
    post.run(&test.app).await;
    assert!(post.mails().await.is_empty());
}

#[tokio::test]
async fn what_is_no_address_is_refused_at_its_place() {
    let test = TestApp::start().await;
    for (body, place, code) in [
        (json!({}), "/email", "required"),
        (json!({"email": null}), "/email", "required"),
        (json!({"email": 1}), "/email", "invalid_type"),
        (json!({"email": "mira"}), "/email", "invalid_format"),
        (json!({"email": "a@b.de\r\nBcc: c@d.de"}), "/email", "invalid_format"),
        (json!({"email": "a..b@c.de"}), "/email", "invalid_format"),
        (json!({"email": "a@b..c.de"}), "/email", "invalid_format"),
        (json!({"email": "a@b-.c.de"}), "/email", "invalid_format"),
        (json!({"email": format!("a@{}.de", "b".repeat(64))}), "/email", "invalid_format"),
        (json!({"email": format!("{}@b.de", "a".repeat(65))}), "/email", "invalid_format"),
        (json!({"email": "a@b.de", "user": "ada"}), "/user", "unknown_field"),
    ] {
        let reply = Call::of(SET).key(&test.key).json(&body).send(&test.app).await;
        assert_eq!(reply.problem(), (400, "validation_failed"), "{body}");
        assert_eq!(reply.violations(), [(place, code)], "{body}");
    }
}

#[tokio::test]
async fn an_address_of_any_alphabet_is_taken_in_its_ascii_form() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    let email = "user@xn--e1afmkfd.xn--p1ai";
    let reply = set(&test, email).await;
    assert_eq!((reply.status, &reply.body["pendingEmail"]), (200, &json!(email)));
    post.run(&test.app).await;
    assert_eq!(post.mails_to(email).await.len(), 1);
}

/// The rule was wider once.
#[tokio::test]
async fn an_address_that_would_not_be_taken_any_more_is_still_told_and_can_be_replaced() {
    let test = TestApp::start().await;
    set(&test, "a@b.de").await;
    let place = [("pk", "addresses#default"), ("sk", "owner")];
    let old = AttributeValue::S("a..b@c.de".to_owned());
    test.tamper("notifications", place, "pendingEmail", old).await;
    assert_eq!(told(&test, &test.key).await["pendingEmail"], "a..b@c.de");
    assert_eq!(set(&test, "a@b.de").await.status, 200);
    assert_eq!(told(&test, &test.key).await["pendingEmail"], "a@b.de");
}

#[tokio::test]
async fn nobody_learns_whether_somebody_else_has_an_address() {
    let test = TestApp::start().await;
    give_address(&test.app, &user("ada"), "taken@example.com").await;
    let [taken, free] = ["taken@example.com", "free@example.com"];
    let (taken, free) = (set(&test, taken).await, set(&test, free).await);
    assert_eq!(taken.status, free.status);
    let same = taken.body.to_string().replace("taken", "free");
    assert_eq!(same, free.body.to_string());
}

#[tokio::test]
async fn a_user_has_five_mails_an_hour_sent_to_addresses_that_nobody_confirmed() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    for number in 0..7 {
        set(&test, &format!("victim{number}@example.com")).await;
        post.run(&test.app).await;
        test.pass(Duration::from_mins(1));
    }
    assert_eq!(post.mails().await.len(), 5);
    test.pass(Duration::from_mins(54));
    post.run(&test.app).await;
    // Only the latest address is asked, once there is room.
    let mails = post.mails().await;
    assert_eq!((mails.len(), &mails[0]["to"]), (6, &json!("victim6@example.com")));
}

#[tokio::test]
async fn a_link_in_a_mail_switches_one_type_off_for_its_user() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    let ada =
        test.key_with(|key| ApiKeyRecord { user: UserId::parse("ada").unwrap(), ..key }).await;
    give_address(&test.app, &user("ada"), "ada@example.com").await;
    post.run(&test.app).await;
    let [mail] = &post.mails().await[..] else { panic!("one mail, of the new key") };
    let token = token_in(mail, UNSUBSCRIBE_PATH);
    let header = mail["headers"]["List-Unsubscribe"].as_str().unwrap();
    assert!(header.contains(&token), "{header}");
    assert_eq!(mail["headers"]["List-Unsubscribe-Post"], "List-Unsubscribe=One-Click");

    let preferences = async |key: &str| Call::of(PREFERENCES).key(key).send(&test.app).await.body;
    let before = preferences(&ada).await;
    let call = Call::of(UNSUBSCRIBE).query("token", &token);
    for gateway in [Gateway::HttpApi, Gateway::RestApi] {
        let asked = call.clone().method(Method::GET).gateway(gateway).send(&test.app).await;
        assert_eq!(page(&asked), (200, "Stop these mails?"));
        assert_eq!(preferences(&ada).await, before, "looking changes nothing");
    }
    let post_of_program = call
        .header("content-type", "application/x-www-form-urlencoded")
        .bytes("List-Unsubscribe=One-Click");
    for _ in 0..2 {
        let done = post_of_program.clone().send(&test.app).await;
        assert_eq!(page(&done), (200, "These mails have stopped"));
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

/// SES, which takes each mail, while somebody sets yet another address.
struct Overtaken {
    app: App,
    mails: AtomicU32,
}

impl Proxy for Overtaken {
    async fn answer(&self, _: Request) -> ProxyResponse {
        let number = self.mails.fetch_add(1, Ordering::Relaxed);
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
async fn however_often_an_address_is_set_meanwhile_five_mails_an_hour_ask() {
    let test = TestApp::start().await;
    assert_eq!(set(&test, "victim@example.com").await.status, 200);
    let (app, mails) = (test.app_at(clock_at(test.app.clock.now())), AtomicU32::new(0));
    let overtaken = Arc::new(Overtaken { app, mails });
    let url = proxy::serve(Arc::clone(&overtaken)).await;
    let senders = Senders { publisher: None, ..senders(&url, &url) };
    for _ in 0..10 {
        run(&test.app, &senders, Duration::ZERO).await;
        test.pass(Duration::from_secs(30));
    }
    assert_eq!(overtaken.mails.load(Ordering::Relaxed), 5);
    test.pass(Duration::from_hours(1));
    run(&test.app, &senders, Duration::ZERO).await;
    assert!(overtaken.mails.load(Ordering::Relaxed) > 5, "there is room again");
}
