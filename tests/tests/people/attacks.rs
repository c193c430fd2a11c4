//! Attacks on sign-in and sessions, with a test for each.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use lambda_http::http::{HeaderMap, Method};
use serde_json::{Value, json};
use shared::app::App;
use shared::http::OriginSecrets;
use shared::projects::api_key::{ApiKeyRecord, Scope};
use shared::projects::role::Role;
use tests::app::{PROJECT, StoreTimeouts, TestApp};
use tests::call::Call;
use tests::notifications::SentMessages;
use tests::people::{add_member, session_of, signed_in};
use tests::proxy::{RecordedRequest, Recorder};

use super::support::{
    BROWSER, COMPLETE, MIRA, REQUEST, SESSION, SIGN_OUT, SWITCH, assert_problem, complete, me,
    request, requested,
};

#[tokio::test]
async fn planted_sessions_are_replaced_at_sign_in() {
    let (test, sent) = (TestApp::start().await, SentMessages::open());
    add_member(&test, MIRA, "default", Role::Viewer, None).await;
    let (_, planted) = signed_in(&test, "attacker@example.com", Role::Viewer).await;
    let link = requested(&test, &sent, MIRA).await;
    let cookies = format!("{SESSION}={planted}; {BROWSER}={}", link.browser);
    let call = Call::of(COMPLETE).from_console().header("cookie", &cookies);
    let reply = call.json(&json!({"token": link.token})).send(&test.app).await;
    let session = reply.cookie(SESSION).unwrap();
    assert_ne!(session, planted);
    assert_eq!(me(&test, &session).await.body["email"], MIRA);
    assert_eq!(me(&test, &planted).await.body["email"], "attacker@example.com");
}

#[tokio::test]
async fn cross_site_requests_change_nothing() {
    let (test, sent) = (TestApp::start().await, SentMessages::open());
    let (_, session) = signed_in(&test, MIRA, Role::Owner).await;
    let link = requested(&test, &sent, MIRA).await;
    let calls = [
        Call::of(SIGN_OUT).cookie(SESSION, &session),
        Call::of(SWITCH).cookie(SESSION, &session).json(&json!({"organization": "acme"})),
        Call::of(&create_feature_flag::OPERATION)
            .parameter("idOrSlug", PROJECT)
            .cookie(SESSION, &session)
            .json(&json!({"key": "a", "name": "A", "type": "boolean"})),
        Call::of(REQUEST).json(&json!({"email": MIRA})),
        Call::of(COMPLETE).cookie(BROWSER, &link.browser).json(&json!({"token": link.token})),
    ];
    for call in calls {
        for headers in [
            &[][..],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "none")],
            &[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
            &[("x-waymark-console", "0")],
            &[("origin", "https://evil.example"), ("content-type", "text/plain")],
        ] {
            let call =
                headers.iter().fold(call.clone(), |call, (name, value)| call.header(name, value));
            let id = call.id();
            let reply = call.send(&test.app).await;
            assert_eq!(reply.body["code"], "cross_site_request", "{id} {headers:?}");
            assert_eq!((reply.status, reply.cookie(SESSION)), (403, None));
        }
    }
    assert_eq!(me(&test, &session).await.status, 200);
    let proof = Call::of(COMPLETE).header("sec-fetch-site", "same-origin");
    let reply = proof.cookie(BROWSER, &link.browser).json(&json!({"token": link.token}));
    assert_eq!(reply.send(&test.app).await.status, 200);
}

#[tokio::test]
async fn preflights_do_not_permit_the_console_header() {
    let test = TestApp::start().await;
    let preflight = Call::of(SIGN_OUT).method(Method::OPTIONS).send(&test.app).await;
    let allowed = preflight.headers["access-control-allow-headers"].to_str().unwrap();
    assert!(!allowed.contains("x-waymark-console") && !allowed.contains('*'), "{allowed}");
    assert!(!preflight.headers.contains_key("access-control-allow-credentials"));
}

#[tokio::test]
async fn link_scanners_sign_no_user_in() {
    let (test, sent) = (TestApp::start().await, SentMessages::open());
    add_member(&test, MIRA, "default", Role::Viewer, None).await;
    let link = requested(&test, &sent, MIRA).await;
    for method in [Method::GET, Method::HEAD] {
        let scan = Call::of(COMPLETE).method(method).query("token", &link.token);
        let reply = scan.cookie(BROWSER, &link.browser).send(&test.app).await;
        assert_eq!(reply.cookie(SESSION), None);
        assert!(reply.status >= 400, "{}", reply.status);
    }
    assert_eq!(complete(&test, Some(&link.browser), &link.token, None).await.status, 200);
}

/// Requests a sign-in, and returns what the client and DynamoDB see of it.
async fn traced(
    test: &TestApp,
    recorder: &Recorder,
    email: &str,
    address: &str,
) -> (u16, String, HeaderMap, usize, Vec<RecordedRequest>) {
    recorder.take();
    let call = Call::of(REQUEST).from_console().source(address);
    let reply = call.json(&json!({"email": email})).send(&test.app).await;
    let mut headers = reply.headers;
    let cookie = headers.remove("set-cookie").unwrap();
    (reply.status, reply.text, headers, cookie.len(), recorder.take())
}

