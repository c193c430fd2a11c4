//! The call of Bedrock's Converse API
//! (<https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html>).

use std::time::Duration;

use aws_sdk_bedrockruntime::Client;
use aws_sdk_bedrockruntime::config::Builder;
use aws_sdk_bedrockruntime::config::retry::RetryConfig;
use aws_sdk_bedrockruntime::config::timeout::TimeoutConfig;
use aws_sdk_bedrockruntime::error::{BuildError, ProvideErrorMetadata, SdkError};
use aws_sdk_bedrockruntime::operation::converse::ConverseError;
use aws_sdk_bedrockruntime::types::InferenceConfiguration;

use interpreter::{Filter, Request};
use shared::dynamodb::client::{ClientError, SdkConfig, function_config};

use super::{OpinionError, model_id, prompt, reply};

/// The name of Bedrock's runtime in the variable of its endpoint, `AWS_ENDPOINT_URL_…`.
const SERVICE: &str = "BEDROCK_RUNTIME";

/// Attempts at one question, the first included: a connection that Lambda froze is dropped at once,
/// and for a second pause there is no time.
const MAX_ATTEMPTS: u32 = 2;
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// The longest answer; a filter takes about 30 tokens, and no model writes more in the time it has.
const MAX_TOKENS: i32 = 800;

/// A model on Amazon Bedrock.
#[derive(Debug, Clone)]
pub struct Model {
    client: Client,
    id: String,
}

impl Model {
    /// The model that the environment names, in the function's own account and region.
    pub fn from_environment() -> Result<Option<Self>, ClientError> {
        let Some(id) = model_id() else { return Ok(None) };
        Ok(Some(Self::new(&function_config(SERVICE)?, &id)))
    }

    /// The model of an id, where a configuration leads.
    pub fn new(config: &SdkConfig, id: &str) -> Self {
        let retries = RetryConfig::standard()
            .with_max_attempts(MAX_ATTEMPTS)
            .with_initial_backoff(INITIAL_BACKOFF);
        let timeouts = TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).build();
        let config = Builder::from(config).retry_config(retries).timeout_config(timeouts).build();
        Self { client: Client::from_conf(config), id: id.to_owned() }
    }

    /// The filters that the model gives, which may be anything yet.
    pub(super) async fn ask(&self, request: &Request) -> Result<Vec<Filter>, OpinionError> {
        // The most probable answer: the same question should have the same answer.
        let inference =
            InferenceConfiguration::builder().temperature(0.0).max_tokens(MAX_TOKENS).build();
        let output = self
            .client
            .converse()
            .model_id(&self.id)
            .inference_config(inference)
            .system(prompt::instructions())
            .tool_config(prompt::tool(request)?)
            .messages(prompt::question(request)?)
            .send()
            .await?;
        reply::filters(&output)
    }
}

impl From<BuildError> for OpinionError {
    fn from(_: BuildError) -> Self {
        Self::Refused("the request is incomplete".to_owned())
    }
}

/// Only the kind of an error: its message may repeat what it was asked.
impl From<SdkError<ConverseError>> for OpinionError {
    fn from(error: SdkError<ConverseError>) -> Self {
        let kind = match &error {
            SdkError::ServiceError(_) => error.code().unwrap_or("an error without a code"),
            SdkError::ResponseError(_) => "an answer that cannot be read",
            SdkError::TimeoutError(_) => "no connection in time",
            SdkError::DispatchFailure(_) => "no connection",
            _ => "no request could be made",
        };
        Self::Refused(kind.to_owned())
    }
}
