//! The OpenID provider: its metadata and keys, and the verification of its responses.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use aws_smithy_runtime_api::client::http::SharedHttpConnector;
use openidconnect::core::{
    CoreAuthenticationFlow, CoreClient, CoreIdToken, CoreJwsSigningAlgorithm, CoreProviderMetadata,
    CoreTokenResponse, CoreUserInfoClaims,
};
use openidconnect::{
    AccessToken, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointMaybeSet,
    EndpointNotSet, EndpointSet, IssuerUrl, Nonce, OAuth2TokenResponse, PkceCodeChallenge,
    PkceCodeVerifier, RedirectUrl, Scope, SubjectIdentifier, TokenResponse,
};
use people::{OidcSignIn, read_email};
use shared::projects::api_key::UserId;
use shared::projects::secret::Secret;
use shared::timestamp::Timestamp;

use crate::http_client::{connector, send};
use crate::settings::Settings;

/// Time for which metadata and keys are cached. A token that no cached key signed refreshes them.
const MAX_AGE: Duration = Duration::from_hours(1);

type Client = CoreClient<
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// Signature algorithms of ID tokens: those with a public key. Others that a provider lists, such as
/// `none`, prove nothing or make the client's secret a signing key.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// The provider of an app, with its cached metadata.
#[derive(Default)]
pub struct Provider {
    settings: OnceLock<Option<Settings>>,
    metadata: Mutex<Option<(CoreProviderMetadata, Timestamp)>>,
    connector: OnceLock<SharedHttpConnector>,
}

/// A user whose email address the provider verified.
pub(crate) struct VerifiedUser {
    /// The address, in lower case.
    pub(crate) user: UserId,
    /// The domain of the address.
    pub(crate) domain: String,
}

/// A response that does not verify a user. It contains neither codes nor tokens.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProviderError {
    /// The configuration is invalid.
    #[error("the configuration is invalid: {0}")]
    Configuration(String),
    /// The provider cannot be used.
    #[error("the provider's metadata cannot be read: {0}")]
    Discovery(String),
    /// The provider rejected the code.
    #[error("the provider rejected the code: {0}")]
    Exchange(String),
    /// The ID token is missing or invalid.
    #[error("the ID token is invalid: {0}")]
    Token(String),
    /// The provider rejected the access token, or answered for another user.
    #[error("the user info is invalid: {0}")]
    UserInfo(String),
    /// The email claim is missing or no address.
    #[error("the provider has no usable email address")]
    NoEmail,
}

impl Provider {
    /// Sets the settings, unless they are set. Without a call, the environment has them.
    pub fn configure(&self, settings: Settings) {
        self.settings.get_or_init(|| Some(settings));
    }

    /// Returns the settings. `None`: the deployment has no provider.
    pub(crate) fn settings(&self) -> Option<&Settings> {
        self.settings.get_or_init(Settings::from_environment).as_ref()
    }

    fn connector(&self) -> Result<SharedHttpConnector, ProviderError> {
        if let Some(connector) = self.connector.get() {
            return Ok(connector.clone());
        }
        let created = connector().map_err(|it| ProviderError::Configuration(it.to_string()))?;
        Ok(self.connector.get_or_init(|| created).clone())
    }

    fn configured(&self) -> Result<&Settings, ProviderError> {
        let missing = || ProviderError::Configuration("it is missing".to_owned());
        self.settings().ok_or_else(missing)
    }

    /// Returns the URL at the provider to which the browser of a sign-in is redirected.
    pub(crate) async fn authorization_url(
        &self,
        state: &Secret,
        nonce: &str,
        challenge: PkceCodeChallenge,
        now: Timestamp,
    ) -> Result<String, ProviderError> {
        let (client, _) = self.client(now, false).await?;
        let (state, nonce) = (CsrfToken::new(state.reveal()), Nonce::new(nonce.to_owned()));
        let request = client.authorize_url(
            CoreAuthenticationFlow::AuthorizationCode,
            move || state,
            move || nonce,
        );
        let request = request.add_scope(Scope::new("email".to_owned()));
        let (url, ..) = request.set_pkce_challenge(challenge).url();
        Ok(url.into())
    }

