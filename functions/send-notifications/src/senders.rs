//! What notifications are sent with: Amazon SES and Amazon EventBridge, each with its own retries.

use std::env;
use std::time::Duration;

use aws_sdk_eventbridge::error::SdkError as EventError;
use aws_sdk_eventbridge::operation::put_events::PutEventsError;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use aws_sdk_sesv2::config::retry::RetryConfig;
use aws_sdk_sesv2::config::timeout::TimeoutConfig;
use aws_sdk_sesv2::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sesv2::operation::send_email::SendEmailError;
use aws_sdk_sesv2::types::{Body, Content, Destination, EmailContent, Message, MessageHeader};

use notifications::address::EmailAddress;
use notifications::mail::Email;
use shared::dynamodb::client::{ClientError, SdkConfig, function_config};

/// Where mails are from: an address of which SES has a verified identity. Set by `template.yaml`, as all
/// that follows; empty: no mail is sent.
const MAIL_FROM_VARIABLE: &str = "WAYMARK_MAIL_FROM";
/// The configuration set of SES that mails are sent with, if any.
pub const CONFIGURATION_SET_VARIABLE: &str = "WAYMARK_MAIL_CONFIGURATION_SET";
/// How many mails a user gets in an hour at most.
pub const MAILS_PER_HOUR_VARIABLE: &str = "WAYMARK_MAILS_PER_HOUR";
/// Where the API is, as people reach it: links in mails begin with it.
const PUBLIC_URL_VARIABLE: &str = "WAYMARK_PUBLIC_URL";
/// The event bus that is told; empty: none is.
const EVENT_BUS_VARIABLE: &str = "WAYMARK_EVENT_BUS";

/// Where nobody says how many.
const MAILS_PER_HOUR: usize = 20;
/// The source of events.
const SOURCE: &str = "waymark";
/// The services in the variables of their endpoints, `AWS_ENDPOINT_URL_…`.
const SES: &str = "SESV2";
const EVENT_BRIDGE: &str = "EVENTBRIDGE";

/// How often a call is tried, the first time included, and how long it may take: a lease must outlive it.
const ATTEMPTS: u32 = 3;
/// The longest first pause between two attempts; the second is at most twice as long.
const BACKOFF: Duration = Duration::from_millis(200);
const CONNECT: Duration = Duration::from_secs(1);
const ATTEMPT: Duration = Duration::from_secs(3);
const CALL: Duration = Duration::from_secs(8);

/// What a run sends with.
#[derive(Debug, Clone, Default)]
pub struct Senders {
    /// Sends mails, if there is an address that they are from.
    pub mailer: Option<Mailer>,
    /// Tells others, if there is a bus.
    pub publisher: Option<Publisher>,
}

impl Senders {
    /// What the environment names.
    pub fn from_environment() -> Result<Self, ClientError> {
        let text = |name| env::var(name).ok().filter(|text| !text.is_empty());
        let mailer = match (text(MAIL_FROM_VARIABLE), text(PUBLIC_URL_VARIABLE)) {
            (Some(from), Some(base_url)) => {
                let mails = text(MAILS_PER_HOUR_VARIABLE).and_then(|text| text.parse().ok());
                Some(Mailer {
                    configuration_set: text(CONFIGURATION_SET_VARIABLE),
                    mails_per_hour: mails.unwrap_or(MAILS_PER_HOUR),
                    ..Mailer::new(&function_config(SES)?, &from, &base_url)
                })
            }
            (Some(_), None) => {
                let missing =
                    format!("{PUBLIC_URL_VARIABLE} is not set: mails would have no links");
                return Err(ClientError::Environment(missing));
            }
            (None, _) => None,
        };
        let publisher = text(EVENT_BUS_VARIABLE)
            .map(|bus| Ok::<_, ClientError>(Publisher::new(&function_config(EVENT_BRIDGE)?, &bus)));
        Ok(Self { mailer, publisher: publisher.transpose()? })
    }
}

/// How often calls are tried, and how long they may take.
fn with_limits(config: &SdkConfig) -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT)
        .operation_attempt_timeout(ATTEMPT)
        .operation_timeout(CALL);
    let retries = RetryConfig::standard().with_max_attempts(ATTEMPTS).with_initial_backoff(BACKOFF);
    config.to_builder().retry_config(retries).timeout_config(timeouts.build()).build()
}

/// Why a mail was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// It never will be.
    #[error("the mail was refused: {0}")]
    Refused(String),
    /// It may be, later.
    #[error("the mail could not be sent: {0}")]
    Failed(String),
}

/// Sends mails.
#[derive(Debug, Clone)]
pub struct Mailer {
    client: aws_sdk_sesv2::Client,
    from: String,
    configuration_set: Option<String>,
    /// Where the API is, without a slash at its end.
    pub base_url: String,
    /// How many mails a user gets in an hour at most.
    pub mails_per_hour: usize,
}

impl Mailer {
    /// What sends mails from an address, with links that begin with a URL.
    pub fn new(config: &SdkConfig, from: &str, base_url: &str) -> Self {
        Self {
            client: aws_sdk_sesv2::Client::new(&with_limits(config)),
            from: from.to_owned(),
            configuration_set: None,
            base_url: base_url.trim_end_matches('/').to_owned(),
            mails_per_hour: MAILS_PER_HOUR,
        }
    }

