//! The DynamoDB client: endpoint, trusted certificates and timeouts. Clients of other AWS services
//! share its configuration.

use std::env;
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{
    Builder, Credentials, Region, SharedCredentialsProvider, SharedHttpClient,
};
use aws_sdk_dynamodb::{Client, Config};
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore, rustls_provider::CryptoMode};

pub use aws_config::SdkConfig;

use crate::usage::UsageMeter;

use super::server_clock::ServerClock;

/// Environment variable with the trusted certificates: `amazon` (default), or `system` for the
/// operating system's store. Endpoints whose certificates do not chain to Amazon's roots need
/// `system`, such as TLS-inspecting proxies and the China regions. `SSL_CERT_FILE` can then name
/// another bundle, as in most programs.
pub const TRUST_STORE_VARIABLE: &str = "WAYMARK_TRUST_STORE";

/// The roots that AWS endpoints chain to (<https://www.amazontrust.com/repository/>). Reading these
/// five instead of the operating system's store saves most of a cold start.
const AMAZON_ROOTS: [&str; 5] = [
    include_str!("../../certificates/amazon-root-ca-1.pem"),
    include_str!("../../certificates/amazon-root-ca-2.pem"),
    include_str!("../../certificates/amazon-root-ca-3.pem"),
    include_str!("../../certificates/amazon-root-ca-4.pem"),
    include_str!("../../certificates/starfield-services-root-ca-g2.pem"),
];

/// Timeouts of a call.
struct Timeouts {
    /// To open a connection, without TLS.
    connect: Duration,
    /// For one attempt.
    attempt: Duration,
    /// With all retries.
    operation: Duration,
}

/// Close to a function, DynamoDB responds in single milliseconds, and to transactions in tens. A
/// request makes few calls, and [`crate::app::TIME_BUDGET`] limits their total.
const FUNCTION_TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_millis(500),
    attempt: Duration::from_millis(900),
    operation: Duration::from_secs(2),
};
/// An operator's computer can be half a world away from the tables, and its credentials can need
/// another call.
const COMMAND_TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_millis(1_500),
    attempt: Duration::from_secs(3),
    operation: Duration::from_millis(4_500),
};
/// Attempts per call, including the first. Throttling and dropped connections mostly pass within
/// two short pauses. After that, callers should retry later.
const MAX_ATTEMPTS: u32 = 3;
/// Longest pause before the second attempt. The pause before the third is at most twice as long.
const INITIAL_BACKOFF: Duration = Duration::from_millis(50);

/// Region of services that run locally.
const LOCAL_REGION: Region = Region::from_static("local");

/// The reason why a client could not be created.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// An environment variable is missing or invalid.
    #[error("{0}")]
    Environment(String),
    /// The certificates could not be read.
    #[error("the TLS trust store could not be read: {0}")]
    TrustStore(String),
}

/// Returns the client of a function. Region, credentials and endpoint come from the environment
/// variables that Lambda sets and the AWS SDKs share. No other source is read at start.
pub fn for_function() -> Result<Client, ClientError> {
    let mut config = settings()?
        .region(region()?)
        .credentials_provider(EnvironmentVariableCredentialsProvider::new());
    config.set_endpoint_url(endpoint("DYNAMODB"));
    Ok(Client::from_conf(config.build()))
}

/// Returns the base configuration of a function's client for another AWS service: region,
/// credentials, endpoint and trusted certificates. The client adds its timeouts and retries.
/// `service` is the service's name in its endpoint variable, such as `BEDROCK_RUNTIME`.
pub fn function_config(service: &str) -> Result<SdkConfig, ClientError> {
    let credentials = EnvironmentVariableCredentialsProvider::new();
    let mut config = SdkConfig::builder()
        .behavior_version(behavior_version())
        .http_client(http_client(trust_store()?)?)
        .region(region()?)
        .credentials_provider(SharedCredentialsProvider::new(credentials));
    config.set_endpoint_url(endpoint(service));
    Ok(config.build())
}

/// Returns the client of a program that runs its own DynamoDB: the local stack, tests, benchmarks.
pub fn for_endpoint(endpoint: &str) -> Result<Client, ClientError> {
    let config = settings()?
        .region(LOCAL_REGION)
        .credentials_provider(local_credentials())
        .endpoint_url(endpoint)
        .build();
    Ok(Client::from_conf(config))
}