/// The proof behind `response_times_do_not_reveal_members`: the work is the same.
#[tokio::test]
async fn responses_do_not_reveal_members() {
    let mut test = TestApp::start().await;
    // Addresses of one length: members of one and of two organizations, an invited user, and an
    // unknown user.
    let emails = [MIRA, "olga@example.com", "ines@example.com", "juno@example.com"];
    add_member(&test, emails[0], "default", Role::Viewer, None).await;
    for organization in ["default", "acme"] {
        add_member(&test, emails[1], organization, Role::Owner, None).await;
    }
    let invitation = json!({"email": emails[2], "role": "viewer"});
    let invite = Call::of(&create_invitation::OPERATION).key(&test.key).json(&invitation);
    assert_eq!(invite.send(&test.app).await.status, 201);
    let recorder = Recorder::before(&test.engine.endpoint());
    test.put_behind_waiting(recorder.clone(), StoreTimeouts::Long).await;

    let mut traces = Vec::new();
    // Over the limit per address from the sixth round on, and over the one per network in the last.
    for round in 0..8 {
        let mut of_round = Vec::new();
        for (number, email) in emails.iter().enumerate() {
            let address = format!("203.0.113.{number}");
            for filler in 0..if round == 7 { 20 } else { 0 } {
                let email = format!("filler-{number}-{filler}@example.com");
                traced(&test, &recorder, &email, &address).await;
            }
            of_round.push(traced(&test, &recorder, email, &address).await);
        }
        assert!(of_round.iter().all(|trace| *trace == of_round[0]), "{round}: {of_round:#?}");
        traces.push(of_round.swap_remove(0));
    }
    let (status, text, ..) = &traces[0];
    assert_eq!((*status, text.as_str()), (202, "{}"));
    // Limits change no request either, only the digits of a count.
    let requests = |trace: &Vec<RecordedRequest>| -> Vec<String> {
        trace.iter().map(|it| format!("{it} {}", it.bytes.0)).collect()
    };
    for (.., trace) in &traces {
        assert_eq!(requests(trace), requests(&traces[0].4));
    }
    let actions: Vec<String> = traces[0].4.iter().map(ToString::to_string).collect();
    let expected = ["UpdateItem quotas", "UpdateItem quotas", "Query people", "PutItem people"];
    assert_eq!(actions, expected);
}

/// Compares pairs of requests, one of which is a member's and comes first in every other pair. A
/// load of the computer slows both alike. The engine needs some microseconds to read a membership,
/// so a small difference remains; a further request would add a quarter of the time.
#[tokio::test]
async fn response_times_do_not_reveal_members() {
    let pairs = std::env::var("SIGN_IN_PAIRS").map_or(100, |pairs| pairs.parse().unwrap());
    let test = TestApp::start().await;
    add_member(&test, MIRA, "default", Role::Viewer, None).await;
    let timed = async |email| {
        let started = Instant::now();
        assert_eq!(request(&test, email).await.status, 202);
        started.elapsed().as_secs_f64()
    };
    // The first requests open connections and fill caches.
    for email in [MIRA, "juno@example.com"] {
        timed(email).await;
    }
    let (mut times, mut differences) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        // Each hour has its own limits.
        test.pass(Duration::from_mins(30));
        let (member, unknown) = if pair % 2 == 0 {
            let member = timed(MIRA).await;
            (member, timed("juno@example.com").await)
        } else {
            let unknown = timed("juno@example.com").await;
            (timed(MIRA).await, unknown)
        };
        times.push(unknown);
        differences.push(member - unknown);
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let relative = median(differences) / median(times);
    println!("members took {:.1}% longer in the median of {pairs} pairs", relative * 100.0);
    // The second part is the sampling error on a busy computer.
    assert!(relative.abs() < 0.1 + 1.0 / f64::from(pairs).sqrt(), "{relative}");
}

#[tokio::test]
async fn headers_of_clients_evade_no_limit() {
    let test = TestApp::start().await;
    let counted = async |app: &App, address: &str, forged: &str| {
        let call = Call::of(REQUEST).from_console().source(address);
        let call = call.header("x-forwarded-for", forged).header("x-real-ip", forged);
        let call = call.header("cloudfront-viewer-address", &format!("{forged}:443"));
        let call = call.header("x-origin-secret", "the-secret-of-the-edge");
        assert_eq!(call.json(&json!({"email": MIRA})).send(app).await.status, 202);
        let mut counts: Vec<(String, String)> = Vec::new();
        for item in test.items("quotas").await {
            let window = item["window"].as_s().unwrap();
            if let Some(network) = window.strip_prefix("sign-in#network#") {
                let network = network.split('#').next().unwrap();
                counts.push((network.to_owned(), item["used"].as_n().unwrap().clone()));
            }
        }
        counts.sort();
        counts
    };
    let count = |network: &str, taken: &str| (network.to_owned(), taken.to_owned());
    counted(&test.app, "203.0.113.7", "198.51.100.1").await;
    let counts = counted(&test.app, "203.0.113.7", "198.51.100.2").await;
    assert_eq!(counts, [count("203.0.113.7", "2")]);
    // All addresses of an IPv6 network of 64 bits count together.
    counted(&test.app, "2001:db8:1:2:3:4:5:6", "198.51.100.1").await;
    let counts = counted(&test.app, "2001:db8:1:2::7", "198.51.100.2").await;
    assert_eq!(counts, [count("2001:db8:1:2::/64", "2"), count("203.0.113.7", "2")]);
    // Only a distribution that sends the secret reports the sender's address.
    let secrets = OriginSecrets::parse("the-secret-of-the-edge");
    let app = tests::app::app_over(&test.engine.endpoint()).0.with_origin_secrets(secrets);
    let counts = counted(&app, "203.0.113.7", "2001:db8::1").await;
    assert!(counts.contains(&count("2001:db8::/64", "1")), "{counts:?}");
}

