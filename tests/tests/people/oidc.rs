//! Sign-in through an OpenID provider, which a script in this test plays.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Form, Json, Router};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use complete_oidc_sign_in::{Provider, Settings};
use openidconnect::core::{CoreEdDsaPrivateSigningKey, CoreJsonWebKeySet, CoreJwsSigningAlgorithm};
use openidconnect::{JsonWebKeyId, PrivateSigningKey};
use people::OIDC_COOKIE;
use people::store::PeopleStore;
use people::{Grant, Invitation, InvitationId};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use shared::app::Operation;
use shared::projects::api_key::UserId;
use shared::projects::project::Organization;
use shared::projects::role::Role;
use tests::app::TestApp;
use tests::call::{Call, Reply};
use tests::people::add_member;
use tests::permissions::{ALLOWED, used_during};

use super::support::{MIRA, SESSION, me};

pub(crate) const OIDC: &Operation = &complete_oidc_sign_in::OPERATION;
pub(crate) const START: &str = "/v0/sign-in/oidc";
const CLIENT_ID: &str = "waymark-console";
const CLIENT_SECRET: &str = "the secret of the client";

/// Returns a new key of the provider, twice.
fn signing_keys(id: &str) -> [CoreEdDsaPrivateSigningKey; 2] {
    let pem = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap().serialize_pem();
    [(); 2].map(|()| {
        let id = Some(JsonWebKeyId::new(id.to_owned()));
        CoreEdDsaPrivateSigningKey::from_ed25519_pem(&pem, id).unwrap()
    })
}

/// The state of the provider.
struct Script {
    issuer: String,
    key: CoreEdDsaPrivateSigningKey,
    /// The keys that it publishes.
    published: Vec<CoreEdDsaPrivateSigningKey>,
    /// The PKCE challenge and nonce of each code that was not exchanged.
    codes: HashMap<String, (String, String)>,
    /// Changes the claims of the next ID token.
    adjust: fn(&mut Value),
    /// The requests for metadata.
    discoveries: usize,
    now: i64,
}

type Shared = Arc<Mutex<Script>>;

async fn metadata(State(script): State<Shared>) -> Json<Value> {
    let mut script = script.lock().unwrap();
    script.discoveries += 1;
    let issuer = &script.issuer;
    Json(json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/keys"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["EdDSA", "none", "HS256"],
    }))
}

async fn keys(State(script): State<Shared>) -> Json<CoreJsonWebKeySet> {
    let script = script.lock().unwrap();
    let keys = script.published.iter().map(PrivateSigningKey::as_verification_key).collect();
    Json(CoreJsonWebKeySet::new(keys))
}

async fn token(
    State(script): State<Shared>,
    Form(form): Form<HashMap<String, String>>,
) -> Result<Json<Value>, (axum::http::StatusCode, Json<Value>)> {
    let mut script = script.lock().unwrap();
    let refused =
        |reason: &str| Err((axum::http::StatusCode::BAD_REQUEST, Json(json!({"error": reason}))));
    let Some((challenge, nonce)) = script.codes.remove(&form["code"]) else {
        return refused("invalid_grant");
    };
    let verifier = form.get("code_verifier").cloned().unwrap_or_default();
    if BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)) != challenge {
        return refused("invalid_grant");
    }
    let mut claims = json!({
        "iss": script.issuer, "aud": CLIENT_ID, "sub": "248289761001", "nonce": nonce,
        "iat": script.now, "exp": script.now + 300,
        "email": "Mira@Example.com", "email_verified": true,
    });
    (script.adjust)(&mut claims);
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let id = script.key.as_verification_key();
    let id = serde_json::to_value(id).unwrap()["kid"].clone();
    let unsigned = format!("{}.{}", part(&json!({"alg": "EdDSA", "kid": id})), part(&claims));
    let signature = script.key.sign(&CoreJwsSigningAlgorithm::EdDsa, unsigned.as_bytes()).unwrap();
    let signed = format!("{unsigned}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature));
    Ok(Json(json!({"access_token": "unused", "token_type": "Bearer", "id_token": signed})))
}