    /// Exchanges a code, and verifies the ID token. Providers can leave the email address out of it;
    /// the user-info endpoint then has it. Returns `None` if the provider has not verified it.
    pub(crate) async fn verify(
        &self,
        code: &str,
        started: OidcSignIn,
        now: Timestamp,
    ) -> Result<Option<VerifiedUser>, ProviderError> {
        let (client, is_cached) = self.client(now, false).await?;
        let code = AuthorizationCode::new(code.to_owned());
        let request = client
            .exchange_code(code)
            .map_err(|error| ProviderError::Discovery(error.to_string()))?
            .set_pkce_verifier(PkceCodeVerifier::new(started.verifier));
        let connector = self.connector()?;
        let response: CoreTokenResponse = request
            .request_async(&|request| send(connector.clone(), request))
            .await
            .map_err(|error| ProviderError::Exchange(error.to_string()))?;
        let missing = || ProviderError::Token("it is missing".to_owned());
        let token = response.id_token().ok_or_else(missing)?;
        let nonce = Nonce::new(started.nonce);
        let (subject, email) = match verified_claims(&client, token, &nonce, now) {
            // The provider can have replaced its keys since they were cached.
            Err(ProviderError::Token(_)) if is_cached => {
                let (client, _) = self.client(now, true).await?;
                verified_claims(&client, token, &nonce, now)?
            }
            verified => verified?,
        };
        let email = match email {
            Some(email) => email,
            None => self.email_of(&client, subject, response.access_token()).await?,
        };
        email.verified_user()
    }

    /// Reads the email address of a subject from the user-info endpoint, which must answer for the
    /// subject of the ID token.
    async fn email_of(
        &self,
        client: &Client,
        subject: SubjectIdentifier,
        token: &AccessToken,
    ) -> Result<Email, ProviderError> {
        let connector = self.connector()?;
        let request = client.user_info(token.clone(), Some(subject));
        let request = request.map_err(|_| ProviderError::NoEmail)?;
        let claims: CoreUserInfoClaims = request
            .request_async(&|request| send(connector.clone(), request))
            .await
            .map_err(|error| ProviderError::UserInfo(error.to_string()))?;
        let address = claims.email().ok_or(ProviderError::NoEmail)?.to_string();
        Ok(Email { address, is_verified: claims.email_verified() == Some(true) })
    }

    /// Returns a client, and `true` if its metadata and keys were cached.
    async fn client(
        &self,
        now: Timestamp,
        is_refreshed: bool,
    ) -> Result<(Client, bool), ProviderError> {
        let settings = self.configured()?;
        let invalid =
            |error: &dyn std::fmt::Display| ProviderError::Configuration(error.to_string());
        let cached = {
            let metadata = self.metadata.lock().unwrap_or_else(PoisonError::into_inner);
            let fresh = metadata
                .as_ref()
                .filter(|(_, since)| !is_refreshed && *since <= now && now < since.plus(MAX_AGE));
            fresh.map(|(metadata, _)| metadata.clone())
        };
        let is_cached = cached.is_some();
        let metadata = if let Some(metadata) = cached {
            metadata
        } else {
            let issuer = IssuerUrl::new(settings.issuer.clone()).map_err(|it| invalid(&it))?;
            let connector = self.connector()?;
            let send = |request| send(connector.clone(), request);
            let found = CoreProviderMetadata::discover_async(issuer, &send).await;
            let found = found.map_err(|error| ProviderError::Discovery(error.to_string()))?;
            let cached = Some((found.clone(), now));
            *self.metadata.lock().unwrap_or_else(PoisonError::into_inner) = cached;
            found
        };
        let redirect = format!("{}/v0/sign-in/oidc/callback", settings.public_url);
        let redirect = RedirectUrl::new(redirect).map_err(|it| invalid(&it))?;
        let client = CoreClient::from_provider_metadata(
            metadata,
            ClientId::new(settings.client_id.clone()),
            Some(ClientSecret::new(settings.client_secret.clone())),
        );
        Ok((client.set_redirect_uri(redirect), is_cached))
    }
}

/// An email address as the provider has it.
struct Email {
    address: String,
    is_verified: bool,
}

impl Email {
    fn verified_user(&self) -> Result<Option<VerifiedUser>, ProviderError> {
        if !self.is_verified {
            return Ok(None);
        }
        let user = read_email(&self.address).map_err(|_| ProviderError::NoEmail)?;
        let domain = user.as_str().rsplit('@').next().unwrap_or_default().to_owned();
        Ok(Some(VerifiedUser { user, domain }))
    }
}

/// Verifies signature, issuer, audience, expiry and nonce of an ID token, and returns its subject
/// and email address.
fn verified_claims(
    client: &Client,
    token: &CoreIdToken,
    nonce: &Nonce,
    now: Timestamp,
) -> Result<(SubjectIdentifier, Option<Email>), ProviderError> {
    let millis = u64::try_from(now.as_millis()).unwrap_or_default();
    let time = (SystemTime::UNIX_EPOCH + Duration::from_millis(millis)).into();
    let verifier = client.id_token_verifier().set_allowed_algs(ALGORITHMS);
    let verifier = verifier.set_time_fn(move || time);
    let claims =
        token.claims(&verifier, nonce).map_err(|error| ProviderError::Token(error.to_string()))?;
    let is_verified = claims.email_verified() == Some(true);
    let email = claims.email().map(|it| Email { address: it.to_string(), is_verified });
    Ok((claims.subject().clone(), email))
}
