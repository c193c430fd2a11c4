//! Authorization of update-email-preferences.

use shared::projects::api_key::{ApiKeyRecord, UserId};
use shared::projects::project::Organization;
use tests::app::TestApp;
use tests::call::Call;

use super::{UPDATE, all_but, preferences, update};

#[tokio::test]
async fn keys_of_a_user_share_preferences() {
    let test = TestApp::start().await;
    let of = |organization: &str, user: &str| {
        let organization = Organization::parse(organization).unwrap();
        let user = UserId::parse(user).unwrap();
        test.key_with(|key| ApiKeyRecord { organization, user, ..key })
    };
    let people = [
        (of("default", "mira").await, "billing"),
        (of("foreign", "owner").await, "error_new"),
        (of("foreign", "mira").await, "error_spike"),
        // A slash in a user's name must not reach another organization.
        (of("default", "foreign/owner").await, "flag_changed"),
        (of("default", "/").await, "weekly_digest"),
    ];
    update(&test, &[("project_invite", false)]).await;
    for (key, name) in &people {
        let call = Call::of(UPDATE).key(key).json(&preferences(&[(name, false)]));
        assert_eq!(call.send(&test.app).await.body, all_but(&[name]));
    }
    for (key, name) in &people {
        let call = Call::of(UPDATE).key(key).json(&preferences(&[]));
        assert_eq!(call.send(&test.app).await.body, all_but(&[name]));
    }
    assert_eq!(update(&test, &[]).await.body, all_but(&["project_invite"]));
    assert_eq!(test.items("email-preferences").await.len(), 6);

    let same_user = of("default", "owner").await;
    let call = Call::of(UPDATE).key(&same_user).json(&preferences(&[("billing", false)]));
    assert_eq!(call.send(&test.app).await.body, all_but(&["project_invite", "billing"]));
}

#[tokio::test]
async fn keys_for_some_projects_change_preferences() {
    let test = TestApp::start().await;
    let project = test.project_id;
    let key = test.key_with(|key| ApiKeyRecord { projects: Some([project].into()), ..key }).await;
    let call = Call::of(UPDATE).key(&key).json(&preferences(&[("billing", false)]));
    assert_eq!(call.send(&test.app).await.status, 200);
    assert_eq!(update(&test, &[]).await.body, all_but(&["billing"]));
}
