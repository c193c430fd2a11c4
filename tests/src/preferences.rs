//! The types of notification emails, and preferences for them.

use serde_json::{Value, json};

/// All notification types, in catalog order.
pub const TYPES: [&str; 11] = [
    "organization_invite",
    "project_invite",
    "error_new",
    "error_regression",
    "error_spike",
    "insight_new",
    "insight_trending",
    "flag_changed",
    "weekly_digest",
    "api_key_created",
    "billing",
];

/// Returns the response of the preference operations if all types are on, except for these.
pub fn all_but(disabled: &[&str]) -> Value {
    json!(TYPES.map(|name| json!({"type": name, "emailEnabled": !disabled.contains(&name)})))
}
