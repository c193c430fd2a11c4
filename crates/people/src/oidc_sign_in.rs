//! An OpenID Connect sign-in between its start and the provider's response.

use std::time::Duration;

use shared::projects::secret::SecretDigest;
use shared::timestamp::Timestamp;

/// Time for which the provider can send the browser back.
pub const OIDC_LIFETIME: Duration = Duration::from_mins(10);
/// The cookie that binds the sign-in to the browser that started it.
pub const OIDC_COOKIE: &str = "__Host-waymark-oidc";

/// A started sign-in.
#[derive(Clone, PartialEq, Eq)]
pub struct OidcSignIn {
    /// The hash of the state, which the provider returns.
    pub state: SecretDigest,
    /// The hash of the browser's cookie.
    pub browser: SecretDigest,
    /// The nonce, which the ID token must contain.
    pub nonce: String,
    /// The PKCE verifier, which the provider requires together with the code.
    pub verifier: String,
    /// Time after which the response is rejected.
    pub expires_at: Timestamp,
}
