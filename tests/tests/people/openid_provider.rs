//! Sign-in through `oidc-provider`, a certified OpenID provider, without a browser.

use std::collections::HashMap;
use std::process::Stdio;
use std::time::Duration;

use complete_oidc_sign_in::{Provider, Settings};
use people::OIDC_COOKIE;
use reqwest::Url;
use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use serde_json::json;
use shared::app::Clock;
use shared::projects::project::Organization;
use shared::projects::role::Role;
use tests::app::TestApp;
use tests::call::{Call, Reply};
use tests::people::add_member;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::oidc::{OIDC, START, assert_failed, location};
use super::support::{MIRA, SESSION, me};

const CLIENT_ID: &str = "waymark-console";

/// A running provider, which ends when it is dropped.
struct Running {
    process: Child,
    issuer: String,
    _output: Lines<BufReader<ChildStdout>>,
}

impl Running {
    async fn start(variables: &[(&str, &str)]) -> Self {
        let mut process = Command::new("node")
            .arg("provider.mjs")
            .current_dir(tests::workspace().join("tests/sdks/openid-provider"))
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("node is missing; run `make test-tools`");
        let mut output = BufReader::new(process.stdout.take().unwrap()).lines();
        loop {
            let line = output.next_line().await.unwrap();
            let line = line.expect("the provider does not start; run `make test-tools`");
            if line.starts_with("http://") {
                return Self { process, issuer: line, _output: output };
            }
        }
    }

    /// Starts the provider again, with other keys and without its codes.
    async fn restart(&mut self, variables: &[(&str, &str)]) {
        self.process.kill().await.unwrap();
        let port = Url::parse(&self.issuer).unwrap().port().unwrap().to_string();
        let variables = [&[("PORT", port.as_str())], variables].concat();
        *self = Self::start(&variables).await;
    }
}

/// A test app and its provider.
struct Stack {
    test: TestApp,
    provider: Running,
}

/// A started sign-in: the browser's cookie, and the request to the provider.
struct Started {
    browser: String,
    request: Url,
}

type Parameters = HashMap<String, String>;

impl Stack {
    async fn start() -> Self {
        let (test, provider) = (TestApp::start().await, Running::start(&[]).await);
        // The provider has the time of the computer.
        test.set_time(Clock::System.now());
        test.app.cache::<Provider>().configure(Settings {
            issuer: provider.issuer.clone(),
            client_id: CLIENT_ID.to_owned(),
            client_secret: format!("secret-of-{CLIENT_ID}"),
            public_url: "https://api.example.com".to_owned(),
            allowed_domains: vec![("example.org".to_owned(), Organization::parse("acme").unwrap())],
        });
        add_member(&test, MIRA, "default", Role::Admin, None).await;
        Self { test, provider }
    }

    async fn begin(&self) -> Started {
        let reply = Call::of(OIDC).path(START).send(&self.test.app).await;
        let request = Url::parse(location(&reply)).unwrap();
        assert!(request.as_str().starts_with(&self.provider.issuer), "{request}");
        Started { browser: reply.cookie(OIDC_COOKIE).unwrap(), request }
    }

    async fn respond(&self, browser: &str, response: &Parameters) -> Reply {
        let call = Call::of(OIDC).cookie(OIDC_COOKIE, browser);
        let call = response.iter().fold(call, |call, (name, value)| call.query(name, value));
        call.send(&self.test.app).await
    }

    /// Signs in a user. The request to the provider has changed parameters; empty ones are removed.
    async fn sign_in(&self, email: &str, changes: &[(&str, &str)]) -> Reply {
        let started = self.begin().await;
        let response = authorize(&started.request, email, changes).await;
        self.respond(&started.browser, &response).await
    }

    async fn assert_signed_in(&self, reply: &Reply, email: &str) {
        assert_eq!((reply.status, location(reply)), (302, "/console"), "{}", reply.body);
        let caller = me(&self.test, &reply.cookie(SESSION).unwrap()).await;
        assert_eq!(caller.body["email"], email);
    }
}

/// Follows the redirects of the provider like a browser, up to those of the API. Returns the
/// parameters of the provider's response.
async fn authorize(request: &Url, email: &str, changes: &[(&str, &str)]) -> Parameters {
    let mut parameters: Parameters = request.query_pairs().into_owned().collect();
    parameters.insert("login_hint".to_owned(), email.to_owned());
    for (name, value) in changes {
        parameters.insert((*name).to_owned(), (*value).to_owned());
    }
    parameters.retain(|_, value| !value.is_empty());
    let mut url = request.clone();
    url.query_pairs_mut().clear().extend_pairs(&parameters);
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let http = http.build().unwrap();
    let mut cookies = Parameters::new();
    for _ in 0..5 {
        let sent: Vec<String> =
            cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let response = http.get(url.clone()).header(COOKIE, sent.join("; ")).send().await.unwrap();
        for cookie in response.headers().get_all(SET_COOKIE) {
            let (name, rest) = cookie.to_str().unwrap().split_once('=').unwrap();
            let value = rest.split(';').next().unwrap();
            cookies.insert(name.to_owned(), value.to_owned());
        }
        assert!(response.status().is_redirection(), "{} {url}", response.status());
        url = url.join(response.headers()[LOCATION].to_str().unwrap()).unwrap();
        if url.host_str() == Some("api.example.com") {
            return url.query_pairs().into_owned().collect();
        }
    }
    panic!("the provider does not redirect to the API: {url}");
}

