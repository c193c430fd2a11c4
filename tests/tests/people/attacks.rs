//! Attacks on sign-in and sessions, with a test for each.

use std::collections::BTreeSet;

use lambda_http::http::Method;
use serde_json::{Value, json};
use shared::projects::api_key::{ApiKeyRecord, Scope};
use shared::projects::role::Role;
use tests::app::{PROJECT, TestApp};
use tests::call::Call;
use tests::notifications::SentMessages;
use tests::people::{add_member, session_of, signed_in};

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

#[tokio::test]
async fn responses_do_not_reveal_members() {
    let test = TestApp::start().await;
    add_member(&test, MIRA, "default", Role::Viewer, None).await;
    let cost = async |email: &str| {
        test.round_trips();
        let reply = request(&test, email).await;
        let mut headers = reply.headers.clone();
        let cookie = headers.remove("set-cookie").unwrap();
        (test.round_trips(), reply.status, reply.text.clone(), headers, cookie.len())
    };
    let member = cost(MIRA).await;
    assert_eq!((member.1, member.2.as_str()), (202, "{}"));
    for stranger in ["juno@example.com", "x@example.org"] {
        assert_eq!(cost(stranger).await, member, "{stranger}");
    }
    // Over the limit, too.
    for _ in 0..5 {
        assert_eq!(cost(MIRA).await, member);
    }
}

#[tokio::test]
#[ignore = "measures time: run it alone"]
async fn response_times_do_not_reveal_members() {
    let mut test = TestApp::start().await;
    add_member(&test, MIRA, "default", Role::Viewer, None).await;
    let mut medians = Vec::new();
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..1_000 {
        // Each hour has its own limits.
        test.pass(std::time::Duration::from_mins(30));
        for (email, times) in [MIRA, "juno@example.com"].into_iter().zip(&mut times) {
            let started = std::time::Instant::now();
            assert_eq!(request(&test, email).await.status, 202, "{round}");
            times.push(started.elapsed());
        }
    }
    for times in &mut times {
        times.sort();
        medians.push(times[500].as_secs_f64());
        println!("p10 {:?}, p50 {:?}, p90 {:?}", times[100], times[500], times[900]);
    }
    assert!((medians[0] / medians[1] - 1.0).abs() < 0.05, "{medians:?}");
    test.app = test.app.recording_uses();
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
    let other = local::demo::ensure_project(&test.app.store, "other", "Other").await.unwrap();
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
