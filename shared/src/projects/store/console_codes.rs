//! Keys sealed by console codes, in the table `idempotency`, whose items expire automatically.

use crate::dynamodb::idempotency::{KEY, TABLE};
use crate::dynamodb::item::{Item, ItemReader, b, item, n, s};
use crate::dynamodb::{Store, StoreError};
use crate::projects::api_key::ApiKey;
use crate::projects::console_code::ConsoleCode;
use crate::timestamp::Timestamp;

impl Store {
    /// Stores a key under a code until `expires_at`.
    pub async fn put_console_code(
        &self,
        code: &ConsoleCode,
        key: &ApiKey,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        let mut stored = item_key(code);
        stored.insert("sealedKey".to_owned(), b(&code.seal(key)));
        stored.insert("expiresAt".to_owned(), n(expires_at.as_seconds()));
        self.put_unless_there(TABLE, KEY, stored).await
    }

    /// Takes the key that a code opens. Returns `None` for codes that are wrong, expired or already
    /// used. A wrong code costs one read.
    pub async fn take_console_code(
        &self,
        code: &ConsoleCode,
        now: Timestamp,
    ) -> Result<Option<ApiKey>, StoreError> {
        let Some(found) = self.get(TABLE, item_key(code)).await? else { return Ok(None) };
        let reader = ItemReader { table: TABLE, item: &found };
        let expires_at = reader.optional_integer("expiresAt")?;
        if expires_at.is_none_or(|expires_at| expires_at <= now.as_seconds()) {
            return Ok(None);
        }
        let key =
            code.open(reader.blob("sealedKey")?).ok_or_else(|| reader.damaged("sealedKey"))?;
        let delete = self
            .delete(TABLE, item_key(code))
            .condition_expression("attribute_exists(#key)")
            .expression_attribute_names("#key", KEY);
        Ok(self.write_if(delete).await?.then_some(key))
    }
}

/// Returns the key of a code's item. The role of serve-console is limited to this prefix
/// (functions/serve-console/policies.yaml).
fn item_key(code: &ConsoleCode) -> Item {
    item([(KEY, s(format!("console-code#{}", code.hash())))])
}
