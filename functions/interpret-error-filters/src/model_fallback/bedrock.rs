//! Calls Bedrock's Converse API
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

use super::{FallbackError, model_id, prompt, reply};

/// The name of Bedrock's runtime in its endpoint variable, `AWS_ENDPOINT_URL_…`.
const SERVICE: &str = "BEDROCK_RUNTIME";

/// Attempts per call, including the first. A connection that Lambda froze fails immediately, and
/// there is no time for a second pause.
const MAX_ATTEMPTS: u32 = 2;
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum tokens of a reply. A filter takes about 30 tokens, and no model writes more in time.
const MAX_TOKENS: i32 = 800;

/// A model on Amazon Bedrock.
#[derive(Debug, Clone)]
pub struct Model {
    client: Client,
    id: String,
}

impl Model {
    /// Returns the model that the environment names, in the function's own account and region.
    pub fn from_environment() -> Result<Option<Self>, ClientError> {
        let Some(id) = model_id() else { return Ok(None) };
        Ok(Some(Self::new(&function_config(SERVICE)?, &id)))
    }

    /// Creates a client for the model `id` at the configured endpoint.
    pub fn new(config: &SdkConfig, id: &str) -> Self {
        let retries = RetryConfig::standard()
            .with_max_attempts(MAX_ATTEMPTS)
            .with_initial_backoff(INITIAL_BACKOFF);
        let timeouts = TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).build();
        let config = Builder::from(config).retry_config(retries).timeout_config(timeouts).build();
        Self { client: Client::from_conf(config), id: id.to_owned() }
    }

    /// Returns the filters of the model, which are not validated yet.
    pub(super) async fn call(&self, request: &Request) -> Result<Vec<Filter>, FallbackError> {
        // The most probable reply, so that equal queries have equal replies.
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

impl From<BuildError> for FallbackError {
    fn from(_: BuildError) -> Self {
        Self::Refused("the request is incomplete".to_owned())
    }
}

/// Keeps only the kind of an error, since its message can repeat the query.
impl From<SdkError<ConverseError>> for FallbackError {
    fn from(error: SdkError<ConverseError>) -> Self {
        let kind = match &error {
            SdkError::ServiceError(_) => error.code().unwrap_or("an error without a code"),
            SdkError::ResponseError(_) => "a response that cannot be read",
            SdkError::TimeoutError(_) => "no connection in time",
            SdkError::DispatchFailure(_) => "no connection",
            _ => "no request could be built",
        };
        Self::Refused(kind.to_owned())
    }
}