/// A test app and its provider.
struct Stack {
    test: TestApp,
    script: Shared,
}

/// A started sign-in: the browser's cookie, and the parameters for the provider.
struct Started {
    browser: String,
    parameters: HashMap<String, String>,
}

impl Stack {
    async fn start() -> Self {
        let test = TestApp::start().await;
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let [key, published] = signing_keys("first");
        let script = Arc::new(Mutex::new(Script {
            issuer: issuer.clone(),
            key,
            published: vec![published],
            codes: HashMap::new(),
            adjust: |_| (),
            discoveries: 0,
            now: test.app.clock.now().as_seconds(),
        }));
        let stack = Self { test, script };
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(metadata))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .with_state(Arc::clone(&stack.script));
        tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        stack.test.app.cache::<Provider>().configure(Settings {
            issuer,
            client_id: CLIENT_ID.to_owned(),
            client_secret: CLIENT_SECRET.to_owned(),
            public_url: "https://api.example.com".to_owned(),
            allowed_domains: vec![("example.org".to_owned(), Organization::parse("acme").unwrap())],
        });
        stack
    }

    /// Signs with a new key, which is published or not.
    fn rotate(&self, id: &str, is_published: bool) {
        let [key, published] = signing_keys(id);
        let mut script = self.script.lock().unwrap();
        script.key = key;
        if is_published {
            script.published = vec![published];
        }
    }

    fn adjust(&self, adjust: fn(&mut Value)) {
        self.script.lock().unwrap().adjust = adjust;
    }

    /// Starts a sign-in in a new browser.
    async fn begin(&self) -> Started {
        let reply = Call::of(OIDC).path(START).send(&self.test.app).await;
        assert_eq!(reply.status, 302, "{}", reply.body);
        let url = reqwest::Url::parse(location(&reply)).unwrap();
        let parameters = url.query_pairs().into_owned().collect();
        Started { browser: reply.cookie(OIDC_COOKIE).unwrap(), parameters }
    }

    /// Lets the provider issue a code for a started sign-in.
    fn issue(&self, started: &Started, code: &str) {
        let of = |name: &str| started.parameters[name].clone();
        let issued = (of("code_challenge"), of("nonce"));
        self.script.lock().unwrap().codes.insert(code.to_owned(), issued);
    }

    /// Sends the provider's response from a browser.
    async fn respond(&self, browser: &str, state: &str, code: &str) -> Reply {
        let call = Call::of(OIDC).query("state", state).query("code", code);
        call.cookie(OIDC_COOKIE, browser).send(&self.test.app).await
    }

    /// Runs a whole sign-in.
    async fn sign_in(&self) -> Reply {
        let started = self.begin().await;
        self.issue(&started, "code-1");
        self.respond(&started.browser, &started.parameters["state"], "code-1").await
    }
}

pub(crate) fn location(reply: &Reply) -> &str {
    reply.headers["location"].to_str().unwrap()
}

pub(crate) fn assert_failed(reply: &Reply, code: &str) {
    assert_eq!(reply.status, 302, "{}", reply.body);
    assert_eq!(location(reply), format!("/console/sign-in#error={code}"));
    assert_eq!(reply.cookie(SESSION), None);
}

#[tokio::test]
async fn members_sign_in_through_the_provider() {
    let stack = Stack::start().await;
    add_member(&stack.test, MIRA, "default", Role::Admin, None).await;
    let started = stack.begin().await;
    let of = |name: &str| started.parameters[name].as_str();
    assert_eq!((of("response_type"), of("client_id")), ("code", CLIENT_ID));
    assert_eq!(of("redirect_uri"), "https://api.example.com/v0/sign-in/oidc/callback");
    assert_eq!(of("code_challenge_method"), "S256");
    assert!(of("scope").split(' ').any(|scope| scope == "openid"));
    stack.issue(&started, "code-1");
    let reply = stack.respond(&started.browser, of("state"), "code-1").await;
    assert_eq!((reply.status, location(&reply)), (302, "/console"));
    assert_eq!(reply.cookie(OIDC_COOKIE).as_deref(), Some(""));
    let caller = me(&stack.test, &reply.cookie(SESSION).unwrap()).await;
    assert_eq!((&caller.body["email"], &caller.body["role"]), (&json!(MIRA), &json!("admin")));
}

