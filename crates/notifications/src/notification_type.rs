//! Notification types (`docs/semantics/notification-preferences.md`, "Types").

use shared::named_enum;

named_enum! {
    /// The type of a notification. Users turn emails on or off by type.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum NotificationType {
        /// An invitation to an organization.
        OrganizationInvite = "organization_invite",
        /// An invitation to a project.
        ProjectInvite = "project_invite",
        /// An error occurred for the first time.
        ErrorNew = "error_new",
        /// A resolved error occurred again.
        ErrorRegression = "error_regression",
        /// An error occurs far more often than in the previous week.
        ErrorSpike = "error_spike",
        /// A replay insight was created.
        InsightNew = "insight_new",
        /// A replay insight affects many more sessions than in the previous period.
        InsightTrending = "insight_trending",
        /// A feature flag was created, changed or deleted.
        FlagChanged = "flag_changed",
        /// The weekly digest.
        WeeklyDigest = "weekly_digest",
        /// An API key was created.
        ApiKeyCreated = "api_key_created",
        /// Invoices and payments.
        Billing = "billing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::json::ViolationCode;

    #[test]
    fn types_round_trip_as_text() {
        for notification_type in NotificationType::ALL {
            assert_eq!(NotificationType::parse(notification_type.as_str()), Ok(notification_type));
        }
        let error = NotificationType::parse("Billing").unwrap_err();
        assert_eq!(error.code, ViolationCode::InvalidValue);
        for notification_type in NotificationType::ALL {
            assert!(error.message.contains(notification_type.as_str()), "{}", error.message);
        }
    }
}
