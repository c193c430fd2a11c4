//! Items that never change once written, and their cache in a warm function.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::types::AttributeValue;
use lru::LruCache;

use super::item::Item;
use super::{Store, StoreError};

/// Most bytes of cached items.
const MAX_BYTES: usize = 16_000_000;
/// Approximate bytes of a cached item without its names and values: its key, and the overhead of
/// the map and the allocator.
const ITEM_BYTES: usize = 400;
/// Approximate bytes of a cached attribute without its name and value.
const ATTRIBUTE_BYTES: usize = 100;

/// The key of an item: the values of `pk` and `sk`.
pub type ItemKey = (String, String);

/// Returns the key of an item.
pub fn place(item: &Item) -> ItemKey {
    let text = |name| item.get(name).and_then(|value| value.as_s().ok()).cloned();
    (text("pk").unwrap_or_default(), text("sk").unwrap_or_default())
}

/// A cache of items of any tables. It evicts the least recently used items.
#[derive(Debug)]
pub(super) struct ImmutableItemCache {
    max_bytes: usize,
    cached: Mutex<CachedItems>,
}

#[derive(Debug)]
struct CachedItems {
    items: LruCache<(&'static str, ItemKey), Arc<Item>>,
    bytes: usize,
}

impl Default for ImmutableItemCache {
    fn default() -> Self {
        Self::within(MAX_BYTES)
    }
}

impl ImmutableItemCache {
    fn within(max_bytes: usize) -> Self {
        let cached = CachedItems { items: LruCache::unbounded(), bytes: 0 };
        Self { max_bytes, cached: Mutex::new(cached) }
    }

    /// Returns the cached items with these keys.
    fn get_all(&self, table: &'static str, keys: &[Item]) -> HashMap<ItemKey, Arc<Item>> {
        // A panic while the lock was held can leave no more than a wrong sum of bytes.
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let find = |key: &Item| {
            let of_table = (table, place(key));
            let item = cached.items.get(&of_table)?;
            Some((of_table.1, Arc::clone(item)))
        };
        keys.iter().filter_map(find).collect()
    }

    fn insert<'i>(
        &self,
        table: &'static str,
        items: impl Iterator<Item = (&'i ItemKey, &'i Arc<Item>)>,
    ) {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, item) in items {
            cached.bytes += bytes_of(item);
            let replaced = cached.items.put((table, place.clone()), Arc::clone(item));
            cached.bytes -= replaced.map_or(0, |item| bytes_of(&item));
            while cached.bytes > self.max_bytes
                && let Some((_, oldest)) = cached.items.pop_lru()
            {
                cached.bytes -= bytes_of(&oldest);
            }
        }
    }
}

/// Returns the approximate bytes of an item in memory.
fn bytes_of(item: &Item) -> usize {
    let bytes_of_value = |value: &AttributeValue| match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.len(),
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        _ => 0,
    };
    let attributes = item.iter().map(|(name, value)| name.len() + bytes_of_value(value));
    ITEM_BYTES + attributes.map(|bytes| ATTRIBUTE_BYTES + bytes).sum::<usize>()
}

impl Store {
    /// Sets the cache size in bytes. With 0, every read goes to DynamoDB, as in a function that
    /// just started.
    #[must_use]
    pub fn remembering(mut self, max_bytes: usize) -> Self {
        self.immutable_items = Arc::new(ImmutableItemCache::within(max_bytes));
        self
    }

    /// Returns the items with these keys of one table. Omits keys without an item. The items must
    /// never change once written. Each can have some hundred kB, but no lists or maps, whose bytes
    /// are not counted.
    ///
    /// Cached items are returned from memory, others from [`Self::get_all_large`].
    pub async fn get_all_unchanging(
        &self,
        table: &'static str,
        mut keys: Vec<Item>,
    ) -> Result<HashMap<ItemKey, Arc<Item>>, StoreError> {
        let mut found = self.immutable_items.get_all(table, &keys);
        keys.retain(|key| !found.contains_key(&place(key)));
        let read = self.get_all_large(table, keys, |_| true).await?;
        let read: HashMap<_, _> =
            read.into_iter().map(|(place, item)| (place, Arc::new(item))).collect();
        self.immutable_items.insert(table, read.iter());
        found.extend(read);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamodb::item::{b, key};

    fn key_of(number: usize) -> Item {
        key("pk", &number.to_string())
    }

    fn item(number: usize, bytes: usize) -> (ItemKey, Arc<Item>) {
        let mut item = key_of(number);
        item.insert("bytes".to_owned(), b(&vec![0; bytes]));
        (place(&item), Arc::new(item))
    }

    fn insert(items: &ImmutableItemCache, number: usize, bytes: usize) {
        let (place, item) = item(number, bytes);
        items.insert("errors", std::iter::once((&place, &item)));
    }

    fn cached(items: &ImmutableItemCache) -> Vec<usize> {
        let is_there = |number: &usize| !items.get_all("errors", &[key_of(*number)]).is_empty();
        (0..10).filter(is_there).collect()
    }

    #[test]
    fn least_recently_used_items_are_evicted() {
        let items = ImmutableItemCache::within(10_000);
        for number in 0..3 {
            insert(&items, number, 2_000);
        }
        assert_eq!(cached(&items), [0, 1, 2]);
        items.get_all("errors", &[key_of(0)]);
        insert(&items, 3, 5_000);
        assert_eq!(cached(&items), [0, 3]);
        assert!(items.get_all("insights", &[key_of(0)]).is_empty(), "another table");
    }

    #[test]
    fn reinserted_items_are_counted_once() {
        let items = ImmutableItemCache::within(10_000);
        for _ in 0..10 {
            insert(&items, 0, 4_000);
        }
        insert(&items, 1, 4_000);
        assert_eq!(cached(&items), [0, 1]);
        insert(&items, 2, 20_000);
        assert_eq!(cached(&items), [0; 0], "oversized items are not cached");
        insert(&items, 3, 9_000);
        assert_eq!(cached(&items), [3]);
    }
}
