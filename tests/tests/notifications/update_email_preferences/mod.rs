//! update-email-preferences against a real engine: what it answers and what it stores.

mod access;
mod body;
mod failures;
mod update;

use serde_json::{Value, json};

use shared::app::Operation;
use tests::app::TestApp;
use tests::call::{Call, Reply};
use tests::preferences::TYPES;

const UPDATE: &Operation = &::update_email_preferences::OPERATION;

/// A call that lacks only its body.
fn call(test: &TestApp) -> Call {
    Call::of(UPDATE).key(&test.key)
}

/// A body that sets these preferences.
fn preferences(items: &[(&str, bool)]) -> Value {
    let preference =
        |(name, enabled): &(&str, bool)| json!({"type": name, "emailEnabled": enabled});
    json!({"preferences": items.iter().map(preference).collect::<Vec<_>>()})
}

/// The answer in which e-mail is sent for all types but these.
fn all_but(disabled: &[&str]) -> Value {
    json!(TYPES.map(|name| json!({"type": name, "emailEnabled": !disabled.contains(&name)})))
}

/// Sets preferences of the usual user.
async fn update(test: &TestApp, items: &[(&str, bool)]) -> Reply {
    call(test).json(&preferences(items)).send(&test.app).await
}
