//! Signs a user in through an OpenID provider: authorization code with PKCE, state and nonce. One
//! path redirects to the provider, and the other one takes its response.

mod http_client;
mod membership;
mod provider;
mod settings;

use openidconnect::PkceCodeChallenge;
use people::http::no_randomness;
use people::store::PeopleStore;
use people::{OIDC_COOKIE, OIDC_LIFETIME, OidcSignIn};
use shared::app::{Access, App, Operation};
use shared::http::{ApiRequest, ApiResponse, ApiResult, Method, Problem, ProblemCode, StatusCode};
use shared::projects::secret::Secret;
use shared::projects::session::{LIFETIME, clear_cookie, cookie, set_cookie};

use membership::sign_in;
use provider::VerifiedUser;

pub use provider::Provider;
pub use settings::Settings;

/// The operation of this function.
pub static OPERATION: Operation = Operation::new(
    env!("CARGO_PKG_NAME"),
    Method::GET,
    "/v0/sign-in/oidc/callback",
    Access::Public(shared::handler!(handle without caller)),
)
// The provider answers up to four requests.
.within(std::time::Duration::from_secs(9));

/// The page after a sign-in, and the page that explains a failure.
const CONSOLE: &str = "/console";
const SIGN_IN_PAGE: &str = "/console/sign-in#error=";

/// The reason why no user is signed in. The page of the console has a text for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// The response is not one to this browser's sign-in, or the provider failed.
    Failed,
    /// The provider has not verified the email address.
    EmailUnverified,
    /// The user is not a member of an organization.
    NotAMember,
}

impl Failure {
    fn code(self) -> &'static str {
        match self {
            Self::Failed => "oidc_failed",
            Self::EmailUnverified => "email_unverified",
            Self::NotAMember => "not_a_member",
        }
    }
}

async fn handle(app: &App, incoming: &ApiRequest) -> ApiResult {
    let provider = app.cache::<Provider>();
    if provider.settings().is_none() {
        let detail = "This deployment has no OpenID provider. Sign in by email.";
        return Err(Problem::new(ProblemCode::OidcNotConfigured, detail));
    }
    if incoming.path().trim_end_matches('/') == OPERATION.path {
        complete(app, &provider, incoming).await
    } else {
        start(app, &provider).await
    }
}

/// Redirects to the provider.
async fn start(app: &App, provider: &Provider) -> ApiResult {
    // Rules.
    let [state, browser, nonce] = [(); 3].map(|()| Secret::generate());
    let (state, browser, nonce) = (
        state.map_err(no_randomness)?,
        browser.map_err(no_randomness)?,
        nonce.map_err(no_randomness)?.reveal(),
    );
    let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
    let now = app.clock.now();
    let started = OidcSignIn {
        state: state.digest(),
        browser: browser.digest(),
        nonce,
        verifier: verifier.into_secret(),
        expires_at: now.plus(OIDC_LIFETIME),
    };

    // Storage and response. The sign-in is stored while the provider's metadata is read: if that
    // fails, nothing has the state of the sign-in, which then expires.
    let (stored, url) = tokio::join!(
        PeopleStore::new(&app.store).put_oidc_sign_in(&started),
        provider.authorization_url(&state, &started.nonce, challenge, now),
    );
    let url = match url {
        Ok(url) => url,
        Err(error) => {
            tracing::error!(%error, "the OpenID provider cannot be used");
            return redirect(&format!("{SIGN_IN_PAGE}{}", Failure::Failed.code()))?
                .with_cookie(&clear_cookie(OIDC_COOKIE));
        }
    };
    stored?;
    redirect(&url)?.with_cookie(&set_cookie(OIDC_COOKIE, &browser.reveal(), OIDC_LIFETIME))
}

/// Takes the provider's response, and signs the user in.
async fn complete(app: &App, provider: &Provider, incoming: &ApiRequest) -> ApiResult {
    let verified = verify(app, provider, incoming).await?;
    let signed_in = match verified {
        Ok(VerifiedUser { user, domain }) => {
            let admitting = provider.settings().and_then(|it| it.organization_of(&domain));
            sign_in(app, incoming, &user, admitting).await?
        }
        Err(failure) => Err(failure),
    };
    let response = match signed_in {
        Ok(secret) => redirect(CONSOLE)?.with_cookie(&cookie(&secret, LIFETIME))?,
        Err(failure) => redirect(&format!("{SIGN_IN_PAGE}{}", failure.code()))?,
    };
    response.with_cookie(&clear_cookie(OIDC_COOKIE))
}

/// Returns the user whose address the provider verified. The state is used up in any case, so a
/// response cannot be replayed.
async fn verify(
    app: &App,
    provider: &Provider,
    incoming: &ApiRequest,
) -> Result<Result<VerifiedUser, Failure>, Problem> {
    let parameter = |name| incoming.query_texts(name).first().copied();
    let Some(state) = parameter("state").and_then(Secret::parse) else {
        return Ok(Err(Failure::Failed));
    };
    let now = app.clock.now();
    let taken = PeopleStore::new(&app.store).take_oidc_sign_in(&state.digest(), now).await?;
    let browser = incoming.cookies(OIDC_COOKIE).find_map(Secret::parse);
    // Another browser did not start this sign-in: an attacker could send it a response of their own.
    let own = taken.filter(|it| browser.is_some_and(|browser| browser.digest() == it.browser));
    let (Some(started), Some(code)) = (own, parameter("code")) else {
        return Ok(Err(Failure::Failed));
    };
    Ok(match provider.verify(code, started, now).await {
        Ok(Some(user)) => Ok(user),
        Ok(None) => Err(Failure::EmailUnverified),
        Err(error) => {
            tracing::warn!(%error, "a response of the OpenID provider was rejected");
            Err(Failure::Failed)
        }
    })
}

fn redirect(location: &str) -> ApiResult {
    ApiResponse::empty(StatusCode::FOUND).with_text("location", location)
}
