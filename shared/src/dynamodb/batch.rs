//! Batched reads and deletions of items.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::{DeleteRequest, KeysAndAttributes, WriteRequest};
use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::error::is_conflict;
use super::immutable_items::{ItemKey, place};
use super::item::Item;
use super::transaction::pause;
use super::{Store, StoreError};

/// Most keys per `BatchGetItem`.
pub const MAX_KEYS: usize = 100;
/// Most keys per `BatchGetItem` of large items: a batch returns at most 16 MB.
const MAX_LARGE_KEYS: usize = 20;
/// Most attempts at a batch, since DynamoDB can leave keys unprocessed.
const MAX_ROUNDS: u32 = 8;
/// Concurrent batches.
const PARALLEL: usize = 8;
/// Most requests per `BatchWriteItem`.
const MAX_DELETIONS: usize = 25;
/// Most attempts at a batch of deletions, since DynamoDB can leave deletions unprocessed.
const MAX_DELETION_ROUNDS: u32 = 10;
/// Concurrent batches of a few deletions, and of many (`docs/erasure.md`, "Large projects"). They
/// leave some of a table's throughput to live requests.
const PARALLEL_DELETIONS: (usize, usize) = (4, 24);

impl Store {
    /// Returns the items with up to 100 keys of any tables, by table. Omits keys without an item.
    pub async fn batch_get(
        &self,
        mut keys: HashMap<String, KeysAndAttributes>,
    ) -> Result<HashMap<String, Vec<Item>>, StoreError> {
        let mut found: HashMap<String, Vec<Item>> = HashMap::new();
        for round in 0..MAX_ROUNDS {
            pause(round).await;
            let response =
                self.client.batch_get_item().set_request_items(Some(keys)).send().await?;
            for (table, items) in response.responses.unwrap_or_default() {
                found.entry(table).or_default().extend(items);
            }
            keys = response.unprocessed_keys.unwrap_or_default();
            if keys.is_empty() {
                return Ok(found);
            }
        }
        Err(StoreError::Unavailable("keys of a batch stayed unprocessed".into()))
    }

    /// Returns the items with these keys of one table, in no particular order. Omits keys without
    /// an item. Each read is strongly consistent.
    pub async fn get_all(&self, table: &str, keys: Vec<Item>) -> Result<Vec<Item>, StoreError> {
        self.get_batches(table, keys, MAX_KEYS, true).await
    }

    /// Returns the items with these keys of one table that `accept` accepts. Each can have some
    /// hundred kB. They are first read eventually consistent, at half the price. Those that are not
    /// found or accepted are read again strongly consistent, since they can be new.
    pub async fn get_all_large(
        &self,
        table: &str,
        mut keys: Vec<Item>,
        accept: impl Fn(&Item) -> bool,
    ) -> Result<HashMap<ItemKey, Item>, StoreError> {
        let mut found = HashMap::new();
        for consistent in [false, true] {
            let read = self.get_batches(table, keys.clone(), MAX_LARGE_KEYS, consistent).await?;
            let accepted = read.into_iter().filter(&accept);
            found.extend(accepted.map(|item| (place(&item), item)));
            keys.retain(|key| !found.contains_key(&place(key)));
        }
        Ok(found)
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

    /// Deletes the items with these keys, if they exist. The keys must not be used again: a
    /// deletion whose response was lost is repeated.
    pub async fn delete_all(&self, table: &str, keys: Vec<Item>) -> Result<(), StoreError> {
        let table = self.table(table);
        let batches: Vec<_> = keys
            .chunks(MAX_DELETIONS)
            .map(|keys| self.delete_batch(&table, keys.to_vec()))
            .collect();
        let (few, many) = PARALLEL_DELETIONS;
        let parallel = (batches.len() / 10).clamp(few, many);
        stream::iter(batches).buffer_unordered(parallel).try_collect().await
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
                Ok(response) => unprocessed = response.unprocessed_items.unwrap_or_default(),
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
