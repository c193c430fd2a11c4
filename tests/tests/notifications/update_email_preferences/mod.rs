//! update-email-preferences with a real engine.

mod access;
mod failures;
mod update;

use serde_json::{Value, json};

use shared::app::Operation;
use tests::app::TestApp;
use tests::call::{Call, Reply};
use tests::preferences::{TYPES, all_but};

const UPDATE: &Operation = &::update_email_preferences::OPERATION;

/// Returns a call without its body.
fn call(test: &TestApp) -> Call {
    Call::of(UPDATE).key(&test.key)
}

/// Returns a body that sets these preferences.
fn preferences(items: &[(&str, bool)]) -> Value {
    let preference =
        |(name, enabled): &(&str, bool)| json!({"type": name, "emailEnabled": enabled});
    json!({"preferences": items.iter().map(preference).collect::<Vec<_>>()})
}

/// Updates the preferences of the test user.
async fn update(test: &TestApp, items: &[(&str, bool)]) -> Reply {
    call(test).json(&preferences(items)).send(&test.app).await
}
