//! Pages of query results.

use aws_sdk_dynamodb::types::AttributeValue;

use crate::page::Page;

use super::item::Item;
use super::{Store, StoreError};

/// Returns the limit of a query for a page. One extra item shows whether another page follows.
pub fn one_more_than(limit: u32) -> i32 {
    i32::try_from(limit.saturating_add(1)).unwrap_or(i32::MAX)
}

/// Most bytes of a page in Lambda's response format, which permits 6 MB.
const MAX_PAGE_BYTES: usize = 4_000_000;

/// Returns the most bytes that a value takes in Lambda's response format. Since that is JSON within
/// JSON, a control character `\u0001` becomes `\\u0001`, and a quote `\\\"`.
fn wire_bytes(value: &AttributeValue) -> usize {
    let of_text = |text: &str| -> usize {
        let bytes = |byte: u8| match byte {
            0..=0x1f => 7,
            b'"' | b'\\' => 4,
            _ => 1,
        };
        text.bytes().map(bytes).sum()
    };
    match value {
        AttributeValue::S(text) => of_text(text),
        AttributeValue::M(fields) => {
            fields.iter().map(|(name, value)| of_text(name) + wire_bytes(value)).sum()
        }
        _ => 16,
    }
}

impl Store {
    /// Returns a page of query results without unreadable items. `more` is `true` if DynamoDB
    /// stopped before the end, at 1 MB. `end_of` returns the end of a page from its last item.
    pub fn page<T>(
        &self,
        items: Vec<Item>,
        more: bool,
        limit: u32,
        end_of: impl Fn(&Item) -> Result<String, StoreError>,
        read: impl Fn(&Item) -> Result<T, StoreError>,
    ) -> Result<Page<T>, StoreError> {
        let bytes_of = |item: &Item| item.values().map(wire_bytes).sum();
        self.page_of_size(items, more, limit, bytes_of, end_of, read)
    }

    /// Like [`Self::page`], for items whose size in a response differs from the stored size.
    /// `bytes_of` returns the size in Lambda's response format.
    pub fn page_of_size<T>(
        &self,
        mut items: Vec<Item>,
        more: bool,
        limit: u32,
        bytes_of: impl Fn(&Item) -> usize,
        end_of: impl Fn(&Item) -> Result<String, StoreError>,
        read: impl Fn(&Item) -> Result<T, StoreError>,
    ) -> Result<Page<T>, StoreError> {
        let mut bytes = 0;
        let fitting = items.iter().take_while(|item| {
            let first = bytes == 0;
            bytes += bytes_of(item);
            first || bytes <= MAX_PAGE_BYTES
        });
        let limit = fitting.count().min(usize::try_from(limit).unwrap_or(usize::MAX));
        let more = more || items.len() > limit;
        items.truncate(limit);
        let end = items.last().filter(|_| more).map(end_of).transpose()?;
        Ok(Page { end, items: self.undamaged(&items, read)? })
    }
}
