//! Requests to the provider, with the HTTP client that the AWS SDK links in any case. It follows no
//! redirects.

use std::time::Duration;
use std::{env, fs, panic};

use aws_smithy_http_client::Connector;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest as SdkRequest;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use openidconnect::http::Response;
use openidconnect::{HttpRequest, HttpResponse};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const READ_TIMEOUT: Duration = Duration::from_secs(3);
/// Most bytes of a response. Key sets of large providers have some ten kilobytes.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;

/// Files with all certificates of the operating system: of Lambda, and of Debian. The SDK would also
/// read the folder of the file, which has each certificate again, twice.
const BUNDLES: [&str; 2] =
    ["/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/certs/ca-certificates.crt"];
/// Environment variables that name other certificates. The SDK reads them.
const OVERRIDES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// The provider gave no usable response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// The client cannot be configured.
    #[error("the TLS configuration is invalid: {0}")]
    Tls(String),
    /// The request was not sent, or got no response.
    #[error("the provider cannot be reached: {0}")]
    Connection(String),
    /// The response is too large.
    #[error("the provider's response has more than {MAX_RESPONSE_BYTES} bytes")]
    TooLarge,
}

/// Sends a request and reads its response.
pub(crate) async fn send(
    connector: SharedHttpConnector,
    request: HttpRequest,
) -> Result<HttpResponse, HttpError> {
    let failed = |error: &dyn std::fmt::Display| HttpError::Connection(error.to_string());
    let request = SdkRequest::try_from(request.map(SdkBody::from)).map_err(|it| failed(&it))?;
    let response = connector.call(request).await.map_err(|it| failed(&it))?;
    let response = response.try_into_http1x().map_err(|it| failed(&it))?;
    let (parts, body) = response.into_parts();
    let (mut body, mut bytes) = (ByteStream::new(body), Vec::new());
    while let Some(chunk) = body.try_next().await.map_err(|it| failed(&it))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_RESPONSE_BYTES {
            return Err(HttpError::TooLarge);
        }
    }
    Ok(Response::from_parts(parts, bytes))
}

/// Returns a client that trusts the certificate authorities of the operating system. Reading them
/// takes long, so the caller keeps the client.
pub(crate) fn connector() -> Result<SharedHttpConnector, HttpError> {
    let is_overridden = OVERRIDES.iter().any(|name| env::var_os(name).is_some());
    let mut bundles = BUNDLES.iter().filter(|_| !is_overridden);
    bundles
        .find_map(|bundle| fs::read(bundle).ok())
        .and_then(trusting_bundle)
        .map_or_else(|| trusting(TrustStore::default()), Ok)
}

/// Returns a client that trusts the certificates of a bundle. Returns `None` if the bundle has a
/// certificate that cannot be read, at which the SDK panics. From the operating system's folder, it
/// skips such certificates.
fn trusting_bundle(bundle: Vec<u8>) -> Option<SharedHttpConnector> {
    let trust_store = TrustStore::empty().with_pem_certificate(bundle);
    panic::catch_unwind(|| trusting(trust_store)).ok()?.ok()
}

fn trusting(trust_store: TrustStore) -> Result<SharedHttpConnector, HttpError> {
    let context = TlsContext::builder()
        .with_trust_store(trust_store)
        .build()
        .map_err(|error| HttpError::Tls(error.to_string()))?;
    let settings = HttpConnectorSettings::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .build();
    Ok(SharedHttpConnector::new(
        Connector::builder()
            .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
            .connector_settings(settings)
            .tls_context(context)
            .build(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_bundles_give_no_client() {
        let pem = |content| {
            format!("-----BEGIN CERTIFICATE-----\n{content}\n-----END CERTIFICATE-----\n")
        };
        for content in ["AAAA", "?"] {
            assert!(trusting_bundle(pem(content).into_bytes()).is_none(), "{content}");
        }
        connector().unwrap();
    }
}
