//! Notification types (`docs/semantics/notification-preferences.md`, "Types").

use serde::{Serialize, Serializer};

use shared::json::{FieldError, ViolationCode};

/// The type of a notification. Users turn emails on or off by type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotificationType {
    /// An invitation to an organization.
    OrganizationInvite,
    /// An invitation to a project.
    ProjectInvite,
    /// An error occurred for the first time.
    ErrorNew,
    /// A resolved error occurred again.
    ErrorRegression,
    /// An error occurs far more often than in the previous week.
    ErrorSpike,
    /// A replay insight was created.
    InsightNew,
    /// A replay insight affects many more sessions than in the previous period.
    InsightTrending,
    /// A feature flag was created, changed or deleted.
    FlagChanged,
    /// The weekly digest.
    WeeklyDigest,
    /// An API key was created.
    ApiKeyCreated,
    /// Invoices and payments.
    Billing,
}

impl NotificationType {
    /// Every type, in the order of responses.
    pub const ALL: [Self; 11] = [
        Self::OrganizationInvite,
        Self::ProjectInvite,
        Self::ErrorNew,
        Self::ErrorRegression,
        Self::ErrorSpike,
        Self::InsightNew,
        Self::InsightTrending,
        Self::FlagChanged,
        Self::WeeklyDigest,
        Self::ApiKeyCreated,
        Self::Billing,
    ];

    /// Parses the name in JSON.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let named = Self::ALL.into_iter().find(|known| known.as_str() == text);
        named.ok_or_else(|| {
            let types = Self::ALL.map(Self::as_str).join(", ");
            FieldError::new(ViolationCode::InvalidValue, format_args!("must be one of {types}"))
        })
    }

    /// Returns the name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OrganizationInvite => "organization_invite",
            Self::ProjectInvite => "project_invite",
            Self::ErrorNew => "error_new",
            Self::ErrorRegression => "error_regression",
            Self::ErrorSpike => "error_spike",
            Self::InsightNew => "insight_new",
            Self::InsightTrending => "insight_trending",
            Self::FlagChanged => "flag_changed",
            Self::WeeklyDigest => "weekly_digest",
            Self::ApiKeyCreated => "api_key_created",
            Self::Billing => "billing",
        }
    }
}

impl Serialize for NotificationType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
