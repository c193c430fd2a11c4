//! What notifications are about (`docs/semantics/notification-preferences.md`, "Types"): the names by which
//! users choose, and by which what happens is announced.

use serde::{Serialize, Serializer};

use shared::json::{FieldError, ViolationCode};

/// What a notification is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotificationType {
    /// Somebody is invited to an organization.
    OrganizationInvite,
    /// Somebody is invited to a project.
    ProjectInvite,
    /// An error occurred for the first time.
    ErrorNew,
    /// A resolved error occurred again.
    ErrorRegression,
    /// An error occurs far more often than before.
    ErrorSpike,
    /// A replay insight was found.
    InsightNew,
    /// A replay insight affects more sessions than before.
    InsightTrending,
    /// A feature flag was changed.
    FlagChanged,
    /// What happened in the last week.
    WeeklyDigest,
    /// An API key was made.
    ApiKeyCreated,
    /// Invoices and payments.
    Billing,
}

impl NotificationType {
    /// Every type, in the order in which preferences are answered.
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

    /// Reads a type's name on the wire.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let named = Self::ALL.into_iter().find(|known| known.as_str() == text);
        named.ok_or_else(|| {
            let types = Self::ALL.map(Self::as_str).join(", ");
            FieldError::new(ViolationCode::InvalidValue, format_args!("must be one of {types}"))
        })
    }

    /// The type's name on the wire.
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
    fn types_have_names_both_ways() {
        for notification_type in NotificationType::ALL {
            assert_eq!(NotificationType::parse(notification_type.as_str()), Ok(notification_type));
        }
        let fault = NotificationType::parse("Billing").unwrap_err();
        assert_eq!(fault.code, ViolationCode::InvalidValue);
        for notification_type in NotificationType::ALL {
            assert!(fault.message.contains(notification_type.as_str()), "{}", fault.message);
        }
    }
}
