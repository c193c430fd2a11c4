//! Table `email-preferences`, key `userId`: one item per user with a choice. It has one attribute
//! per chosen type.

use aws_sdk_dynamodb::types::AttributeValue;

use shared::dynamodb::item::{Item, ItemReader, item, s};
use shared::dynamodb::{StoreError, Sweep};
use shared::projects::api_key::UserId;
use shared::projects::project::Organization;

use super::NotificationStore;
use crate::preferences::{EmailPreferences, EmailPreferencesUpdate};

const TABLE: &str = "email-preferences";
const KEY: &str = "userId";

impl NotificationStore<'_> {
    /// Returns the preferences of a user. Strongly consistent: users see their latest update.
    pub async fn find_email_preferences(
        self,
        organization: &Organization,
        user: &UserId,
    ) -> Result<EmailPreferences, StoreError> {
        let found = self.db.get(TABLE, item([(KEY, key(organization, user))])).await?;
        read_preferences(&found.unwrap_or_default())
    }

    /// Returns `true` if a user has stored choices. Strongly consistent.
    pub async fn has_email_preferences(
        self,
        organization: &Organization,
        user: &UserId,
    ) -> Result<bool, StoreError> {
        let found = self.db.get(TABLE, item([(KEY, key(organization, user))])).await?;
        Ok(found.is_some())
    }

    /// Applies an update, completely or not at all, and returns all preferences.
    ///
    /// Writes without a previous read, so that concurrent updates of different types all apply.
    pub async fn update_email_preferences(
        self,
        organization: &Organization,
        user: &UserId,
        update: &EmailPreferencesUpdate,
    ) -> Result<EmailPreferences, StoreError> {
        let mut assignments = Vec::new();
        let mut write = self.db.update(TABLE, item([(KEY, key(organization, user))]));
        for preference in update.preferences() {
            let name = preference.notification_type.as_str();
            // Placeholders, since a name can be a reserved word.
            assignments.push(format!("#{name} = :{name}"));
            let enabled = AttributeValue::Bool(preference.email_enabled);
            write = write
                .expression_attribute_names(format!("#{name}"), name)
                .expression_attribute_values(format!(":{name}"), enabled);
        }
        if !assignments.is_empty() {
            let assignments = format!("SET {}", assignments.join(", "));
            let written = self.db.write_if(write.update_expression(assignments)).await;
            written.map_err(|error| match error {
                StoreError::Contended(cause) => StoreError::Unavailable(cause),
                error => error,
            })?;
        }
        self.find_email_preferences(organization, user).await
    }

    /// Deletes the preferences of a user.
    pub async fn erase_email_preferences(
        self,
        organization: &Organization,
        user: &UserId,
    ) -> Result<Sweep, StoreError> {
        self.db.sweep_away(TABLE, vec![item([(KEY, key(organization, user))])], None).await
    }
}

/// Returns the key of a user in an organization. Organization names contain no `/`, so the first
/// one separates.
fn key(organization: &Organization, user: &UserId) -> AttributeValue {
    s(format_args!("{organization}/{user}"))
}

fn read_preferences(item: &Item) -> Result<EmailPreferences, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    EmailPreferences::from_choices(|notification_type| {
        reader.optional_boolean(notification_type.as_str())
    })
}