/// Returns the base configuration of a client for another service that the program runs.
pub fn endpoint_config(endpoint: &str) -> Result<SdkConfig, ClientError> {
    Ok(SdkConfig::builder()
        .behavior_version(behavior_version())
        .http_client(http_client(trust_store()?)?)
        .region(LOCAL_REGION)
        .credentials_provider(SharedCredentialsProvider::new(local_credentials()))
        .endpoint_url(endpoint)
        .build())
}

/// Returns the client of a command. Region and credentials come from the sources of the AWS CLI,
/// such as profiles, single sign-on and instance roles. The command's features of `aws-config`
/// limit these sources. The client trusts Amazon's roots and the operating system's certificates.
pub async fn for_command() -> Result<Client, ClientError> {
    let config = aws_config::defaults(behavior_version())
        .http_client(http_client(amazon_roots(TrustStore::default()))?)
        .retry_config(retries())
        .timeout_config(timeouts(&COMMAND_TIMEOUTS))
        .load()
        .await;
    if config.region().is_none() {
        return Err(ClientError::Environment(
            "no AWS region is configured; set AWS_REGION, or use --local for the local stack"
                .to_owned(),
        ));
    }
    Ok(Client::new(&config))
}

fn settings() -> Result<Builder, ClientError> {
    Ok(Config::builder()
        .behavior_version(behavior_version())
        .http_client(http_client(trust_store()?)?)
        .interceptor(UsageMeter)
        .interceptor(ServerClock)
        .retry_config(retries())
        .timeout_config(timeouts(&FUNCTION_TIMEOUTS)))
}

/// Returns a dated behavior version, so SDK updates change no defaults.
fn behavior_version() -> BehaviorVersion {
    BehaviorVersion::v2026_01_12()
}

fn local_credentials() -> Credentials {
    Credentials::new("local", "local", None, None, "local")
}

fn region() -> Result<Region, ClientError> {
    env::var("AWS_REGION")
        .or_else(|_| env::var("AWS_DEFAULT_REGION"))
        .map(Region::new)
        .map_err(|_| ClientError::Environment("AWS_REGION is not set".to_owned()))
}

fn endpoint(service: &str) -> Option<String> {
    [&format!("AWS_ENDPOINT_URL_{service}"), "AWS_ENDPOINT_URL"]
        .into_iter()
        .find_map(|name| env::var(name).ok().filter(|url| !url.is_empty()))
}

fn retries() -> RetryConfig {
    RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS).with_initial_backoff(INITIAL_BACKOFF)
}

fn timeouts(durations: &Timeouts) -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(durations.connect)
        .operation_attempt_timeout(durations.attempt)
        .operation_timeout(durations.operation)
        .build()
}

fn trust_store() -> Result<TrustStore, ClientError> {
    match env::var(TRUST_STORE_VARIABLE).as_deref() {
        Err(_) | Ok("" | "amazon") => Ok(amazon_roots(TrustStore::empty())),
        Ok("system") => Ok(TrustStore::default()),
        Ok(other) => Err(ClientError::Environment(format!(
            "{TRUST_STORE_VARIABLE} is `{other}`; it must be `amazon` or `system`"
        ))),
    }
}

fn amazon_roots(store: TrustStore) -> TrustStore {
    let add = |store: TrustStore, root: &&str| store.with_pem_certificate(root.as_bytes());
    AMAZON_ROOTS.iter().fold(store, add)
}

fn http_client(trust_store: TrustStore) -> Result<SharedHttpClient, ClientError> {
    let context = TlsContext::builder()
        .with_trust_store(trust_store)
        .build()
        .map_err(|error| ClientError::TrustStore(error.to_string()))?;
    Ok(aws_smithy_http_client::Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
        .tls_context(context)
        .build_https())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject;
    use sha2::{Digest, Sha256};

    /// The fingerprints that Amazon publishes for its roots.
    const PUBLISHED: [&str; 5] = [
        "8ecde6884f3d87b1125ba31ac3fcb13d7016de7f57cc904fe1cb97c6ae98196e",
        "1ba5b2aa8c65401a82960118f80bec4f62304d83cec4713a19c39c011ea46db4",
        "18ce6cfe7bf14e60b2e347b8dfe868cb31d02ebb3ada271569f50343b46db3a4",
        "e35d28419ed02025cfa69038cd623962458da5c695fbdea3c22b0bfb25897092",
        "568d6905a2c88708a4b3025190edcfedb1974a606a13c6e5290fcb2ae63edab5",
    ];

    #[test]
    fn embedded_roots_match_published_fingerprints() {
        let fingerprints = AMAZON_ROOTS.map(|pem| {
            let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
            let digest = Sha256::digest(&certificate);
            digest.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
        });
        assert_eq!(fingerprints, PUBLISHED);
    }
}
