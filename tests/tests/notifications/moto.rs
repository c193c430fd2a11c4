//! The protocols of SES and EventBridge, tested with moto (`make test` installs it).

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use notifications::store::NotificationStore;
use shared::app::Deadline;
use tests::app::{TestApp, key_id};
use tests::notifications::{PUBLIC_URL, give_address, run, senders, user};
use tests::workspace;

/// A moto server that stops with the test.
struct Moto {
    child: Child,
    url: String,
}

impl Moto {
    async fn start() -> Self {
        let port = {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap().port()
        };
        let server = workspace().join(".venv/moto/bin/moto_server");
        assert!(server.exists(), "moto is not installed; make test-tools");
        let child = Command::new(server)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let moto = Self { child, url: format!("http://127.0.0.1:{port}") };
        for _ in 0..200 {
            if reqwest::get(format!("{}/moto-api/data.json", moto.url)).await.is_ok() {
                return moto;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("moto does not start");
    }

    /// Sends a request like an AWS SDK.
    async fn call(&self, service: &str, path: &str, target: Option<&str>, body: Value) -> Value {
        let scope = format!("local/20261121/eu-central-1/{service}/aws4_request");
        let signature = "SignedHeaders=host, Signature=0";
        let mut request = reqwest::Client::new()
            .post(format!("{}{path}", self.url))
            .header("authorization", format!("AWS4-HMAC-SHA256 Credential={scope}, {signature}"))
            .body(body.to_string());
        request = match target {
            Some(target) => request
                .header("content-type", "application/x-amz-json-1.0")
                .header("x-amz-target", target),
            None => request.header("content-type", "application/json"),
        };
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{path} {target:?}");
        let text = response.text().await.unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Verifies a sender identity.
    async fn verify(&self, email: &str) {
        self.call("ses", "/v2/email/identities", None, json!({"EmailIdentity": email})).await;
    }

    /// Routes all events of a source to a queue.
    async fn queue_events(&self, source: &str) {
        let (sqs, events) = ("AmazonSQS.", "AWSEvents.");
        let call = async |service: &str, name: String, body| {
            self.call(service, "/", Some(&name), body).await;
        };
        call("sqs", format!("{sqs}CreateQueue"), json!({"QueueName": "told"})).await;
        let pattern = json!({"source": [source]}).to_string();
        let rule = json!({"Name": "all", "EventPattern": pattern});
        call("events", format!("{events}PutRule"), rule).await;
        let target = json!({"Id": "queue", "Arn": "arn:aws:sqs:eu-central-1:123456789012:told"});
        let targets = json!({"Rule": "all", "Targets": [target]});
        call("events", format!("{events}PutTargets"), targets).await;
    }

    /// Returns the events in the queue.
    async fn events(&self) -> Vec<Value> {
        let queue = format!("{}/123456789012/told", self.url);
        let mut events = Vec::new();
        loop {
            let body = json!({"QueueUrl": queue, "MaxNumberOfMessages": 10});
            let response = self.call("sqs", "/", Some("AmazonSQS.ReceiveMessage"), body).await;
            let Some(messages) = response["Messages"].as_array() else { return events };
            let bodies = messages.iter().map(|message| message["Body"].as_str().unwrap());
            events.extend(bodies.map(|body| serde_json::from_str::<Value>(body).unwrap()));
        }
    }

    /// Returns the accepted emails.
    async fn emails(&self) -> Vec<Value> {
        let data = reqwest::get(format!("{}/moto-api/data.json", self.url)).await.unwrap();
        let data: Value = serde_json::from_str(&data.text().await.unwrap()).unwrap();
        data["ses"]["Message"].as_array().unwrap().clone()
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn ses_and_event_bridge_accept_messages() {
    let (test, moto) = (TestApp::start().await, Moto::start().await);
    moto.verify("waymark@example.com").await;
    moto.queue_events("waymark").await;
    give_address(&test.app, &user("ada"), "ada@example.com").await;
    let key = test.key_of("ada").await;

    let senders = senders(&moto.url, &moto.url);
    run(&test.app, &senders, Duration::ZERO).await;

    let [mail] = &moto.emails().await[..] else { panic!("expected one email") };
    assert_eq!(mail["destinations"], json!({"ToAddresses": ["ada@example.com"]}));
    assert_eq!(mail["source"], "waymark@example.com");
    let key = key_id(&key);
    let subject = mail["subject"].as_str().unwrap();
    assert!(subject.starts_with("New API key: "), "{subject}");
    // Moto keeps only the HTML body.
    let html = mail["body"].as_str().unwrap();
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"), "{html}");
    let unsubscribe = format!("href=\"{PUBLIC_URL}/v0/notifications/unsubscribe?token=");
    assert!(html.contains(&unsubscribe) && html.contains(key.as_str()), "{html}");

    let events = moto.events().await;
    let mut details = events.iter().map(|event| &event["detail"]);
    assert!(events.iter().all(|it| it["source"] == "waymark"), "{events:?}");
    assert!(events.iter().all(|it| it["detail-type"] == "api-key.created"), "{events:?}");
    assert_eq!(events.len(), 2, "the test key and ada's key");
    let ada_detail = details.find(|detail| detail["user"] == "ada").unwrap();
    assert_eq!(ada_detail["keyId"], key.as_str());
    assert_eq!(ada_detail["organization"], "default");
    let items = test.items("notifications").await;
    let batches = items.iter().filter(|item| item["sk"].as_s().unwrap().starts_with("events#"));
    assert_eq!(batches.count(), 0);
}

/// Emails wait until SES has verified the sender's identity.
#[tokio::test]
async fn emails_wait_for_a_verified_sender() {
    let (test, moto) = (TestApp::start().await, Moto::start().await);
    let name = user("ada");
    give_address(&test.app, &name, "ada@example.com").await;
    test.key_of("ada").await;
    let senders = senders(&moto.url, &moto.url);
    let run = async || {
        let deadline = Deadline::after(Duration::from_mins(1));
        let run = send_notifications::send(&test.app, &senders, Duration::ZERO, deadline);
        Box::pin(run).await.unwrap()
    };
    for _ in 0..2 {
        let outcome = run().await;
        let failure = outcome.failure.unwrap().to_string();
        let unverified = "SES: MessageRejected: the identity of MailFrom is not verified";
        assert_eq!((failure.as_str(), outcome.rejected_emails), (unverified, 0));
        test.pass(Duration::from_mins(11));
    }
    assert_eq!(
        NotificationStore::new(&test.app.store).find_address(&name).await.unwrap().rejection,
        None
    );
    moto.verify("waymark@example.com").await;
    assert!(run().await.failure.is_none());
    assert_eq!(moto.emails().await.len(), 1);
}
