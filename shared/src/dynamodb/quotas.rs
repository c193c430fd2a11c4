//! Table `quotas`, key `window`: the count of a sender's requests or events in a minute.

use aws_sdk_dynamodb::types::ReturnValue;

use super::item::{ItemReader, item, n, s};
use super::{Store, StoreError, Sweep};
use crate::timestamp::Timestamp;

const TABLE: &str = "quotas";

impl Store {
    /// Removes expired windows from the next page of the table.
    pub async fn sweep_windows(
        &self,
        now: Timestamp,
        after: Option<&str>,
    ) -> Result<Sweep, StoreError> {
        self.sweep_expired(TABLE, "window", now.as_seconds(), after).await
    }

    /// Adds one to the count of a sender in the current hour, and returns the total. Repeats can
    /// count, as in a minute's window.
    pub async fn count_in_hour(&self, sender: &str, now: Timestamp) -> Result<u64, StoreError> {
        const HOUR_SECONDS: i64 = 3_600;
        let hour = now.as_seconds().div_euclid(HOUR_SECONDS);
        let window = format!("{sender}#hour-{hour}");
        self.add_to_window(&window, 1, (hour + 2) * HOUR_SECONDS).await
    }

    /// Adds to the count of a window and returns the total of all functions.
    ///
    /// This write does not recognize repeats. If its response is lost, it is sent again, and each
    /// of its three attempts can count. The limit is then reached a little early, which is cheaper
    /// than a transaction or a read.
    pub(crate) async fn add_to_window(
        &self,
        window: &str,
        added: u32,
        expires_at: i64,
    ) -> Result<u64, StoreError> {
        let update = self.client.update_item().table_name(self.table(TABLE));
        let written = update
            .set_key(Some(item([("window", s(window))])))
            .update_expression("SET expiresAt = :expiresAt ADD used :added")
            .expression_attribute_values(":expiresAt", n(expires_at))
            .expression_attribute_values(":added", n(added))
            .return_values(ReturnValue::UpdatedNew)
            .send()
            .await?;
        let item = written.attributes.unwrap_or_default();
        ItemReader { table: TABLE, item: &item }.count("used")
    }
}
