//! The real protocols, against a stand-in for AWS that others wrote: moto (`make test` installs it).

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use shared::projects::api_key::{ApiKeyRecord, UserId};
use tests::app::TestApp;
use tests::notifications::{give_address, outside, run, user};
use tests::workspace;

/// A server of moto, which ends with the test.
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

    /// Has it know an identity that mails may be from.
    async fn verify(&self, email: &str) {
        let scope = "local/20261121/eu-central-1/ses/aws4_request";
        let signature = "SignedHeaders=host, Signature=0";
        let request = reqwest::Client::new()
            .post(format!("{}/v2/email/identities", self.url))
            .header("authorization", format!("AWS4-HMAC-SHA256 Credential={scope}, {signature}"))
            .json(&json!({"EmailIdentity": email}));
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn ses_and_event_bridge_take_what_is_sent() {
    let (test, moto) = (TestApp::start().await, Moto::start().await);
    moto.verify("waymark@example.com").await;
    give_address(&test.app, &user("ada"), "ada@example.com").await;
    test.key_with(|key| ApiKeyRecord { user: UserId::parse("ada").unwrap(), ..key }).await;

    let outside = outside(&moto.url, &moto.url);
    run(&test.app, &outside, Duration::ZERO).await;

    let data = reqwest::get(format!("{}/moto-api/data.json", moto.url)).await.unwrap();
    let data = data.text().await.unwrap();
    assert!(data.contains("ada@example.com"), "{}", &data[..data.len().min(2_000)]);
    let left = test.items("notifications").await;
    let events = left.iter().filter(|item| item["sk"].as_s().unwrap().starts_with("events#"));
    assert_eq!(events.count(), 0, "EventBridge has all of them");
}
