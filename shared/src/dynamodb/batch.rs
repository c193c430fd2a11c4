//! Reading many items at once.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::KeysAndAttributes;
use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::item::Item;
use super::transaction::pause;
use super::{Store, StoreError};

/// The most keys of one `BatchGetItem`.
pub(crate) const MAX_KEYS: usize = 100;
/// How often what DynamoDB left unprocessed is asked for again.
const MAX_ROUNDS: u32 = 8;
/// Batches under way at once.
const PARALLEL: usize = 8;

impl Store {
    /// The items of up to 100 keys of any tables, by table; those that are not there are left out.
    pub(crate) async fn batch_get(
        &self,
        mut keys: HashMap<String, KeysAndAttributes>,
    ) -> Result<HashMap<String, Vec<Item>>, StoreError> {
        let mut found: HashMap<String, Vec<Item>> = HashMap::new();
        for round in 0..MAX_ROUNDS {
            pause(round).await;
            let answer = self.client.batch_get_item().set_request_items(Some(keys)).send().await?;
            for (table, items) in answer.responses.unwrap_or_default() {
                found.entry(table).or_default().extend(items);
            }
            keys = answer.unprocessed_keys.unwrap_or_default();
            if keys.is_empty() {
                return Ok(found);
            }
        }
        Err(StoreError::Unavailable("keys of a batch stayed unprocessed".into()))
    }

    /// The items of any number of keys of one table, strongly consistent each, in no order; those
    /// that are not there are left out.
    pub(crate) async fn get_all(
        &self,
        table: &str,
        keys: Vec<Item>,
    ) -> Result<Vec<Item>, StoreError> {
        let table = self.table(table);
        let batches: Vec<_> =
            keys.chunks(MAX_KEYS).map(|keys| self.get_batch(&table, keys.to_vec())).collect();
        stream::iter(batches).buffer_unordered(PARALLEL).try_concat().await
    }

    async fn get_batch(&self, table: &str, keys: Vec<Item>) -> Result<Vec<Item>, StoreError> {
        let request = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true);
        let mut found =
            self.batch_get(HashMap::from([(table.to_owned(), request.build()?)])).await?;
        Ok(found.remove(table).unwrap_or_default())
    }
}
