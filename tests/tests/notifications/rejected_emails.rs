//! Emails that SES rejects permanently, or until an identity is verified.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use notifications::address::Rejection;
use notifications::domain_event::{DomainEvent, DomainEventKind, Visibility};
use notifications::store::NotificationStore;
use send_notifications::senders::Senders;
use send_notifications::{Outcome, send};
use shared::app::Deadline;
use tests::app::TestApp;
use tests::call::Call;
use tests::notifications::{give_address, senders, user};
use tests::proxy::{self, Proxy, ProxyResponse};
use tests::wire::Request;

use super::actions::unreachable_senders;

/// The start of SES's message about unverified identities.
const NOT_VERIFIED: &str = "Email address is not verified. The following identities failed the check in region \
                            EU-CENTRAL-1: ";

/// A fake SES that can reject all emails with a code and a message.
#[derive(Default)]
struct RejectingSes {
    rejection: Mutex<Option<(&'static str, String)>>,
    accepted: Mutex<Vec<String>>,
}

impl RejectingSes {
    fn reject(&self, code: &'static str, message: &str) {
        *self.rejection.lock().unwrap() = Some((code, message.to_owned()));
    }

    fn accept(&self) {
        *self.rejection.lock().unwrap() = None;
    }

    fn accepted(&self) -> Vec<String> {
        self.accepted.lock().unwrap().clone()
    }
}

impl Proxy for RejectingSes {
    async fn respond(&self, request: Request) -> ProxyResponse {
        if let Some((code, message)) = &*self.rejection.lock().unwrap() {
            return (400, json!({"__type": code, "message": message}).to_string().into_bytes());
        }
        let mail: Value = serde_json::from_slice(&request.body).unwrap();
        let to = mail["Destination"]["ToAddresses"][0].as_str().unwrap().to_owned();
        self.accepted.lock().unwrap().push(to);
        (200, json!({"MessageId": "1"}).to_string().into_bytes())
    }
}

struct Scenario {
    test: TestApp,
    ses: Arc<RejectingSes>,
    senders: Senders,
}

async fn start() -> Scenario {
    let (test, ses) = (TestApp::start().await, Arc::new(RejectingSes::default()));
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
async fn confirmations_wait_for_verified_identities() {
    let scenario = start().await;
    scenario.set("mira@example.com").await;
    for (identity, cause) in [
        ("waymark@example.com", "the identity of MailFrom is not verified"),
        ("mira@example.com", "the recipient is not verified, which SES requires in its sandbox"),
    ] {
        scenario.ses.reject("MessageRejected", &format!("{NOT_VERIFIED}{identity}"));
        for _ in 0..6 {
            let outcome = scenario.run().await;
            let failure = outcome.failure.unwrap().to_string();
            assert_eq!(failure, format!("SES: MessageRejected: {cause}"));
            assert_eq!(outcome.rejected_emails, 0);
            assert_eq!(scenario.pending().await.as_deref(), Some("mira@example.com"));
            scenario.test.pass(Duration::from_mins(1));
        }
    }
    // Failed attempts do not count toward the limits.
    scenario.ses.accept();
    assert!(scenario.run().await.failure.is_none());
    assert_eq!(scenario.ses.accepted(), ["mira@example.com"]);
}

#[tokio::test]
async fn rejected_pending_addresses_are_dropped() {
    for (code, message) in [
        ("BadRequestException", "Domain contains illegal character"),
        ("MessageRejected", "Transaction failed: Address length is more than 320 characters long"),
    ] {
        let scenario = start().await;
        scenario.set("mira@example.com").await;
        scenario.ses.reject(code, message);
        let outcome = scenario.run().await;
        assert_eq!((outcome.rejected_emails, outcome.failure.is_none()), (1, true), "{code}");
        assert_eq!(scenario.pending().await, None);
        let address = NotificationStore::new(&scenario.test.app.store)
            .find_address(&user("owner"))
            .await
            .unwrap();
        assert_eq!(address.rejection.map(|it| it.reason).as_deref(), Some(code));
    }
}

#[tokio::test]
async fn permanently_rejected_emails_are_recorded_and_not_retried() {
    let scenario = start().await;
    let (test, name) = (&scenario.test, user("ada"));
    give_address(&test.app, &name, "ada@example.com").await;
    let mut address = NotificationStore::new(&test.app.store).find_address(&name).await.unwrap();
    address.delayed_emails = 3;
    assert!(
        NotificationStore::new(&test.app.store)
            .replace_address(&name, &address, false)
            .await
            .unwrap()
    );
    test.key_of("ada").await;
    let (visibility, now) = (Visibility::Project(test.project_id), test.app.clock.now());
    let week =
        DomainEvent::new(DomainEventKind::WeekEnded, visibility, "overview", "5 events", now);
    assert!(NotificationStore::new(&test.app.store).announce_once(&[week], 1).await.unwrap());

    scenario.ses.reject("MessageRejected", "Address blacklisted.");
    let outcome = scenario.run().await;
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    assert_eq!(outcome.rejected_emails, 2, "the key and the digest");
    let address = NotificationStore::new(&test.app.store).find_address(&name).await.unwrap();
    assert_eq!(
        address.rejection,
        Some(Rejection { at: now, reason: "MessageRejected".to_owned() })
    );
    assert_eq!(address.delayed_emails, 3, "the digest was not sent");

    scenario.ses.accept();
    for _ in 0..3 {
        let outcome = scenario.run().await;
        assert_eq!((outcome.rejected_emails, outcome.oldest_waiting), (0, Duration::ZERO));
        test.pass(Duration::from_mins(11));
    }
    assert_eq!(scenario.ses.accepted(), [""; 0], "rejected emails are not retried");
    test.key_of("ada").await;
    scenario.run().await;
    assert_eq!(scenario.ses.accepted(), ["ada@example.com"], "later emails are sent");
}

#[tokio::test]
async fn failures_name_the_failed_service() {
    let mut scenario = start().await;
    let name = user("ada");
    give_address(&scenario.test.app, &name, "ada@example.com").await;
    scenario.test.key_of("ada").await;
    scenario.ses.reject("AccountSuspendedException", "ada@example.com");
    let failure = scenario.run().await.failure.unwrap().to_string();
    assert_eq!(failure, "SES: AccountSuspendedException");
    scenario.ses.accept();
    scenario.senders.publisher = unreachable_senders().publisher;
    scenario.test.key_of("ada").await;
    let failure = scenario.run().await.failure.unwrap().to_string();
    assert_eq!(failure, "EventBridge: no response");
}
