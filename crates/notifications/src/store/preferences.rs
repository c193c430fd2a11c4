//! Table `email-preferences`, key `userId`: one item per user who ever chose, with one attribute
//! per type that was chosen, and the ids of its latest updates.

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
    /// The preferences of a user. Strongly consistent: users see what they have just set.
    pub async fn find_email_preferences(
        self,
        organization: &Organization,
        user: &UserId,
    ) -> Result<EmailPreferences, StoreError> {
        let found = self.db.get(TABLE, item([(KEY, key(organization, user))])).await?;
        read_preferences(&found.unwrap_or_default())
    }

    /// Whether a user ever chose. Strongly consistent.
    pub async fn has_email_preferences(
        self,
        organization: &Organization,
        user: &UserId,
    ) -> Result<bool, StoreError> {
        let found = self.db.get(TABLE, item([(KEY, key(organization, user))])).await?;
        Ok(found.is_some())
    }

    /// Sets the preferences that an update names, all or none of them, and answers all. `id`, of
    /// version 7, is the place of the update among those of the user.
    ///
    /// Nothing is read before the write, so that concurrent updates of different types all hold.
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
    /// Removes the preferences of a user.
    pub async fn erase_email_preferences(
        self,
        organization: &Organization,
        user: &UserId,
    ) -> Result<Sweep, StoreError> {
        self.db.sweep_away(TABLE, vec![item([(KEY, key(organization, user))])], None).await
    }
}

/// Users of the same name in two organizations are two people. An organization has no `/`, so the
/// first one separates.
fn key(organization: &Organization, user: &UserId) -> AttributeValue {
    s(format_args!("{organization}/{user}"))
}

fn read_preferences(item: &Item) -> Result<EmailPreferences, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    EmailPreferences::from_choices(|notification_type| {
        reader.optional_boolean(notification_type.as_str())
    })
}
