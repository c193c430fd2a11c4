//! Whom mails go to.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use shared::projects::api_key::{ApiKeyRecord, Scope, UserId};
use shared::projects::project::ProjectId;
use tests::app::{PROJECT, TestApp, key_id};
use tests::notifications::{SentMessages, announce_trends, give_address, user};

use super::actions::{
    create_flag, create_trend, deliver_many, make_errors, set_preferences, set_status, start,
};

/// Every type that something brings about, and how the subjects of its mails begin.
const TYPES: [(&str, &str); 8] = [
    ("error_new", "New error in Shop: "),
    ("error_regression", "Back again in Shop: "),
    ("error_spike", "Spike in Shop: "),
    ("insight_new", "New insight in Shop: "),
    ("insight_trending", "Trending insight in Shop: "),
    ("flag_changed", "Flag changed in Shop: "),
    ("weekly_digest", "The week in Shop: "),
    ("api_key_created", "New API key: "),
];

/// From the start of a test to Monday, 08:00 UTC.
const TO_MONDAY: Duration = Duration::from_mins(51 * 60 + 44);

/// The types of mails that each address got.
fn received(mails: &[Value]) -> BTreeMap<String, Vec<&'static str>> {
    let mut received: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for mail in mails {
        let subject = mail["subject"].as_str().unwrap();
        let found = TYPES.into_iter().find(|(_, begin)| subject.starts_with(begin));
        let (name, _) = found.unwrap_or_else(|| panic!("{subject}"));
        received.entry(mail["to"].as_str().unwrap().to_owned()).or_default().push(name);
    }
    for types in received.values_mut() {
        types.sort_unstable();
    }
    received
}

/// Makes a user with a key for what it `sees`, all types on or off, and perhaps an address.
async fn add_user(
    test: &TestApp,
    name: &str,
    on: bool,
    confirmed: bool,
    sees: &str,
    other: ProjectId,
) {
    let user_id = UserId::parse(name).unwrap();
    let key = test
        .key_with(|key| ApiKeyRecord {
            user: user_id,
            projects: match sees {
                "it" => Some([test.project_id].into()),
                "other" => Some([other].into()),
                _ => None,
            },
            ..key
        })
        .await;
    set_preferences(test, &key, &TYPES.map(|(name, _)| name), on).await;
    if confirmed {
        give_address(&test.app, &user(name), &format!("{name}@example.com")).await;
    }
    let (now, key_id) = (test.app.clock.now(), key_id(&key));
    if sees == "revoked" {
        test.app.store.revoke_api_key(&key_id, now).await.unwrap();
    } else if sees == "expired" {
        let over = aws_sdk_dynamodb::types::AttributeValue::S(now.to_string());
        test.tamper("api-keys", [("keyId", key_id.as_str())], "expiresAt", over).await;
    }
}

/// What counts is how it is when a mail is sent, and not how it was when something happened: for the first mail,
/// and for what is gathered.
#[tokio::test]
async fn whatever_is_changed_before_a_mail_is_sent_counts() {
    const NAMES: [&str; 6] = ["switched-off", "switched-on", "blind", "moved", "late", "same"];
    for is_gathered in [false, true] {
        let (test, post) = (TestApp::start().await, SentMessages::open());
        let mut keys = BTreeMap::new();
        for name in NAMES {
            let user_id = UserId::parse(name).unwrap();
            keys.insert(name, test.key_with(|key| ApiKeyRecord { user: user_id, ..key }).await);
        }
        post.run(&test.app).await;
        for name in NAMES.into_iter().filter(|name| *name != "late") {
            give_address(&test.app, &user(name), &format!("{name}@example.com")).await;
        }
        set_preferences(&test, &keys["switched-on"], &["error_new"], false).await;
        if is_gathered {
            make_errors(&test, 0, 1).await;
            post.run(&test.app).await;
        }
        let before = post.mails().await.len();

        make_errors(&test, 1, 1).await;
        if is_gathered {
            // Those of whom a window is open wait; the others were told, of nothing.
            post.run(&test.app).await;
            assert_eq!(post.mails().await.len(), before);
        }
        set_preferences(&test, &keys["switched-off"], &["error_new"], false).await;
        set_preferences(&test, &keys["switched-on"], &["error_new"], true).await;
        let now = test.app.clock.now();
        test.app.store.revoke_api_key(&key_id(&keys["blind"]), now).await.unwrap();
        give_address(&test.app, &user("moved"), "elsewhere@example.com").await;
        give_address(&test.app, &user("late"), "late@example.com").await;
        if is_gathered {
            test.pass(Duration::from_mins(10));
        }
        post.run(&test.app).await;
        let mails = post.mails().await;
        let told = mails[..mails.len() - before].iter().map(|mail| mail["to"].as_str().unwrap());
        let told: BTreeSet<&str> = told.collect();
        let mut expected = BTreeSet::from(["elsewhere@example.com", "same@example.com"]);
        if !is_gathered {
            expected.extend(["late@example.com", "switched-on@example.com"]);
        }
        assert_eq!(told, expected, "gathered: {is_gathered}");
    }
}

