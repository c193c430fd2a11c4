//! Recipients of emails.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use shared::projects::api_key::{ApiKeyRecord, Scope, UserId};
use shared::projects::member::MemberId;
use shared::projects::project::ProjectId;
use shared::projects::role::Role;
use tests::app::{PROJECT, TestApp, key_id};
use tests::call::Call;
use tests::notifications::{SentMessages, announce_trends, give_address, user};
use tests::people::{add_member, session_of};

use super::actions::{
    create_errors, create_flag, create_trend, deliver_many, set_preferences, set_status, start,
};

/// Types of emails, with the prefixes of their subjects.
const TYPES: [(&str, &str); 8] = [
    ("error_new", "[Shop] New error: "),
    ("error_regression", "[Shop] Regression: "),
    ("error_spike", "[Shop] Error spike: "),
    ("insight_new", "[Shop] New insight: "),
    ("insight_trending", "[Shop] Trending insight: "),
    ("flag_changed", "[Shop] Flag change: "),
    ("weekly_digest", "[Shop] Weekly digest: "),
    ("api_key_created", "New API key: "),
];

/// Time from the start of a test to Monday 08:00 UTC.
const TO_MONDAY: Duration = Duration::from_mins(51 * 60 + 44);

/// Returns the types of emails by address.
fn received(emails: &[Value]) -> BTreeMap<String, Vec<&'static str>> {
    let mut received: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for mail in emails {
        let subject = mail["subject"].as_str().unwrap();
        let found = TYPES.into_iter().find(|(_, prefix)| subject.starts_with(prefix));
        let (name, _) = found.unwrap_or_else(|| panic!("{subject}"));
        received.entry(mail["to"].as_str().unwrap().to_owned()).or_default().push(name);
    }
    for types in received.values_mut() {
        types.sort_unstable();
    }
    received
}

/// Creates a user with a key whose state or projects `sees` selects, all types on or off, and an
/// address if `confirmed`.
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

/// Preferences, keys and addresses count at the time of the email, not of the event. This applies
/// to first emails and to batches.
#[tokio::test]
async fn recipients_are_determined_when_emails_are_sent() {
    const NAMES: [&str; 6] = ["turned-off", "turned-on", "revoked", "moved", "late", "same"];
    for is_batched in [false, true] {
        let (test, outbound) = (TestApp::start().await, SentMessages::open());
        let mut keys = BTreeMap::new();
        for name in NAMES {
            keys.insert(name, test.key_of(name).await);
        }
        outbound.run(&test.app).await;
        for name in NAMES.into_iter().filter(|name| *name != "late") {
            give_address(&test.app, &user(name), &format!("{name}@example.com")).await;
        }
        set_preferences(&test, &keys["turned-on"], &["error_new"], false).await;
        if is_batched {
            create_errors(&test, 0, 1).await;
            outbound.run(&test.app).await;
        }
        let earlier = outbound.emails().await.len();

        create_errors(&test, 1, 1).await;
        if is_batched {
            // Users with an open window wait. The entry is complete for the others.
            outbound.run(&test.app).await;
            assert_eq!(outbound.emails().await.len(), earlier);
        }
        set_preferences(&test, &keys["turned-off"], &["error_new"], false).await;
        set_preferences(&test, &keys["turned-on"], &["error_new"], true).await;
        let now = test.app.clock.now();
        test.app.store.revoke_api_key(&key_id(&keys["revoked"]), now).await.unwrap();
        give_address(&test.app, &user("moved"), "elsewhere@example.com").await;
        give_address(&test.app, &user("late"), "late@example.com").await;
        if is_batched {
            test.pass(Duration::from_mins(10));
        }
        outbound.run(&test.app).await;
        let emails = outbound.emails().await;
        let recipients =
            emails[..emails.len() - earlier].iter().map(|mail| mail["to"].as_str().unwrap());
        let recipients: BTreeSet<&str> = recipients.collect();
        let mut expected = BTreeSet::from(["elsewhere@example.com", "same@example.com"]);
        if !is_batched {
            expected.extend(["late@example.com", "turned-on@example.com"]);
        }
        assert_eq!(recipients, expected, "batched: {is_batched}");
    }
}

