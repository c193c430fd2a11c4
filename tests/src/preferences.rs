//! Constants shared by tests of notification email preferences.

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