    /// Sends a mail.
    pub(crate) async fn send(&self, to: &EmailAddress, mail: &Email) -> Result<(), SendError> {
        let incomplete = |_| SendError::Refused("the mail is incomplete".to_owned());
        let content = |text: &str| Content::builder().data(text).charset("UTF-8").build();
        let body = Body::builder()
            .text(content(&mail.text).map_err(incomplete)?)
            .html(content(&mail.html).map_err(incomplete)?);
        let mut message = Message::builder()
            .subject(content(&mail.subject).map_err(incomplete)?)
            .body(body.build());
        for (name, value) in headers(mail) {
            let header = MessageHeader::builder().name(name).value(value).build();
            message = message.headers(header.map_err(incomplete)?);
        }
        let sending = self
            .client
            .send_email()
            .from_email_address(&self.from)
            .destination(Destination::builder().to_addresses(to.as_str()).build())
            .content(EmailContent::builder().simple(message.build()).build())
            .set_configuration_set_name(self.configuration_set.clone());
        // Boxed, since the SDK's futures are large.
        Box::pin(sending.send()).await.map(drop).map_err(|error| {
            let not_sent = not_sent(&error, &self.from);
            match &not_sent {
                SendError::Refused(_) => tracing::warn!("{not_sent}"),
                SendError::Failed(_) => tracing::error!("{not_sent}"),
            }
            not_sent
        })
    }
}

/// By which mail programs offer to unsubscribe with one click (RFC 8058), and do not answer for people who
/// are away (RFC 3834).
fn headers(mail: &Email) -> Vec<(&'static str, String)> {
    let mut headers = vec![("Auto-Submitted", "auto-generated".to_owned())];
    if let Some(url) = &mail.unsubscribe_url {
        headers.push(("List-Unsubscribe", format!("<{url}>")));
        headers.push(("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()));
    }
    headers
}

/// Why a call failed of which nobody knows whether it was carried out.
pub(crate) const NO_ANSWER: &str = "no answer";
/// Part of SES's message about an identity that is not verified.
const NOT_VERIFIED: &str = "not verified";

/// Classifies SES's rejection of an email from `sender`. Drops its message, which can contain an address.
fn not_sent(error: &SdkError<SendEmailError>, sender: &str) -> SendError {
    let code = error.code().unwrap_or(NO_ANSWER);
    match (error.as_service_error(), error.message().unwrap_or_default()) {
        (Some(SendEmailError::MessageRejected(_)), message) if message.contains(NOT_VERIFIED) => {
            let identity = if message.contains(sender) {
                "the identity of MailFrom is not verified"
            } else {
                "the recipient is not verified, which SES requires in its sandbox"
            };
            SendError::Failed(format!("{code}: {identity}"))
        }
        (Some(SendEmailError::MessageRejected(_) | SendEmailError::BadRequestException(_)), _) => {
            SendError::Refused(code.to_owned())
        }
        _ => SendError::Failed(code.to_owned()),
    }
}

/// Tells Amazon EventBridge.
#[derive(Debug, Clone)]
pub struct Publisher {
    client: aws_sdk_eventbridge::Client,
    bus: String,
}

/// What EventBridge was not told.
#[derive(Debug)]
pub(crate) struct PublishError {
    pub(crate) cause: String,
    /// The indices of the events that it did not take.
    pub(crate) left: Vec<usize>,
}

/// An event as EventBridge takes it.
pub(crate) struct Event {
    pub(crate) detail_type: &'static str,
    /// JSON.
    pub(crate) detail: String,
    /// When it happened, in seconds since the Unix epoch.
    pub(crate) at: i64,
}

impl Publisher {
    /// What tells a bus.
    pub fn new(config: &SdkConfig, bus: &str) -> Self {
        Self { client: aws_sdk_eventbridge::Client::new(&with_limits(config)), bus: bus.to_owned() }
    }

    /// Tells of up to ten events. What EventBridge does not take of them is sent again, after a pause each time.
    /// Fails with what was not taken then.
    pub(crate) async fn publish(&self, events: &[Event]) -> Result<(), PublishError> {
        let mut left: Vec<usize> = (0..events.len()).collect();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(BACKOFF * 2_u32.pow(attempt)).await;
            }
            let entries = left.iter().filter_map(|at| Some(self.entry(events.get(*at)?)));
            let request = self.client.put_events().set_entries(Some(entries.collect()));
            let answer = match Box::pin(request.send()).await {
                Ok(answer) => answer,
                Err(error) => return Err(PublishError { cause: kind_of(&error), left }),
            };
            let results = left.into_iter().zip(answer.entries());
            let refused = results.filter(|(_, result)| result.error_code().is_some());
            left = refused.map(|(at, _)| at).collect();
            if answer.failed_entry_count() == 0 || left.is_empty() {
                return Ok(());
            }
        }
        Err(PublishError { cause: "entries were not taken".to_owned(), left })
    }

    fn entry(&self, event: &Event) -> PutEventsRequestEntry {
        PutEventsRequestEntry::builder()
            .source(SOURCE)
            .event_bus_name(&self.bus)
            .detail_type(event.detail_type)
            .detail(&event.detail)
            .time(aws_sdk_eventbridge::primitives::DateTime::from_secs(event.at))
            .build()
    }
}

fn kind_of(error: &EventError<PutEventsError>) -> String {
    error.code().unwrap_or(NO_ANSWER).to_owned()
}
