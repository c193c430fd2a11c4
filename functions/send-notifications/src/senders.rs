//! Clients of Amazon SES and Amazon EventBridge, with their retries.

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

/// Environment variable: the sender address, an identity that SES has verified. `template.yaml`
/// sets this and the following variables. Empty: no emails are sent.
const MAIL_FROM_VARIABLE: &str = "WAYMARK_MAIL_FROM";
/// Environment variable: the SES configuration set. Optional.
pub const CONFIGURATION_SET_VARIABLE: &str = "WAYMARK_MAIL_CONFIGURATION_SET";
/// Environment variable: maximum emails per user and hour.
pub const MAILS_PER_HOUR_VARIABLE: &str = "WAYMARK_MAILS_PER_HOUR";
/// Environment variable: the public URL of the API, with which links in emails start.
const PUBLIC_URL_VARIABLE: &str = "WAYMARK_PUBLIC_URL";
/// Environment variable: the event bus. Empty: no events are published.
const EVENT_BUS_VARIABLE: &str = "WAYMARK_EVENT_BUS";

/// Default maximum emails per user and hour.
const EMAILS_PER_HOUR: usize = 20;
/// Source of the published events.
const SOURCE: &str = "waymark";
/// Service names in the variables of endpoints, `AWS_ENDPOINT_URL_…`.
const SES: &str = "SESV2";
const EVENT_BRIDGE: &str = "EVENTBRIDGE";

/// Maximum attempts of a call.
const MAX_ATTEMPTS: u32 = 3;
/// Maximum first pause between two attempts. The second is at most twice as long.
const BACKOFF: Duration = Duration::from_millis(200);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);
/// Timeout of a call with all attempts: shorter than a lease.
const CALL_TIMEOUT: Duration = Duration::from_secs(8);

/// The configured senders.
#[derive(Debug, Clone, Default)]
pub struct Senders {
    /// The email sender. `None` without a sender address.
    pub mailer: Option<Mailer>,
    /// The event publisher. `None` without an event bus.
    pub publisher: Option<Publisher>,
}

impl Senders {
    /// Returns the senders that the environment configures.
    ///
    /// # Errors
    /// [`ClientError`] if a client cannot be configured, or if emails would have no links.
    pub fn from_environment() -> Result<Self, ClientError> {
        let text = |name| env::var(name).ok().filter(|text| !text.is_empty());
        let mailer = match (text(MAIL_FROM_VARIABLE), text(PUBLIC_URL_VARIABLE)) {
            (Some(from), Some(base_url)) => {
                let limit = text(MAILS_PER_HOUR_VARIABLE).and_then(|text| text.parse().ok());
                Some(Mailer {
                    configuration_set: text(CONFIGURATION_SET_VARIABLE),
                    emails_per_hour: limit.unwrap_or(EMAILS_PER_HOUR),
                    ..Mailer::new(&function_config(SES)?, &from, &base_url)
                })
            }
            (Some(_), None) => {
                let missing =
                    format!("{PUBLIC_URL_VARIABLE} is not set: emails would have no links");
                return Err(ClientError::Environment(missing));
            }
            (None, _) => None,
        };
        let publisher = text(EVENT_BUS_VARIABLE)
            .map(|bus| Ok::<_, ClientError>(Publisher::new(&function_config(EVENT_BRIDGE)?, &bus)));
        Ok(Self { mailer, publisher: publisher.transpose()? })
    }
}

/// Returns the configuration with retries and timeouts.
fn with_limits(config: &SdkConfig) -> SdkConfig {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .operation_timeout(CALL_TIMEOUT);
    let retries =
        RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS).with_initial_backoff(BACKOFF);
    config.to_builder().retry_config(retries).timeout_config(timeouts.build()).build()
}

/// The failure to send an email.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// SES rejected the email permanently.
    #[error("email rejected: {0}")]
    Rejected(String),
    /// A retry can succeed.
    #[error("email not sent: {0}")]
    Failed(String),
}

/// A sender of emails.
#[derive(Debug, Clone)]
pub struct Mailer {
    client: aws_sdk_sesv2::Client,
    from: String,
    configuration_set: Option<String>,
    /// The public URL of the API, without a slash at its end.
    pub base_url: String,
    /// Maximum emails per user and hour.
    pub emails_per_hour: usize,
}

