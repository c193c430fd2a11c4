//! Mails of the local stack, under `/mail`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::stack::{Stack, send};

/// How long whoever tries it out waits for a mail at most.
const SOON: Duration = Duration::from_secs(15);

async fn mails(stack: &Stack) -> Vec<Value> {
    // The mailbox serves no pages of other origins.
    let list = reqwest::Client::new().get(format!("{}/mail", stack.base_url));
    list.header("accept", "application/json").send().await.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn whoever_sets_an_address_finds_the_mail_that_asks_within_fifteen_seconds() {
    let stack = Stack::start().await;
    // Functions are built and started with their first request.
    assert_eq!(stack.run_job("send-notifications").await.status(), 200);
    let set = async {
        let url = format!("{}/v0/notifications/email-address", stack.base_url);
        let set = stack.http.put(url).header("x-api-key", &stack.key);
        let reply =
            send("set-email-address", set.json(&json!({"email": "mira@example.com"}))).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let begun = Instant::now();
        loop {
            if let [mail] = &mails(&stack).await[..] {
                return mail.clone();
            }
            assert!(begun.elapsed() < SOON, "{}", stack.log());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let mail = tokio::select! {
        mail = set => mail,
        () = stack.run_schedules() => unreachable!("schedules have no end"),
    };
    assert_eq!(mail["to"], "mira@example.com");
    // The link leads to the stack itself.
    let text = mail["text"].as_str().unwrap();
    let link = text.split_whitespace().find(|word| word.contains("/v0/notifications/confirm?"));
    let link = link.unwrap();
    assert!(link.starts_with(&stack.base_url), "{link}");
    for page in [stack.http.get(link), stack.http.post(link)] {
        assert_eq!(page.send().await.unwrap().status(), 200);
    }
    let shown = stack.http.get(format!("{}/v0/notifications/email-address", stack.base_url));
    let shown = send("get-email-address", shown.header("x-api-key", &stack.key)).await;
    assert_eq!(shown.body, json!({"email": "mira@example.com", "pendingEmail": null}));
}
