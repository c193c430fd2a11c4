//! Notifications: the local stack's stand-ins for SES and EventBridge, and runs of send-notifications.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use aws_sdk_dynamodb::config::Region;
use serde_json::Value;

use local::environment;
use local::gateway::{EVENT_BRIDGE_PATH, Gateway, GatewayOptions, SES_PATH};
use notifications::address::EmailAddress;
use notifications::store::{NotificationStore, UserName};
use send_notifications::senders::{Mailer, Publisher, Senders};
use shared::app::{App, Deadline};
use shared::dynamodb::client::endpoint_config;
use shared::projects::api_key::UserId;
use shared::projects::project::Organization;

use crate::permissions;

/// Where links in mails lead.
pub const PUBLIC_URL: &str = "https://api.example.com";

/// Whom mails are from.
const SENDER: &str = "waymark@example.com";

/// What was sent, and where to.
pub struct SentMessages {
    /// What runs send with.
    pub senders: Senders,
    url: String,
    _gateway: Gateway,
}

impl SentMessages {
    /// Starts the stand-ins.
    pub fn open() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it has an address"));
        let gateway = Gateway::start(
            listener,
            GatewayOptions {
                workspace: &crate::workspace(),
                functions: "http://127.0.0.1:9".to_owned(),
                patience: Duration::from_secs(1),
                report: Box::new(|_| ()),
            },
        );
        let senders = senders(&format!("{url}{SES_PATH}"), &format!("{url}{EVENT_BRIDGE_PATH}"));
        Self { senders, url, _gateway: gateway.expect("it starts") }
    }

    /// All mails, the latest first.
    pub async fn mails(&self) -> Vec<Value> {
        self.list("/mail").await
    }

    /// The mails to an address, the latest first.
    pub async fn mails_to(&self, email: &str) -> Vec<Value> {
        self.mails().await.into_iter().filter(|mail| mail["to"] == email).collect()
    }

    /// All events, the latest first.
    pub async fn events(&self) -> Vec<Value> {
        self.list("/mail/events").await
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        let request = reqwest::Client::new().get(format!("{}{path}", self.url));
        let answer = request.header("accept", "application/json").send().await;
        answer.expect("it answers").json().await.expect("it is a list")
    }

    /// Lets send-notifications run once.
    pub async fn run(&self, app: &App) {
        run(app, &self.senders, Duration::ZERO).await;
    }

    /// The variables by which a process of send-notifications finds the stand-ins.
    pub fn variables(&self) -> [(&'static str, String); 5] {
        environment::outside(&self.url)
    }
}

/// What sends mails and events to two endpoints.
pub fn senders(ses: &str, event_bridge: &str) -> Senders {
    // What others wrote knows regions of AWS alone.
    let config = |endpoint| {
        let config = endpoint_config(endpoint).expect("a client is made");
        config.into_builder().region(Region::from_static("eu-central-1")).build()
    };
    Senders {
        mailer: Some(Mailer::new(&config(ses), SENDER, PUBLIC_URL)),
        publisher: Some(Publisher::new(&config(event_bridge), "default")),
    }
}

/// Lets send-notifications run once, with such a pause at least before it looks again.
pub async fn run(app: &App, senders: &Senders, least_pause: Duration) {
    let deadline = Deadline::after(Duration::from_mins(1));
    let run = Box::pin(send_notifications::run(app, senders, least_pause, deadline));
    permissions::checked(send_notifications::JOB.name, run).await.expect("all could be sent");
}

/// Lets announce-trends run once.
pub async fn announce_trends(app: &App) {
    let deadline = Deadline::after(Duration::from_mins(1));
    let run = Box::pin(announce_trends::run(app, deadline));
    permissions::checked(announce_trends::JOB.name, run).await.expect("all could be looked at");
}

/// A user of the default organization.
pub fn user(name: &str) -> UserName {
    let organization = Organization::parse("default").expect("it is a name");
    UserName { organization, user: UserId::parse(name).expect("it is a name") }
}

/// Gives a user an address that is confirmed.
pub async fn give_address(app: &App, name: &UserName, email: &str) {
    let mut address =
        NotificationStore::new(&app.store).find_address(name).await.expect("it can be read");
    address.set_confirmed(EmailAddress::parse(email).expect("it is an address"));
    assert!(
        NotificationStore::new(&app.store)
            .replace_address(name, &address, false)
            .await
            .expect("it can be written")
    );
}

/// The token in the first link of a mail that leads to a path.
pub fn token_in(mail: &Value, path: &str) -> String {
    let text = mail["text"].as_str().expect("a mail has text");
    let start = format!("{PUBLIC_URL}{path}?token=");
    let rest = text.split_once(&start).expect("the mail has the link").1;
    rest.split_whitespace().next().expect("the link has a token").to_owned()
}