#[tokio::test]
async fn replayed_responses_are_rejected() {
    let stack = Stack::start().await;
    add_member(&stack.test, MIRA, "default", Role::Viewer, None).await;
    let started = stack.begin().await;
    let state = &started.parameters["state"];
    stack.issue(&started, "code-1");
    assert_eq!(location(&stack.respond(&started.browser, state, "code-1").await), "/console");
    assert_failed(&stack.respond(&started.browser, state, "code-1").await, "oidc_failed");
    stack.issue(&started, "code-2");
    assert_failed(&stack.respond(&started.browser, state, "code-2").await, "oidc_failed");
    // The provider has exchanged the code: a new sign-in cannot use it.
    let other = stack.begin().await;
    let replayed = stack.respond(&other.browser, &other.parameters["state"], "code-1").await;
    assert_failed(&replayed, "oidc_failed");
}

#[tokio::test]
async fn responses_to_other_browsers_are_rejected() {
    let stack = Stack::start().await;
    add_member(&stack.test, MIRA, "default", Role::Viewer, None).await;
    let (attacker, victim) = (stack.begin().await, stack.begin().await);
    stack.issue(&attacker, "code-1");
    let reply = stack.respond(&victim.browser, &attacker.parameters["state"], "code-1").await;
    assert_failed(&reply, "oidc_failed");
    // A code for another sign-in fails at the provider, whose challenge it does not meet.
    let (one, other) = (stack.begin().await, stack.begin().await);
    stack.issue(&one, "code-2");
    let reply = stack.respond(&other.browser, &other.parameters["state"], "code-2").await;
    assert_failed(&reply, "oidc_failed");
}

#[tokio::test]
async fn expired_sign_ins_are_rejected() {
    let stack = Stack::start().await;
    add_member(&stack.test, MIRA, "default", Role::Viewer, None).await;
    let started = stack.begin().await;
    stack.issue(&started, "code-1");
    stack.test.pass(Duration::from_mins(10));
    let reply = stack.respond(&started.browser, &started.parameters["state"], "code-1").await;
    assert_failed(&reply, "oidc_failed");
}

#[tokio::test]
async fn invalid_id_tokens_are_rejected() {
    let stack = Stack::start().await;
    add_member(&stack.test, MIRA, "default", Role::Viewer, None).await;
    let changes: [fn(&mut Value); 7] = [
        |claims| claims["nonce"] = json!("another"),
        |claims| drop(claims.as_object_mut().unwrap().remove("nonce")),
        |claims| claims["aud"] = json!("another-client"),
        |claims| claims["aud"] = json!([CLIENT_ID, "another-client"]),
        |claims| claims["iss"] = json!("https://evil.example"),
        |claims| claims["exp"] = json!(claims["iat"].as_i64().unwrap() - 600),
        |claims| drop(claims.as_object_mut().unwrap().remove("email")),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        stack.adjust(change);
        let reply = stack.sign_in().await;
        assert!(location(&reply).ends_with("oidc_failed"), "change {index}: {}", location(&reply));
        assert_failed(&reply, "oidc_failed");
    }
    stack.adjust(|_| ());
    assert_eq!(location(&stack.sign_in().await), "/console");
}

#[tokio::test]
async fn unverified_emails_are_rejected() {
    let stack = Stack::start().await;
    add_member(&stack.test, MIRA, "default", Role::Viewer, None).await;
    let changes: [fn(&mut Value); 2] = [
        |claims| claims["email_verified"] = json!(false),
        |claims| drop(claims.as_object_mut().unwrap().remove("email_verified")),
    ];
    for change in changes {
        stack.adjust(change);
        assert_failed(&stack.sign_in().await, "email_unverified");
    }
}