/// Whoever has a type on, a confirmed address and sight of the project gets the mail, and nobody else: for
/// every type that something brings about.
#[tokio::test]
async fn mails_go_exactly_where_they_belong() {
    let (test, post) = (TestApp::start().await, SentMessages::open());
    let other = local::demo::ensure_project(&test.app.store, "other", "Other").await.unwrap();
    let of_project = TYPES.map(|(name, _)| name).into_iter().filter(|it| *it != "api_key_created");
    let of_project: Vec<&str> = of_project.collect();
    let mut expected = BTreeMap::new();
    let mut names = Vec::new();
    for on in [true, false] {
        for confirmed in [true, false] {
            for sees in ["all", "it", "other", "revoked", "expired"] {
                let name = format!("{on}-{confirmed}-{sees}");
                add_user(&test, &name, on, confirmed, sees, other).await;
                if on && confirmed {
                    let mut types = vec!["api_key_created"];
                    if matches!(sees, "all" | "it") {
                        types.extend(&of_project);
                    }
                    types.sort_unstable();
                    expected.insert(format!("{name}@example.com"), types);
                }
                names.push(name);
            }
        }
    }
    // What is about the keys themselves goes out now, and counts from the next one on.
    post.run(&test.app).await;
    test.pass(Duration::from_hours(1));
    post.run(&test.app).await;
    let before = post.mails().await.len();
    give_address(&test.app, &user("owner"), "owner@example.com").await;
    // The owner changes the flag.
    let all_but_flags = of_project.iter().copied().filter(|name| *name != "flag_changed");
    expected.insert("owner@example.com".to_owned(), all_but_flags.collect());

    // A key that shows nothing new to anybody.
    for name in &names {
        let user = UserId::parse(name).unwrap();
        let projects = Some([other].into());
        test.key_with(|key| ApiKeyRecord { user, projects, ..key }).await;
    }
    make_errors(&test, 0, 1).await;
    create_trend(&test, 0, "Checkout", [10, 4]).await;
    create_flag(&test, PROJECT, "beta").await;
    announce_trends(&test.app).await;
    post.run(&test.app).await;
    set_status(&test, "resolved").await;
    test.pass(Duration::from_hours(2));
    deliver_many(&test, 100, 20, "Errora").await;
    announce_trends(&test.app).await;
    post.run(&test.app).await;
    test.pass(TO_MONDAY.saturating_sub(Duration::from_hours(3)));
    announce_trends(&test.app).await;
    post.run(&test.app).await;

    let mails = post.mails().await;
    let received = received(&mails[..mails.len() - before]);
    for types in expected.values() {
        assert_eq!(types.iter().collect::<BTreeSet<_>>().len(), types.len());
    }
    assert_eq!(received, expected);
}

/// Each user has a key for each of some scopes and projects; `it` is the one in which all happens.
#[tokio::test]
async fn a_mail_needs_keys_that_may_read_what_it_tells() {
    use Scope::{ErrorsRead, ErrorsWrite, FlagsRead, InsightsRead, NotificationsRead};
    type Keys<'k> = [(Scope, &'k Option<BTreeSet<ProjectId>>)];
    let (test, post) = (TestApp::start().await, SentMessages::open());
    let other = local::demo::ensure_project(&test.app.store, "other", "Other").await.unwrap();
    let (it, all) = (Some(BTreeSet::from([test.project_id])), None);
    let other = Some(BTreeSet::from([other]));
    let users: [(&str, &Keys<'_>, &[&str]); 6] = [
        ("errors", &[(ErrorsRead, &it)], &["error_new"]),
        ("insights", &[(InsightsRead, &all)], &["insight_new"]),
        ("flags", &[(FlagsRead, &it)], &["flag_changed"]),
        // A digest needs all three scopes, of any keys.
        (
            "each",
            &[(ErrorsRead, &it), (InsightsRead, &it), (FlagsRead, &all)],
            &["error_new", "flag_changed", "insight_new", "weekly_digest"],
        ),
        ("elsewhere", &[(ErrorsRead, &other), (NotificationsRead, &all)], &[]),
        ("writer", &[(ErrorsWrite, &all), (FlagsRead, &other)], &[]),
    ];
    let mut expected = BTreeMap::new();
    for (name, keys, types) in users {
        for &(scope, projects) in keys {
            let user = UserId::parse(name).unwrap();
            let (scopes, projects) = ([scope].into(), projects.clone());
            test.key_with(|key| ApiKeyRecord { user, scopes, projects, ..key }).await;
        }
        if !types.is_empty() {
            expected.insert(format!("{name}@example.com"), types.to_vec());
        }
    }
    // No user has an address when the new keys are announced.
    post.run(&test.app).await;
    for (name, ..) in users {
        give_address(&test.app, &user(name), &format!("{name}@example.com")).await;
    }
    make_errors(&test, 0, 1).await;
    create_trend(&test, 0, "Checkout", [1, 0]).await;
    create_flag(&test, PROJECT, "beta").await;
    post.run(&test.app).await;
    test.pass(TO_MONDAY);
    announce_trends(&test.app).await;
    post.run(&test.app).await;
    assert_eq!(received(&post.mails().await), expected);
}

/// What was gathered of a project that is deleted before its window ends is told to nobody.
#[tokio::test]
async fn nobody_is_told_of_a_project_that_is_gone() {
    let (test, post) = start().await;
    make_errors(&test, 0, 1).await;
    post.run(&test.app).await;
    assert_eq!(post.mails().await.len(), 1);
    make_errors(&test, 1, 3).await;
    post.run(&test.app).await;
    let project = test.app.store.read_project(test.project_id).await.unwrap().unwrap();
    assert!(test.app.store.erase_project(&project, test.app.clock.now()).await.unwrap());
    for _ in 0..2 {
        test.pass(Duration::from_mins(11));
        post.run(&test.app).await;
    }
    assert_eq!(post.mails().await.len(), 1);
}