/// Members get emails at the sign-in address or a confirmed one. Keys that members created do not
/// count: the membership decides.
#[tokio::test]
async fn members_get_emails_about_their_projects() {
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    let other = test.other_project().await;
    let limited = |project: ProjectId| Some(BTreeSet::from([project]));
    for (name, projects) in [
        ("all@example.com", None),
        ("this@example.com", limited(test.project_id)),
        ("other@example.com", limited(other)),
        ("moved@example.com", None),
        ("off@example.com", None),
    ] {
        let member = add_member(&test, name, "default", Role::Viewer, projects).await;
        if name == "off@example.com" {
            let session = session_of(&test, &member).await;
            let body = serde_json::json!({
                "preferences": [{"type": "error_new", "emailEnabled": false}],
            });
            let put = Call::of(&update_email_preferences::OPERATION).session(&session);
            assert_eq!(put.json(&body).send(&test.app).await.status, 200);
        }
    }
    give_address(&test.app, &user("moved@example.com"), "elsewhere@example.com").await;
    // A former member with a key and an address.
    let former = Some(MemberId::new(uuid::Uuid::from_u128(7)));
    let user_id = UserId::parse("former@example.com").unwrap();
    test.key_with(|key| ApiKeyRecord { user: user_id, member: former, ..key }).await;
    give_address(&test.app, &user("former@example.com"), "former@example.com").await;

    create_errors(&test, 0, 1).await;
    outbound.run(&test.app).await;
    let emails = outbound.emails().await;
    let about_errors = received(&emails).into_iter().filter(|(_, it)| it.contains(&"error_new"));
    let recipients: Vec<String> = about_errors.map(|(to, _)| to).collect();
    assert_eq!(recipients, ["all@example.com", "elsewhere@example.com", "this@example.com"]);
}

/// Users with the type on, a confirmed address and access to the project get the email. No other
/// user does.
#[tokio::test]
async fn emails_go_to_eligible_users_only() {
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    let other = test.other_project().await;
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
    // Emails about the new keys are not part of this test.
    outbound.run(&test.app).await;
    test.pass(Duration::from_hours(1));
    outbound.run(&test.app).await;
    let earlier = outbound.emails().await.len();
    give_address(&test.app, &user("owner"), "owner@example.com").await;
    // The owner changes the flag.
    let all_but_flags = of_project.iter().copied().filter(|name| *name != "flag_changed");
    expected.insert("owner@example.com".to_owned(), all_but_flags.collect());

    // Another key that gives no access to the project.
    for name in &names {
        let user = UserId::parse(name).unwrap();
        let projects = Some([other].into());
        test.key_with(|key| ApiKeyRecord { user, projects, ..key }).await;
    }
    create_errors(&test, 0, 1).await;
    create_trend(&test, 0, "Checkout", [10, 4]).await;
    create_flag(&test, PROJECT, "beta").await;
    announce_trends(&test.app).await;
    outbound.run(&test.app).await;
    set_status(&test, "resolved").await;
    test.pass(Duration::from_hours(2));
    deliver_many(&test, 100, 20, "Errora").await;
    announce_trends(&test.app).await;
    outbound.run(&test.app).await;
    test.pass(TO_MONDAY.saturating_sub(Duration::from_hours(3)));
    announce_trends(&test.app).await;
    outbound.run(&test.app).await;

    let emails = outbound.emails().await;
    let received = received(&emails[..emails.len() - earlier]);
    for types in expected.values() {
        assert_eq!(types.iter().collect::<BTreeSet<_>>().len(), types.len());
    }
    assert_eq!(received, expected);
}

/// Each user has one key per scope. All events are in the project `it`.
#[tokio::test]
async fn emails_require_keys_with_matching_scopes() {
    use Scope::{ErrorsRead, ErrorsWrite, FlagsRead, InsightsRead, NotificationsRead};
    type Keys<'k> = [(Scope, &'k Option<BTreeSet<ProjectId>>)];
    let (test, outbound) = (TestApp::start().await, SentMessages::open());
    let other = test.other_project().await;
    let (it, all) = (Some(BTreeSet::from([test.project_id])), None);
    let other = Some(BTreeSet::from([other]));
    let users: [(&str, &Keys<'_>, &[&str]); 6] = [
        ("errors", &[(ErrorsRead, &it)], &["error_new"]),
        ("insights", &[(InsightsRead, &all)], &["insight_new"]),
        ("flags", &[(FlagsRead, &it)], &["flag_changed"]),
        // A digest needs all three scopes, of one key or several.
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
    outbound.run(&test.app).await;
    for (name, ..) in users {
        give_address(&test.app, &user(name), &format!("{name}@example.com")).await;
    }
    create_errors(&test, 0, 1).await;
    create_trend(&test, 0, "Checkout", [1, 0]).await;
    create_flag(&test, PROJECT, "beta").await;
    outbound.run(&test.app).await;
    test.pass(TO_MONDAY);
    announce_trends(&test.app).await;
    outbound.run(&test.app).await;
    assert_eq!(received(&outbound.emails().await), expected);
}

#[tokio::test]
async fn batches_of_deleted_projects_are_dropped() {
    let (test, outbound) = start().await;
    create_errors(&test, 0, 1).await;
    outbound.run(&test.app).await;
    assert_eq!(outbound.emails().await.len(), 1);
    create_errors(&test, 1, 3).await;
    outbound.run(&test.app).await;
    let project = test.app.store.read_project(test.project_id).await.unwrap().unwrap();
    assert!(test.app.store.erase_project(&project, test.app.clock.now()).await.unwrap());
    for _ in 0..2 {
        test.pass(Duration::from_mins(11));
        outbound.run(&test.app).await;
    }
    assert_eq!(outbound.emails().await.len(), 1);
}
