//! Email preferences of users, by notification type
//! (`docs/semantics/notification-preferences.md`).

use serde::Serialize;

use shared::json::{Fields, Json, JsonPath, Violations, array, boolean, note_duplicates, text};

use crate::notification_type::NotificationType;

/// Maximum items of an update. Valid updates have fewer, one per type; a higher limit lets
/// longer ones fail with a violation for each wrong item.
const MAX_ITEMS: usize = 100;

/// A user's preference for one notification type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EmailPreference {
    /// The notification type.
    #[serde(rename = "type")]
    pub notification_type: NotificationType,
    /// `true` if emails are on.
    pub email_enabled: bool,
}

/// A user's preference for every type. Types without a choice are on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EmailPreferences([EmailPreference; NotificationType::ALL.len()]);

impl EmailPreferences {
    /// Returns the preferences of a user with these choices. `chosen` returns the choice for a
    /// type.
    ///
    /// # Errors
    /// The first error of `chosen`.
    pub fn from_choices<E>(
        chosen: impl Fn(NotificationType) -> Result<Option<bool>, E>,
    ) -> Result<Self, E> {
        let mut preferences = Self::default();
        for preference in &mut preferences.0 {
            if let Some(email_enabled) = chosen(preference.notification_type)? {
                preference.email_enabled = email_enabled;
            }
        }
        Ok(preferences)
    }

    /// Returns `true` if emails of a type are on.
    pub fn is_enabled(&self, notification_type: NotificationType) -> bool {
        let chosen = self.0.iter().find(|it| it.notification_type == notification_type);
        chosen.is_some_and(|preference| preference.email_enabled)
    }
}

impl Default for EmailPreferences {
    fn default() -> Self {
        Self(
            NotificationType::ALL.map(|notification_type| EmailPreference {
                notification_type,
                email_enabled: true,
            }),
        )
    }
}

/// The preferences to set, at most one per type. Other types do not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailPreferencesUpdate(Vec<EmailPreference>);

impl EmailPreferencesUpdate {
    /// Parses the request body of update-email-preferences.
    pub fn read(body: &Json<'_>) -> Result<Self, Violations> {
        Fields::of_body(body, |fields, violations| {
            fields.required("preferences", violations, read_items)
        })
        .map(Self)
    }

    /// Returns the update that turns one type off.
    pub fn off(notification_type: NotificationType) -> Self {
        Self(vec![EmailPreference { notification_type, email_enabled: false }])
    }

    /// Returns the preferences to set.
    pub fn preferences(&self) -> &[EmailPreference] {
        &self.0
    }
}

fn read_items(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    violations: &mut Violations,
) -> Option<Vec<EmailPreference>> {
    let items = array(MAX_ITEMS, read_item)(json, path, violations);
    let type_of = |item: &Json<'_>| item.member_text("type").map(str::to_owned);
    note_duplicates(json, path, MAX_ITEMS, Some("type"), type_of, violations);
    items
}

