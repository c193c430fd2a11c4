//! Notifications: the local stack's fake SES and EventBridge, and invocations of the jobs.

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

/// The URL with which links in emails start.
pub const PUBLIC_URL: &str = "https://api.example.com";

/// The sender address of emails.
const SENDER: &str = "waymark@example.com";

/// Fake SES and EventBridge, with the messages that they received.
pub struct SentMessages {
    /// Senders for these fakes.
    pub senders: Senders,
    url: String,
    _gateway: Gateway,
}

impl SentMessages {
    /// Starts the fakes.
    pub fn open() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("a local address"));
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
        Self { senders, url, _gateway: gateway.expect("a running gateway") }
    }

    /// Returns all emails, latest first.
    pub async fn emails(&self) -> Vec<Value> {
        self.list("/mail").await
    }

    /// Returns the emails to an address, latest first.
    pub async fn emails_to(&self, email: &str) -> Vec<Value> {
        self.emails().await.into_iter().filter(|mail| mail["to"] == email).collect()
    }

    /// Returns all events, latest first.
    pub async fn events(&self) -> Vec<Value> {
        self.list("/mail/events").await
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        let request = reqwest::Client::new().get(format!("{}{path}", self.url));
        let response = request.header("accept", "application/json").send().await;
        response.expect("a response").json().await.expect("a JSON list")
    }

    /// Invokes send-notifications once.
    pub async fn run(&self, app: &App) {
        run(app, &self.senders, Duration::ZERO).await;
    }

    /// Returns the environment variables of a send-notifications process that uses the fakes.
    pub fn variables(&self) -> [(&'static str, String); 5] {
        environment::outside(&self.url)
    }
}

/// Returns senders for an SES endpoint and an EventBridge endpoint.
pub fn senders(ses: &str, event_bridge: &str) -> Senders {
    // Moto accepts only AWS regions.
    let config = |endpoint| {
        let config = endpoint_config(endpoint).expect("a client configuration");
        config.into_builder().region(Region::from_static("eu-central-1")).build()
    };
    Senders {
        mailer: Some(Mailer::new(&config(ses), SENDER, PUBLIC_URL)),
        publisher: Some(Publisher::new(&config(event_bridge), "default")),
    }
}

/// Invokes send-notifications once, with a minimum pause before its second pass.
pub async fn run(app: &App, senders: &Senders, min_pause: Duration) {
    let deadline = Deadline::after(Duration::from_mins(1));
    let run = Box::pin(send_notifications::run(app, senders, min_pause, deadline));
    permissions::checked(send_notifications::JOB.name, run).await.expect("a successful run");
}

/// Invokes announce-trends once.
pub async fn announce_trends(app: &App) {
    let deadline = Deadline::after(Duration::from_mins(1));
    let run = Box::pin(announce_trends::run(app, deadline));
    permissions::checked(announce_trends::JOB.name, run).await.expect("a successful run");
}

/// Returns a user of the default organization.
pub fn user(name: &str) -> UserName {
    let organization = Organization::parse("default").expect("a valid organization");
    UserName { organization, user: UserId::parse(name).expect("a valid user") }
}

/// Sets a user's confirmed address.
pub async fn give_address(app: &App, name: &UserName, email: &str) {
    let mut address =
        NotificationStore::new(&app.store).find_address(name).await.expect("a readable address");
    address.set_confirmed(EmailAddress::parse(email).expect("a valid address"));
    assert!(
        NotificationStore::new(&app.store)
            .replace_address(name, &address, false)
            .await
            .expect("a successful write")
    );
}

/// Returns the token in an email's first link to a path.
pub fn token_in(mail: &Value, path: &str) -> String {
    let text = mail["text"].as_str().expect("an email with text");
    let start = format!("{PUBLIC_URL}{path}?token=");
    let rest = text.split_once(&start).expect("an email with the link").1;
    rest.split_whitespace().next().expect("a link with a token").to_owned()
}
