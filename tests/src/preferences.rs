//! What tests of notification email preferences share.

/// Every type, in the order of the catalogue.
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