#[tokio::test]
async fn users_of_a_certified_provider_sign_in() {
    let stack = Stack::start().await;
    // The ID token of the flow has no address; the user-info endpoint has it.
    stack.assert_signed_in(&stack.sign_in(MIRA, &[]).await, MIRA).await;
    stack.assert_signed_in(&stack.sign_in("Mira@Example.com", &[]).await, MIRA).await;
    // With this parameter, the ID token has it.
    let claims = json!({"id_token": {"email": null, "email_verified": null}}).to_string();
    let in_token = &[("claims", claims.as_str()), ("scope", "openid")];
    stack.assert_signed_in(&stack.sign_in(MIRA, in_token).await, MIRA).await;
    // Without the scope, no address is given.
    assert_failed(&stack.sign_in(MIRA, &[("scope", "openid")]).await, "oidc_failed");

    let unverified = "unverified@example.org";
    for changes in [&[][..], in_token] {
        assert_failed(&stack.sign_in(unverified, changes).await, "email_unverified");
        assert_failed(&stack.sign_in("juno@example.net", changes).await, "not_a_member");
    }
    let juno = "juno@example.org";
    stack.assert_signed_in(&stack.sign_in(juno, &[]).await, juno).await;
}

#[tokio::test]
async fn changed_requests_to_a_certified_provider_fail() {
    let stack = Stack::start().await;
    for changes in [
        &[("nonce", "another")][..],
        &[("nonce", "")],
        &[("client_id", "another-client")],
        &[("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")],
        // The provider requires PKCE, and responds with an error. So it does to the next one.
        &[("code_challenge", ""), ("code_challenge_method", "")],
        &[("prompt", "none")],
        &[("state", "another")],
        &[("state", "")],
    ] {
        let reply = stack.sign_in(MIRA, changes).await;
        assert_eq!(location(&reply), "/console/sign-in#error=oidc_failed", "{changes:?}");
        assert_failed(&reply, "oidc_failed");
    }
    stack.assert_signed_in(&stack.sign_in(MIRA, &[]).await, MIRA).await;
}

#[tokio::test]
async fn codes_of_a_certified_provider_work_once_and_for_one_sign_in() {
    let stack = Stack::start().await;
    let (one, other) = (stack.begin().await, stack.begin().await);
    let response = authorize(&one.request, MIRA, &[]).await;
    // The state of another sign-in, and another browser.
    let foreign = Parameters::from([
        ("code".to_owned(), response["code"].clone()),
        ("state".to_owned(), authorize(&other.request, MIRA, &[]).await["state"].clone()),
    ]);
    assert_failed(&stack.respond(&one.browser, &foreign).await, "oidc_failed");
    assert_failed(&stack.respond(&other.browser, &foreign).await, "oidc_failed");

    let used = stack.begin().await;
    let response = authorize(&used.request, MIRA, &[]).await;
    stack.assert_signed_in(&stack.respond(&used.browser, &response).await, MIRA).await;
    assert_failed(&stack.respond(&used.browser, &response).await, "oidc_failed");
    let next = stack.begin().await;
    let mut replayed = authorize(&next.request, MIRA, &[]).await;
    replayed.insert("code".to_owned(), response["code"].clone());
    assert_failed(&stack.respond(&next.browser, &replayed).await, "oidc_failed");
}

#[tokio::test]
async fn a_certified_provider_rotates_keys_and_expires_codes() {
    let mut stack = Stack::start().await;
    stack.assert_signed_in(&stack.sign_in(MIRA, &[]).await, MIRA).await;
    stack.provider.restart(&[]).await;
    // The cached keys do not verify this token.
    stack.assert_signed_in(&stack.sign_in(MIRA, &[]).await, MIRA).await;

    stack.provider.restart(&[("CODE_SECONDS", "2")]).await;
    let late = stack.begin().await;
    let response = authorize(&late.request, MIRA, &[]).await;
    tokio::time::sleep(Duration::from_millis(3_100)).await;
    assert_failed(&stack.respond(&late.browser, &response).await, "oidc_failed");
    // A fresh code works. A busy computer can need several attempts.
    for _ in 0..20 {
        let reply = stack.sign_in(MIRA, &[]).await;
        if location(&reply) == "/console" {
            return stack.assert_signed_in(&reply, MIRA).await;
        }
    }
    panic!("no code works");
}
