//! Table `email-preferences`, key `userId`: one item per user who ever chose, with one attribute
//! per type that was chosen.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};

use crate::preferences::{EmailPreferences, EmailPreferencesUpdate};
use crate::projects::api_key::UserId;
use crate::projects::project::Organization;

use crate::dynamodb::item::{Item, ItemReader, item, s};
use crate::dynamodb::{Store, StoreError};

const TABLE: &str = "email-preferences";
const KEY: &str = "userId";

impl Store {
    /// The preferences of a user. Strongly consistent: users see what they have just set.
    pub async fn find_email_preferences(
        &self,
        organization: &Organization,
        user: &UserId,
    ) -> Result<EmailPreferences, StoreError> {
        let found = self.get(TABLE, item([(KEY, key(organization, user))])).await?;
        read_preferences(&found.unwrap_or_default())
    }

    /// Sets the preferences that an update names, all or none of them, and answers all.
    ///
    /// Nothing is read before the write, so that concurrent updates of different types all hold.
    pub async fn update_email_preferences(
        &self,
        organization: &Organization,
        user: &UserId,
        update: &EmailPreferencesUpdate,
    ) -> Result<EmailPreferences, StoreError> {
        // DynamoDB refuses an expression that sets nothing.
        if update.preferences().is_empty() {
            return self.find_email_preferences(organization, user).await;
        }
        let mut request = self
            .client
            .update_item()
            .table_name(self.table(TABLE))
            .key(KEY, key(organization, user))
            .return_values(ReturnValue::AllNew);
        let mut assignments = Vec::with_capacity(update.preferences().len());
        for preference in update.preferences() {
            let name = preference.notification_type.as_str();
            let enabled = AttributeValue::Bool(preference.email_enabled);
            // By placeholders: some day a type may have the name of a reserved word.
            assignments.push(format!("#{name} = :{name}"));
            request = request
                .expression_attribute_names(format!("#{name}"), name)
                .expression_attribute_values(format!(":{name}"), enabled);
        }
        let expression = format!("SET {}", assignments.join(", "));
        let answer = request.update_expression(expression).send().await?;
        read_preferences(&answer.attributes.unwrap_or_default())
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
