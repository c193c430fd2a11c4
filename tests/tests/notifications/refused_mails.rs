//! Emails that SES rejects permanently, or until an identity is verified.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use notifications::address::Refusal;
use notifications::domain_event::{DomainEvent, DomainEventKind, Visibility};
use notifications::store::NotificationStore;
use send_notifications::senders::Senders;
use send_notifications::{Outcome, send};
use shared::app::Deadline;
use shared::projects::api_key::ApiKeyRecord;
use tests::app::TestApp;
use tests::call::Call;
use tests::notifications::{give_address, senders, user};
use tests::proxy::{self, Proxy, ProxyResponse};
use tests::wire::Request;

use super::actions::nowhere;

/// The message with which SES names identities that it has not verified.
const NOT_VERIFIED: &str = "Email address is not verified. The following identities failed the check in region \
                            EU-CENTRAL-1: ";

/// SES, which rejects all emails with a code and a message while it has one.
#[derive(Default)]
struct Refusing {
    answer: Mutex<Option<(&'static str, String)>>,
    taken: Mutex<Vec<String>>,
}

impl Refusing {
    fn refuse(&self, code: &'static str, message: &str) {
        *self.answer.lock().unwrap() = Some((code, message.to_owned()));
    }

    fn take(&self) {
        *self.answer.lock().unwrap() = None;
    }

    fn taken(&self) -> Vec<String> {
        self.taken.lock().unwrap().clone()
    }
}

impl Proxy for Refusing {
    async fn answer(&self, request: Request) -> ProxyResponse {
        if let Some((code, message)) = &*self.answer.lock().unwrap() {
            return (400, json!({"__type": code, "message": message}).to_string().into_bytes());
        }
        let mail: Value = serde_json::from_slice(&request.body).unwrap();
        let to = mail["Destination"]["ToAddresses"][0].as_str().unwrap().to_owned();
        self.taken.lock().unwrap().push(to);
        (200, json!({"MessageId": "1"}).to_string().into_bytes())
    }
}

struct Scenario {
    test: TestApp,
    ses: Arc<Refusing>,
    senders: Senders,
}

async fn start() -> Scenario {
    let (test, ses) = (TestApp::start().await, Arc::new(Refusing::default()));
    let url = proxy::serve(Arc::clone(&ses)).await;
    let senders = Senders { publisher: None, ..senders(&url, &url) };
    Scenario { test, ses, senders }
}

impl Scenario {
    async fn run(&self) -> Outcome {
        let deadline = Deadline::after(Duration::from_mins(1));
        send(&self.test.app, &self.senders, Duration::ZERO, deadline).await.unwrap()
    }

    async fn set(&self, email: &str) {
        let set = Call::of(&set_email_address::OPERATION).key(&self.test.key);
        let reply = set.json(&json!({ "email": email })).send(&self.test.app).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
    }