#[tokio::test]
async fn rotated_keys_are_read_again() {
    let stack = Stack::start().await;
    add_member(&stack.test, MIRA, "default", Role::Viewer, None).await;
    assert_eq!(location(&stack.sign_in().await), "/console");
    assert_eq!(location(&stack.sign_in().await), "/console");
    assert_eq!(stack.script.lock().unwrap().discoveries, 1, "metadata is cached");
    stack.rotate("second", true);
    assert_eq!(location(&stack.sign_in().await), "/console");
    // A key that the provider does not publish signs nothing.
    for id in ["second", "third"] {
        stack.rotate(id, false);
        assert_failed(&stack.sign_in().await, "oidc_failed");
    }
}

#[tokio::test]
async fn strangers_are_rejected_unless_their_domain_is_allowed() {
    let stack = Stack::start().await;
    assert_failed(&stack.sign_in().await, "not_a_member");
    stack.adjust(|claims| claims["email"] = json!("juno@sub.example.org"));
    assert_failed(&stack.sign_in().await, "not_a_member");
    stack.adjust(|claims| claims["email"] = json!("Juno@example.ORG"));
    let reply = stack.sign_in().await;
    assert_eq!(location(&reply), "/console");
    let caller = me(&stack.test, &reply.cookie(SESSION).unwrap()).await.body;
    assert_eq!((&caller["organization"], &caller["role"]), (&json!("acme"), &json!("viewer")));
    assert_eq!(caller["email"], "juno@example.org");
}

/// Invites the user whom the provider verifies.
async fn invite(stack: &Stack, role: Role) {
    let (now, user) = (stack.test.app.clock.now(), UserId::parse(MIRA).unwrap());
    let inviter = add_member(&stack.test, "owner@example.com", "acme", Role::Owner, None).await;
    let invitation = Invitation::new(
        InvitationId::new(stack.test.app.ids.new_uuid(now)),
        Organization::parse("acme").unwrap(),
        user,
        Grant::new(role, None).unwrap(),
        inviter.user,
        now,
    );
    let invitation = invitation.by(Some(inviter.id));
    let store = stack.test.patient_store();
    let people = PeopleStore::new(&store);
    people.create_invitation(&invitation, None, Vec::new(), None).await.unwrap();
}

#[tokio::test]
async fn invited_users_join_through_the_provider() {
    let stack = Stack::start().await;
    invite(&stack, Role::Admin).await;
    let reply = stack.sign_in().await;
    assert_eq!(location(&reply), "/console");
    let caller = me(&stack.test, &reply.cookie(SESSION).unwrap()).await.body;
    assert_eq!((&caller["organization"], &caller["role"]), (&json!("acme"), &json!("admin")));
}

#[tokio::test]
async fn the_function_uses_exactly_its_permissions() {
    let stack = Stack::start().await;
    invite(&stack, Role::Owner).await;
    let sign_in = async { assert_eq!(location(&stack.sign_in().await), "/console") };
    let used = used_during(Box::pin(sign_in)).await;
    let unused: Vec<_> = ALLOWED[OIDC.name].difference(&used[OIDC.name]).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[tokio::test]
async fn deployments_without_provider_return_404() {
    let test = TestApp::start().await;
    for path in [START, OIDC.path] {
        let reply = Call::of(OIDC).path(path).send(&test.app).await;
        super::support::assert_problem(&reply, 404, "oidc_not_configured");
    }
}

#[tokio::test]
async fn unreachable_providers_redirect_to_the_page() {
    let stack = Stack::start().await;
    stack.script.lock().unwrap().issuer = "http://127.0.0.1:1".to_owned();
    // The metadata names another issuer, which is as bad as none.
    let reply = Call::of(OIDC).path(START).send(&stack.test.app).await;
    assert_failed(&reply, "oidc_failed");
}
