//! Table `quotas`, key `window`: how much a sender has sent in a minute.

use aws_sdk_dynamodb::types::ReturnValue;

use super::item::{ItemReader, item, n, s};
use super::{Store, StoreError, Sweep};
use crate::timestamp::Timestamp;

const TABLE: &str = "quotas";

impl Store {
    /// Removes windows that have expired from the next page of the table.
    pub async fn sweep_windows(
        &self,
        now: Timestamp,
        after: Option<&str>,
    ) -> Result<Sweep, StoreError> {
        self.sweep_expired(TABLE, "window", now.as_seconds(), after).await
    }

    /// Adds to what was taken in a window, and answers how much that is by now, of all who added.
    ///
    /// The one write that does not recognize itself: if its answer is lost it is sent again, and counts
    /// once more with each of its three attempts. The limit is then reached a little early, which is
    /// worth less than what a transaction costs, or a read.
    pub(crate) async fn add_to_window(
        &self,
        window: &str,
        added: u32,
        expires_at: i64,
    ) -> Result<u64, StoreError> {
        let update = self.client.update_item().table_name(self.table(TABLE));
        let written = update
            .set_key(Some(item([("window", s(window))])))
            .update_expression("SET expiresAt = :expiresAt ADD taken :added")
            .expression_attribute_values(":expiresAt", n(expires_at))
            .expression_attribute_values(":added", n(added))
            .return_values(ReturnValue::UpdatedNew)
            .send()
            .await?;
        let item = written.attributes.unwrap_or_default();
        ItemReader { table: TABLE, item: &item }.count("taken")
    }
}
