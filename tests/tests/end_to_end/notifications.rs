//! Emails of the local stack, under `/mail`.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tests::stack::{Stack, send};

/// Maximum delay of an email. A job sends it every few seconds, but a busy machine can be slow.
const MAX_DELAY: Duration = Duration::from_mins(1);

/// The path of the caller's address.
const ADDRESS: &str = "/v0/notifications/email-address";

async fn emails(stack: &Stack) -> Vec<Value> {
    // Pages of other origins cannot read the mailbox.
    let list = reqwest::Client::new().get(format!("{}/mail", stack.base_url));
    list.header("accept", "application/json").send().await.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn confirmation_emails_arrive_in_the_mailbox() {
    let stack = Stack::start().await;
    // The first request builds and starts a function.
    assert_eq!(stack.run_job("send-notifications").await.status(), 200);
    let set = async {
        let set = stack.with_key(Method::PUT, ADDRESS);
        let reply =
            send("set-email-address", set.json(&json!({"email": "mira@example.com"}))).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let begun = Instant::now();
        loop {
            if let [email] = &emails(&stack).await[..] {
                return email.clone();
            }
            assert!(begun.elapsed() < MAX_DELAY, "{}", stack.log());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let email = tokio::select! {
        email = set => email,
        () = stack.run_schedules() => unreachable!("schedules have no end"),
    };
    assert_eq!(email["to"], "mira@example.com");
    // The link points to the stack itself.
    let text = email["text"].as_str().unwrap();
    let link = text.split_whitespace().find(|word| word.contains("/v0/notifications/confirm?"));
    let link = link.unwrap();
    assert!(link.starts_with(&stack.base_url), "{link}");
    for page in [stack.http.get(link), stack.http.post(link)] {
        assert_eq!(page.send().await.unwrap().status(), 200);
    }
    let shown = send("get-email-address", stack.with_key(Method::GET, ADDRESS)).await;
    assert_eq!(shown.body, json!({"email": "mira@example.com", "pendingEmail": null}));
}