fn read_item(
    json: &Json<'_>,
    path: &JsonPath<'_>,
    violations: &mut Violations,
) -> Option<EmailPreference> {
    Fields::read(json, path, violations, |fields, violations| {
        let notification_type = fields.required("type", violations, text(NotificationType::parse));
        let email_enabled = fields.required("emailEnabled", violations, boolean);
        Some(EmailPreference {
            notification_type: notification_type?,
            email_enabled: email_enabled?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use shared::json::ViolationCode;

    fn read(body: &Value) -> Result<Vec<EmailPreference>, Vec<(String, ViolationCode)>> {
        let body = body.to_string();
        let json = Json::parse(&body, 8).unwrap();
        let update = EmailPreferencesUpdate::read(&json).map(|update| update.0);
        update.map_err(|violations| {
            violations.listed().iter().map(|v| (v.pointer.clone(), v.code)).collect()
        })
    }

    fn violations(body: &Value) -> Vec<(String, ViolationCode)> {
        read(body).expect_err("the body has violations")
    }

    #[test]
    fn preferences_list_every_type_in_order() {
        let shown = serde_json::to_value(EmailPreferences::default()).unwrap();
        let expected = [
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
        ]
        .map(|name| json!({"type": name, "emailEnabled": true}));
        assert_eq!(shown, json!(expected));
    }

    #[test]
    fn choices_override_defaults() {
        let chosen = |notification_type| -> Result<Option<bool>, ()> {
            Ok(match notification_type {
                NotificationType::Billing => Some(false),
                NotificationType::ErrorNew => Some(true),
                _ => None,
            })
        };
        let EmailPreferences(preferences) = EmailPreferences::from_choices(chosen).unwrap();
        let disabled = preferences.iter().filter(|preference| !preference.email_enabled);
        let disabled: Vec<_> = disabled.map(|it| it.notification_type).collect();
        assert_eq!(disabled, [NotificationType::Billing]);
        assert_eq!(EmailPreferences::from_choices(|_| Err("unreadable")), Err("unreadable"));
    }

    #[test]
    fn updates_can_be_empty_and_in_any_order() {
        let update = read(&json!({"preferences": [
            {"type": "billing", "emailEnabled": true},
            {"emailEnabled": false, "type": "error_new"},
        ]}));
        let preference =
            |notification_type, email_enabled| EmailPreference { notification_type, email_enabled };
        let expected = [
            preference(NotificationType::Billing, true),
            preference(NotificationType::ErrorNew, false),
        ];
        assert_eq!(update.unwrap(), expected);
        assert_eq!(read(&json!({"preferences": []})).unwrap(), []);
    }

    #[test]
    fn all_violations_are_reported() {
        let body = json!({
            "preferences": [
                {"type": "billing", "emailEnabled": true},
                {"type": "newsletter", "emailEnabled": "no"},
                {"type": "billing", "emailEnabled": null},
                {"type": null, "email": true},
                "billing",
                {"type": 1, "emailEnabled": 0},
            ],
            "replace": true,
        });
        let expected = [
            ("/replace", ViolationCode::UnknownField),
            ("/preferences/1/type", ViolationCode::InvalidValue),
            ("/preferences/1/emailEnabled", ViolationCode::InvalidType),
            ("/preferences/2/emailEnabled", ViolationCode::Required),
            ("/preferences/3/email", ViolationCode::UnknownField),
            ("/preferences/3/type", ViolationCode::Required),
            ("/preferences/3/emailEnabled", ViolationCode::Required),
            ("/preferences/4", ViolationCode::InvalidType),
            ("/preferences/5/type", ViolationCode::InvalidType),
            ("/preferences/5/emailEnabled", ViolationCode::InvalidType),
            ("/preferences/2/type", ViolationCode::Duplicate),
        ];
        assert_eq!(violations(&body), expected.map(|(path, code)| (path.to_owned(), code)));
    }

    #[test]
    fn duplicate_types_with_equal_values_are_rejected() {
        let twice = json!({"type": "billing", "emailEnabled": true});
        let pointer = "/preferences/1/type".to_owned();
        let expected = [(pointer, ViolationCode::Duplicate)];
        assert_eq!(violations(&json!({"preferences": [twice, twice]})), expected);
    }

    #[test]
    fn preferences_must_be_a_short_array() {
        let at_preferences = |code| [("/preferences".to_owned(), code)];
        assert_eq!(violations(&json!({})), at_preferences(ViolationCode::Required));
        let null = json!({"preferences": null});
        assert_eq!(violations(&null), at_preferences(ViolationCode::Required));
        let object = json!({"preferences": {"billing": false}});
        assert_eq!(violations(&object), at_preferences(ViolationCode::InvalidType));
        let items = |count: usize| json!({"preferences": vec![1; count]});
        assert_eq!(violations(&items(MAX_ITEMS)).len(), MAX_ITEMS);
        assert_eq!(violations(&items(MAX_ITEMS + 1)), at_preferences(ViolationCode::TooManyItems));
        let bare = json!([{"type": "billing", "emailEnabled": true}]);
        assert_eq!(violations(&bare), [(String::new(), ViolationCode::InvalidType)]);
    }
}
