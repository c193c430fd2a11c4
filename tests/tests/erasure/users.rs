//! Erasure of users.

use local::environment::table_prefix;
use notifications::TokenKeyCache;
use notifications::notification_type::NotificationType;
use notifications::token::Token;
use shared::projects::api_key::{ApiKeyRecord, UserId};
use shared::projects::erasure::{Erasure, Subject};
use shared::projects::role::Role;
use tests::notifications::{give_address, user};
use tests::people::{add_member, session_of};

use super::*;

async fn create_user(test: &TestApp, name: &str) -> String {
    // At the time of the test clock.
    let (user_id, created_at) = (UserId::parse(name).unwrap(), test.app.clock.now());
    let key = test.key_with(|key| ApiKeyRecord { user: user_id, created_at, ..key }).await;
    let preferences = json!({"preferences": [{"type": "billing", "emailEnabled": false}]});
    let put = Call::of(&update_email_preferences::OPERATION).key(&key).json(&preferences);
    assert_eq!(put.send(&test.app).await.status, 200);
    give_address(&test.app, &user(name), &format!("{name}@example.com")).await;
    let member = add_member(test, name, "default", Role::Owner, None).await;
    session_of(test, &member).await;
    key
}

#[tokio::test]
async fn erased_users_leave_no_items() {
    let test = TestApp::start().await;
    create_user(&test, "mira").await;
    let token = Token::Unsubscribe {
        organization: user("gone").organization,
        user: user("gone").user,
        notification_type: NotificationType::Billing,
    };
    let token = token.seal(&test.app.cache::<TokenKeyCache>().get(&test.app.store).await.unwrap());
    let unsubscribe = Call::of(&unsubscribe::OPERATION).query("token", token);
    let before = everything(&test).await;
    let key = create_user(&test, "gone").await;
    assert!(!items_with(&test, "gone").await.is_empty());

    let (name, now) = (user("gone"), test.app.clock.now());
    let subject = Subject::User(name.organization.clone(), name.user.clone());
    let erasure = Erasure::new(subject, name.organization.clone(), "gone".to_owned(), now);
    assert!(test.app.store.erase_user(&erasure, vec![]).await.unwrap());
    assert!(
        !test.app.store.erase_user(&erasure, vec![]).await.unwrap(),
        "the erasure is in progress"
    );
    run_until_erased(&test).await;

    // Links in old emails still return a page, and store nothing.
    assert_eq!(unsubscribe.send(&test.app).await.status, 200);
    let left = items_with(&test, "gone").await;
    assert!(left.is_empty(), "{left:#?}");
    let keys = |all: &BTreeMap<String, Item>| -> BTreeSet<String> {
        all.keys().filter(|key| !key.starts_with("projects [S(\"erasures#")).cloned().collect()
    };
    assert_eq!(keys(&everything(&test).await), keys(&before));
    let rejected = Call::of(&get_caller::OPERATION).key(&key).send(&test.app).await;
    assert_eq!(rejected.problem(), (401, "invalid_api_key"));
}

#[tokio::test]
async fn erasures_wait_for_shared_feed_entries() {
    let test = TestApp::start().await;
    let line = AttributeValue::M(
        [
            ("kind".to_owned(), AttributeValue::S("flag_changed".to_owned())),
            ("project".to_owned(), AttributeValue::S(test.project_id.to_string())),
        ]
        .into(),
    );
    let key = [("pk", "shard#0"), ("sk", "feed#default#step#00000000000000000001")];
    test.tamper("notifications", key, "lines", AttributeValue::L(vec![line])).await;
    let erased = project(&test, test.project_id).await;
    test.app.store.erase_project(&erased, test.app.clock.now()).await.unwrap();
    let delay = async || {
        let erasures = test.app.store.list_erasures().await.unwrap();
        erase_data::delay_in_seconds(&erasures, test.app.clock.now())
    };
    assert_eq!(delay().await, 0, "the erasure is not due yet");
    for _ in 0..8 {
        test.pass(MINUTE * 10);
        erase(&test.app).await;
    }
    let at = test.app.store.list_erasures().await.unwrap().remove(0);
    assert_eq!(at.stage.as_str(), "notifications");
    // Checks every minute do not reset the delay that the alarm watches.
    let before = delay().await;
    for minutes in 1..=30 {
        test.pass(MINUTE);
        erase(&test.app).await;
        assert_eq!(delay().await, before + minutes * 60);
    }
    // Without the attribute of this release, the delay is measured as in earlier ones.
    let erasure_key = AttributeValue::S(format!("erasure#{}", at.subject));
    let update = test.client.update_item().table_name(format!("{}projects", table_prefix()));
    let update = update.key("idOrSlug", erasure_key).update_expression("REMOVE dueSince");
    update.send().await.unwrap();
    assert_eq!(delay().await, 0);
    test.tamper("notifications", key, "lines", AttributeValue::L(Vec::new())).await;
    run_until_erased(&test).await;
}