    async fn pending(&self) -> Option<String> {
        let address = NotificationStore::new(&self.test.app.store)
            .find_address(&user("owner"))
            .await
            .unwrap();
        address.pending.map(|pending| pending.email.as_str().to_owned())
    }
}

#[tokio::test]
async fn confirmations_wait_while_an_identity_is_not_verified() {
    let scenario = start().await;
    scenario.set("mira@example.com").await;
    for (identity, cause) in [
        ("waymark@example.com", "the identity of MailFrom is not verified"),
        ("mira@example.com", "the recipient is not verified, which SES requires in its sandbox"),
    ] {
        scenario.ses.refuse("MessageRejected", &format!("{NOT_VERIFIED}{identity}"));
        for _ in 0..6 {
            let outcome = scenario.run().await;
            let failure = outcome.failure.unwrap().to_string();
            assert_eq!(failure, format!("SES: MessageRejected: {cause}"));
            assert_eq!(outcome.refused_mails, 0);
            assert_eq!(scenario.pending().await.as_deref(), Some("mira@example.com"));
            scenario.test.pass(Duration::from_mins(1));
        }
    }
    // None of the attempts counts.
    scenario.ses.take();
    assert!(scenario.run().await.failure.is_none());
    assert_eq!(scenario.ses.taken(), ["mira@example.com"]);
}

#[tokio::test]
async fn a_pending_address_that_ses_refuses_is_dropped() {
    for (code, message) in [
        ("BadRequestException", "Domain contains illegal character"),
        ("MessageRejected", "Transaction failed: Address length is more than 320 characters long"),
    ] {
        let scenario = start().await;
        scenario.set("mira@example.com").await;
        scenario.ses.refuse(code, message);
        let outcome = scenario.run().await;
        assert_eq!((outcome.refused_mails, outcome.failure.is_none()), (1, true), "{code}");
        assert_eq!(scenario.pending().await, None);
        let known = NotificationStore::new(&scenario.test.app.store)
            .find_address(&user("owner"))
            .await
            .unwrap();
        assert_eq!(known.refusal.map(|it| it.reason).as_deref(), Some(code));
    }
}

#[tokio::test]
async fn permanently_rejected_emails_are_recorded_and_not_retried() {
    let scenario = start().await;
    let (test, name) = (&scenario.test, user("ada"));
    give_address(&test.app, &name, "ada@example.com").await;
    let mut address = NotificationStore::new(&test.app.store).find_address(&name).await.unwrap();
    address.held_back = 3;
    assert!(
        NotificationStore::new(&test.app.store)
            .replace_address(&name, &address, false)
            .await
            .unwrap()
    );
    test.key_with(|key| ApiKeyRecord { user: name.user.clone(), ..key }).await;
    let (scene, now) = (Visibility::Project(test.project_id), test.app.clock.now());
    let week = DomainEvent::new(DomainEventKind::WeekEnded, scene, "overview", "5 events", now);
    assert!(NotificationStore::new(&test.app.store).announce_once(&[week], 1).await.unwrap());

    scenario.ses.refuse("MessageRejected", "Address blacklisted.");
    let outcome = scenario.run().await;
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    assert_eq!(outcome.refused_mails, 2, "of the key, and of the week");
    let known = NotificationStore::new(&test.app.store).find_address(&name).await.unwrap();
    assert_eq!(known.refusal, Some(Refusal { at: now, reason: "MessageRejected".to_owned() }));
    assert_eq!(known.held_back, 3, "no digest told of it");

    scenario.ses.take();
    for _ in 0..3 {
        let outcome = scenario.run().await;
        assert_eq!((outcome.refused_mails, outcome.oldest_waiting), (0, Duration::ZERO));
        test.pass(Duration::from_mins(11));
    }
    assert_eq!(scenario.ses.taken(), [""; 0], "nothing of it is sent once more");
    test.key_with(|key| ApiKeyRecord { user: name.user.clone(), ..key }).await;
    scenario.run().await;
    assert_eq!(scenario.ses.taken(), ["ada@example.com"], "what comes after that is");
}

#[tokio::test]
async fn a_failure_names_the_service_that_failed() {
    let mut scenario = start().await;
    let name = user("ada");
    give_address(&scenario.test.app, &name, "ada@example.com").await;
    scenario.test.key_with(|key| ApiKeyRecord { user: name.user.clone(), ..key }).await;
    scenario.ses.refuse("AccountSuspendedException", "ada@example.com");
    let failure = scenario.run().await.failure.unwrap().to_string();
    assert_eq!(failure, "SES: AccountSuspendedException");
    scenario.ses.take();
    scenario.senders.publisher = nowhere().publisher;
    scenario.test.key_with(|key| ApiKeyRecord { user: name.user.clone(), ..key }).await;
    let failure = scenario.run().await.failure.unwrap().to_string();
    assert_eq!(failure, "EventBridge: no answer");
}