impl Mailer {
    /// Returns a mailer with a sender address and the start of all links.
    pub fn new(config: &SdkConfig, from: &str, base_url: &str) -> Self {
        Self {
            client: aws_sdk_sesv2::Client::new(&with_limits(config)),
            from: from.to_owned(),
            configuration_set: None,
            base_url: base_url.trim_end_matches('/').to_owned(),
            emails_per_hour: EMAILS_PER_HOUR,
        }
    }

    /// Sends an email.
    pub(crate) async fn send(&self, to: &EmailAddress, email: &Email) -> Result<(), SendError> {
        let incomplete = |_| SendError::Rejected("the email is incomplete".to_owned());
        let content = |text: &str| Content::builder().data(text).charset("UTF-8").build();
        let body = Body::builder()
            .text(content(&email.text).map_err(incomplete)?)
            .html(content(&email.html).map_err(incomplete)?);
        let mut message = Message::builder()
            .subject(content(&email.subject).map_err(incomplete)?)
            .body(body.build());
        for (name, value) in headers(email) {
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
            let error = classify(&error, &self.from);
            match &error {
                SendError::Rejected(_) => tracing::warn!("{error}"),
                SendError::Failed(_) => tracing::error!("{error}"),
            }
            error
        })
    }
}

/// Returns the headers for one-click unsubscription (RFC 8058) and against automatic replies
/// (RFC 3834).
fn headers(email: &Email) -> Vec<(&'static str, String)> {
    let mut headers = vec![("Auto-Submitted", "auto-generated".to_owned())];
    if let Some(url) = &email.unsubscribe_url {
        headers.push(("List-Unsubscribe", format!("<{url}>")));
        headers.push(("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()));
    }
    headers
}

/// Cause of a failed call with an unknown outcome.
pub(crate) const NO_RESPONSE: &str = "no response";
/// Part of SES's message about an identity that is not verified.
const NOT_VERIFIED: &str = "not verified";

/// Classifies an error of SES for an email from `sender`. Drops its message, which can contain an
/// address.
fn classify(error: &SdkError<SendEmailError>, sender: &str) -> SendError {
    let code = error.code().unwrap_or(NO_RESPONSE);
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
            SendError::Rejected(code.to_owned())
        }
        _ => SendError::Failed(code.to_owned()),
    }
}

/// A publisher of events on Amazon EventBridge.
#[derive(Debug, Clone)]
pub struct Publisher {
    client: aws_sdk_eventbridge::Client,
    bus: String,
}

/// The failure to publish some events.
#[derive(Debug)]
pub(crate) struct PublishError {
    pub(crate) cause: String,
    /// The indices of the events that EventBridge did not accept.
    pub(crate) remaining: Vec<usize>,
}

/// An event for EventBridge.
pub(crate) struct Event {
    pub(crate) detail_type: &'static str,
    /// The detail as JSON.
    pub(crate) detail: String,
    /// The time of the event, in seconds since the Unix epoch.
    pub(crate) at: i64,
}

impl Publisher {
    /// Returns a publisher for an event bus.
    pub fn new(config: &SdkConfig, bus: &str) -> Self {
        Self { client: aws_sdk_eventbridge::Client::new(&with_limits(config)), bus: bus.to_owned() }
    }

    /// Publishes up to ten events. Retries those that EventBridge does not accept, with a backoff.
    ///
    /// # Errors
    /// [`PublishError`] with the events that were not accepted after all attempts.
    pub(crate) async fn publish(&self, events: &[Event]) -> Result<(), PublishError> {
        let mut remaining: Vec<usize> = (0..events.len()).collect();
        for attempt in 0..MAX_ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(BACKOFF * 2_u32.pow(attempt)).await;
            }
            let entries = remaining.iter().filter_map(|at| Some(self.entry(events.get(*at)?)));
            let request = self.client.put_events().set_entries(Some(entries.collect()));
            let response = match Box::pin(request.send()).await {
                Ok(response) => response,
                Err(error) => return Err(PublishError { cause: error_code(&error), remaining }),
            };
            let results = remaining.into_iter().zip(response.entries());
            let failed = results.filter(|(_, result)| result.error_code().is_some());
            remaining = failed.map(|(at, _)| at).collect();
            if response.failed_entry_count() == 0 || remaining.is_empty() {
                return Ok(());
            }
        }
        Err(PublishError { cause: "entries were not accepted".to_owned(), remaining })
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

fn error_code(error: &EventError<PutEventsError>) -> String {
    error.code().unwrap_or(NO_RESPONSE).to_owned()
}
