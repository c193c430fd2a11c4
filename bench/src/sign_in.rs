//! Sign-in, for its cold starts.

use axum::Router;
use axum::body::Bytes;
use axum::response::Json;
use axum::routing::get;
use people::sign_in::PendingSignIn;
use people::store::PeopleStore;
use serde_json::json;
use shared::app::{Clock, Ids};
use shared::projects::api_key::UserId;
use shared::projects::member::{Member, MemberId};
use shared::projects::project::Organization;
use shared::projects::role::Role;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::Result;
use crate::request::{COMPLETE_SIGN_IN, REQUEST_SIGN_IN, Request, START_OIDC_SIGN_IN};
use crate::stack::Stack;

/// The address of the member that signs in.
const USER: &str = "owner@example.com";

/// A member that signs in, and the OpenID provider of the functions.
pub(crate) struct SignIns<'a> {
    stack: &'a Stack,
    member: Member,
    issuer: String,
    _provider: JoinSet<()>,
}

impl<'a> SignIns<'a> {
    /// Adds the member, and starts the provider.
    pub(crate) async fn start(stack: &'a Stack) -> Result<Self> {
        let now = Clock::System.now();
        let member = Member {
            id: MemberId::new(Ids::Random.new_uuid(now)),
            organization: Organization::parse("default")?,
            user: UserId::parse(USER)?,
            role: Role::Owner,
            projects: None,
            joined_at: now,
            version: 1,
        };
        PeopleStore::new(stack.store()).add_member(&member, Vec::new()).await?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let issuer = format!("http://{}", listener.local_addr()?);
        let metadata = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "jwks_uri": format!("{issuer}/keys"),
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        });
        let metadata = get(async move || Json(metadata.clone()));
        let routes = Router::new()
            .route("/.well-known/openid-configuration", metadata)
            .route("/keys", get(async || Json(json!({ "keys": [] }))));
        let mut provider = JoinSet::new();
        provider.spawn(async move {
            // `serve` only ends when the set is dropped.
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { stack, member, issuer, _provider: provider })
    }

    /// Returns the variables of functions that use the provider.
    pub(crate) fn variables(&self) -> [(&'static str, String); 4] {
        [
            ("WAYMARK_OIDC_ISSUER", self.issuer.clone()),
            ("WAYMARK_OIDC_CLIENT_ID", "bench".to_owned()),
            ("WAYMARK_OIDC_CLIENT_SECRET", "bench".to_owned()),
            ("WAYMARK_PUBLIC_URL", "https://api.example.com".to_owned()),
        ]
    }

    /// Returns the request for a sign-in email.
    pub(crate) fn request() -> Bytes {
        of_console(REQUEST_SIGN_IN).json(&json!({ "email": USER })).event()
    }

    /// Returns the request that signs in with a new link.
    pub(crate) async fn complete(&self) -> Result<Bytes> {
        let Member { user, organization, .. } = self.member.clone();
        let (pending, token) = PendingSignIn::by_command(user, organization, Clock::System.now())?;
        PeopleStore::new(self.stack.store()).put_sign_in(&pending).await?;
        Ok(of_console(COMPLETE_SIGN_IN).json(&json!({ "token": token.reveal() })).event())
    }

    /// Returns the request that redirects to the provider, whose metadata and keys the function reads.
    pub(crate) fn start_oidc() -> Bytes {
        of_console(START_OIDC_SIGN_IN).event()
    }
}

/// Returns a request of the console, with the proof of its origin.
fn of_console(route: &str) -> Request {
    Request::new(route, &[]).header("sec-fetch-site", "same-origin")
}
