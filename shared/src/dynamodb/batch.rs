//! Reading and deleting many items at once.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::{DeleteRequest, KeysAndAttributes, WriteRequest};
use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::error::is_conflict;
use super::item::Item;
use super::transaction::pause;
use super::{Store, StoreError};

/// The most keys of one `BatchGetItem`.
pub const MAX_KEYS: usize = 100;
/// The most keys of one `BatchGetItem` of items that may be large.
const MAX_LARGE_KEYS: usize = 20;
/// How often what DynamoDB left unprocessed is asked for again.
const MAX_ROUNDS: u32 = 8;
/// Batches under way at once.
const PARALLEL: usize = 8;
/// The most requests of one `BatchWriteItem`.
const MAX_DELETIONS: usize = 25;
/// How often what DynamoDB left unprocessed is deleted again.
const MAX_DELETION_ROUNDS: u32 = 10;
/// Batches of deletions under way at once: enough to keep DynamoDB busy, too few to take it from live
/// requests.
const PARALLEL_DELETIONS: usize = 4;

impl Store {
    /// The items of up to 100 keys of any tables, by table; those that are not there are left out.
    pub async fn batch_get(
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
    pub async fn get_all(&self, table: &str, keys: Vec<Item>) -> Result<Vec<Item>, StoreError> {
        self.get_batches(table, keys, MAX_KEYS, true).await
    }

    /// The same, eventually consistent, of items that may have some hundred kB each: a batch answers at
    /// most 16 MB.
    pub(crate) async fn get_all_eventually(
        &self,
        table: &str,
        keys: Vec<Item>,
    ) -> Result<Vec<Item>, StoreError> {
        self.get_batches(table, keys, MAX_LARGE_KEYS, false).await
    }

    async fn get_batches(
        &self,
        table: &str,
        keys: Vec<Item>,
        at_once: usize,
        consistent: bool,
    ) -> Result<Vec<Item>, StoreError> {
        let table = self.table(table);
        let batches: Vec<_> = keys
            .chunks(at_once)
            .map(|keys| self.get_batch(&table, keys.to_vec(), consistent))
            .collect();
        stream::iter(batches).buffer_unordered(PARALLEL).try_concat().await
    }

    async fn get_batch(
        &self,
        table: &str,
        keys: Vec<Item>,
        consistent: bool,
    ) -> Result<Vec<Item>, StoreError> {
        let request = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(consistent);
        let mut found =
            self.batch_get(HashMap::from([(table.to_owned(), request.build()?)])).await?;
        Ok(found.remove(table).unwrap_or_default())
    }

    /// Deletes the items of any number of keys, whether or not they are there. What is deleted must
    /// not be made anew: a deletion whose answer was lost is sent again.
    pub async fn delete_all(&self, table: &str, keys: Vec<Item>) -> Result<(), StoreError> {
        let table = self.table(table);
        let batches: Vec<_> = keys
            .chunks(MAX_DELETIONS)
            .map(|keys| self.delete_batch(&table, keys.to_vec()))
            .collect();
        stream::iter(batches).buffer_unordered(PARALLEL_DELETIONS).try_collect().await
    }

    async fn delete_batch(&self, table: &str, keys: Vec<Item>) -> Result<(), StoreError> {
        let mut requests = Vec::with_capacity(keys.len());
        for key in keys {
            let delete = DeleteRequest::builder().set_key(Some(key)).build()?;
            requests.push(WriteRequest::builder().delete_request(delete).build());
        }
        let mut unprocessed = HashMap::from([(table.to_owned(), requests)]);
        for round in 0..MAX_DELETION_ROUNDS {
            pause(round).await;
            let write = self.client.batch_write_item();
            match write.set_request_items(Some(unprocessed.clone())).send().await {
                Ok(answer) => unprocessed = answer.unprocessed_items.unwrap_or_default(),
                Err(error) if is_conflict(error.code()) => {}
                Err(error) => return Err(error.into()),
            }
            if unprocessed.is_empty() {
                return Ok(());
            }
        }
        Err(StoreError::Unavailable("deletions of a batch stayed unprocessed".into()))
    }
}
