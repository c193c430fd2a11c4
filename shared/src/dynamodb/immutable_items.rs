//! Items that never change once they are written, and what a warm function remembers of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::types::AttributeValue;
use lru::LruCache;

use super::item::Item;
use super::{Store, StoreError};

/// The most bytes of items that are remembered.
const MAX_BYTES: usize = 16_000_000;
/// About what an item takes besides its names and values: its place, and what the map and the allocator
/// have with it.
const ITEM_BYTES: usize = 400;
/// The same of an attribute.
const ATTRIBUTE_BYTES: usize = 100;

/// What tells the items of a table apart: the values of `pk` and `sk`.
pub type ItemKey = (String, String);

/// Which item is meant by a key, or is this.
pub fn place(item: &Item) -> ItemKey {
    let text = |name| item.get(name).and_then(|value| value.as_s().ok()).cloned();
    (text("pk").unwrap_or_default(), text("sk").unwrap_or_default())
}

/// Items of any tables, of which those that were of no use for the longest time make way for others.
#[derive(Debug)]
pub(super) struct ImmutableItemCache {
    max_bytes: usize,
    remembered: Mutex<Remembered>,
}

#[derive(Debug)]
struct Remembered {
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
        let remembered = Remembered { items: LruCache::unbounded(), bytes: 0 };
        Self { max_bytes, remembered: Mutex::new(remembered) }
    }

    /// Those of these keys that are remembered.
    fn get_all(&self, table: &'static str, keys: &[Item]) -> HashMap<ItemKey, Arc<Item>> {
        // A panic while the lock was held cannot have left more than a wrong sum of bytes.
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let find = |key: &Item| {
            let of_table = (table, place(key));
            let item = remembered.items.get(&of_table)?;
            Some((of_table.1, Arc::clone(item)))
        };
        keys.iter().filter_map(find).collect()
    }

    fn remember<'i>(
        &self,
        table: &'static str,
        items: impl Iterator<Item = (&'i ItemKey, &'i Arc<Item>)>,
    ) {
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, item) in items {
            remembered.bytes += bytes_of(item);
            let replaced = remembered.items.put((table, place.clone()), Arc::clone(item));
            remembered.bytes -= replaced.map_or(0, |item| bytes_of(&item));
            while remembered.bytes > self.max_bytes
                && let Some((_, oldest)) = remembered.items.pop_lru()
            {
                remembered.bytes -= bytes_of(&oldest);
            }
        }
    }
}

/// About the memory of an item.
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
    /// The store with room for so many bytes of items that never change. With none, each read is one of
    /// DynamoDB, as that of a function that has just started.
    #[must_use]
    pub fn remembering(mut self, max_bytes: usize) -> Self {
        self.unchanging = Arc::new(ImmutableItemCache::within(max_bytes));
        self
    }

    /// The items of any number of keys of one table that never change once they are written, and may have
    /// some hundred kB each; those that are not there are left out. They must have no lists and no maps,
    /// whose bytes are not counted.
    ///
    /// Whoever asks for one again is answered from memory. Else an eventually consistent read tells what is
    /// in it, or that it is not there yet: then it is read strongly.
    pub async fn get_all_unchanging(
        &self,
        table: &'static str,
        mut keys: Vec<Item>,
    ) -> Result<HashMap<ItemKey, Arc<Item>>, StoreError> {
        let mut found = self.unchanging.get_all(table, &keys);
        keys.retain(|key| !found.contains_key(&place(key)));
        let mut read = HashMap::new();
        if !keys.is_empty() {
            read = by_place(self.get_all_eventually(table, keys.clone()).await?);
            keys.retain(|key| !read.contains_key(&place(key)));
        }
        if !keys.is_empty() {
            read.extend(by_place(self.get_all(table, keys).await?));
        }
        self.unchanging.remember(table, read.iter());
        found.extend(read);
        Ok(found)
    }
}

fn by_place(items: Vec<Item>) -> HashMap<ItemKey, Arc<Item>> {
    items.into_iter().map(|item| (place(&item), Arc::new(item))).collect()
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

    fn remember(items: &ImmutableItemCache, number: usize, bytes: usize) {
        let (place, item) = item(number, bytes);
        items.remember("errors", std::iter::once((&place, &item)));
    }

    fn remembered(items: &ImmutableItemCache) -> Vec<usize> {
        let is_there = |number: &usize| !items.get_all("errors", &[key_of(*number)]).is_empty();
        (0..10).filter(is_there).collect()
    }

    #[test]
    fn what_was_of_no_use_for_the_longest_time_makes_way() {
        let items = ImmutableItemCache::within(10_000);
        for number in 0..3 {
            remember(&items, number, 2_000);
        }
        assert_eq!(remembered(&items), [0, 1, 2]);
        items.get_all("errors", &[key_of(0)]);
        remember(&items, 3, 5_000);
        assert_eq!(remembered(&items), [0, 3]);
        assert!(items.get_all("insights", &[key_of(0)]).is_empty(), "another table's");
    }

    #[test]
    fn what_is_remembered_again_takes_its_room_once() {
        let items = ImmutableItemCache::within(10_000);
        for _ in 0..10 {
            remember(&items, 0, 4_000);
        }
        remember(&items, 1, 4_000);
        assert_eq!(remembered(&items), [0, 1]);
        remember(&items, 2, 20_000);
        assert_eq!(remembered(&items), [0; 0], "nothing that has no room at all");
        remember(&items, 3, 9_000);
        assert_eq!(remembered(&items), [3]);
    }
}
