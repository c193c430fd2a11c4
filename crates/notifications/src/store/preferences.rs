//! Table `email-preferences`, key `userId`: one item per user with a choice. It has one attribute
//! per chosen type, and the ids of its latest updates.

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

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

    /// Applies an update, completely or not at all, and returns all preferences. `id` is a UUID of
    /// version 7 that orders the updates of the user.
    ///
    /// Writes without a previous read, so that concurrent updates of different types all apply.
    pub async fn update_email_preferences(
        self,
        organization: &Organization,
        user: &UserId,
        update: &EmailPreferencesUpdate,
        id: Uuid,
    ) -> Result<EmailPreferences, StoreError> {
        if update.preferences().is_empty() {
            return self.find_email_preferences(organization, user).await;
        }
        let choices = update.preferences().iter().map(|preference| {
            let enabled = AttributeValue::Bool(preference.email_enabled);
            (preference.notification_type.as_str(), enabled)
        });
        let choices: Vec<_> = choices.collect();
        let key = item([(KEY, key(organization, user))]);
        read_preferences(&self.db.set_in_order(TABLE, key, &choices, id).await?)
    }
}

impl NotificationStore<'_> {
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