#[tokio::test]
async fn keys_win_over_cookies_even_if_invalid() {
    let test = TestApp::start().await;
    let (_, session) = signed_in(&test, MIRA, Role::Owner).await;
    let narrow =
        test.key_with(|key| ApiKeyRecord { scopes: [Scope::FlagsRead].into(), ..key }).await;
    let with = async |key: &str| {
        Call::of(super::support::CALLER).session(&session).key(key).send(&test.app).await
    };
    assert_eq!(with(&narrow).await.body["scopes"], json!(["flags:read"]));
    assert_problem(&with("wm_wrong").await, 401, "invalid_api_key");
}

#[tokio::test]
async fn ingestion_ignores_sessions() {
    let test = TestApp::start().await;
    let (_, session) = signed_in(&test, MIRA, Role::Owner).await;
    let call = Call::of(&ingest_error_events::OPERATION).parameter("ingestId", "1");
    let reply = call.session(&session).bytes("{}\n").send(&test.app).await;
    assert!([401, 403].contains(&reply.status), "{} {}", reply.status, reply.body);
}

#[tokio::test]
async fn roles_do_not_exceed_their_scopes() {
    let test = TestApp::start().await;
    let flag = || {
        let call = Call::of(&create_feature_flag::OPERATION).parameter("idOrSlug", PROJECT);
        call.json(&json!({"key": "a", "name": "A", "type": "boolean"}))
    };
    let (_, viewer) = signed_in(&test, "viewer@example.com", Role::Viewer).await;
    assert_problem(&flag().session(&viewer).send(&test.app).await, 403, "insufficient_scope");
    let (_, member) = signed_in(&test, "member@example.com", Role::Member).await;
    assert_eq!(flag().session(&member).send(&test.app).await.status, 201);
}

#[tokio::test]
async fn project_lists_limit_sessions_and_their_keys() {
    let test = TestApp::start().await;
    let other = test.other_project().await;
    let limited = BTreeSet::from([other]);
    let member = add_member(&test, MIRA, "default", Role::Member, Some(limited)).await;
    let session = session_of(&test, &member).await;
    let key = |key| ApiKeyRecord { user: member.user.clone(), member: Some(member.id), ..key };
    let key = test.key_with(key).await;
    let list =
        |project: &str| Call::of(&list_feature_flags::OPERATION).parameter("idOrSlug", project);
    for (project, status) in [("other", 200), (PROJECT, 404)] {
        let reply = list(project).session(&session).send(&test.app).await;
        assert_eq!(reply.status, status, "{project}");
        assert_eq!(list(project).key(&key).send(&test.app).await.status, status, "{project}");
    }
    let projects = me(&test, &session).await.body["projects"].clone();
    assert_eq!(projects.as_array().unwrap().len(), 1);
    assert_eq!(projects[0]["slug"], "other");
}

#[tokio::test]
async fn sessions_see_one_organization() {
    let test = TestApp::start().await;
    let member = add_member(&test, MIRA, "acme", Role::Owner, None).await;
    let session = session_of(&test, &member).await;
    let list = Call::of(&list_feature_flags::OPERATION).parameter("idOrSlug", PROJECT);
    assert_problem(&list.session(&session).send(&test.app).await, 404, "project_not_found");
    // A member of both acts only in the session's organization.
    add_member(&test, MIRA, "default", Role::Owner, None).await;
    let list = Call::of(&list_feature_flags::OPERATION).parameter("idOrSlug", PROJECT);
    assert_problem(&list.session(&session).send(&test.app).await, 404, "project_not_found");
    assert_eq!(me(&test, &session).await.body["organization"], "acme");
}

#[tokio::test]
async fn unknown_sessions_are_rejected() {
    let test = TestApp::start().await;
    let (_, session) = signed_in(&test, MIRA, Role::Owner).await;
    let unknown = shared::projects::secret::Secret::generate().unwrap().reveal();
    let digest = shared::projects::secret::Secret::parse(&session).unwrap().digest();
    for other in ["x", &unknown, digest.as_str(), &format!("{session}A")] {
        let reply = me(&test, other).await;
        assert_problem(&reply, 401, "invalid_session");
        assert_eq!(reply.body["errors"], Value::Null);
    }
}
