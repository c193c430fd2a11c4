//! Lists sorted by the time of the last occurrence, latest first: all items of a partition, or
//! those with one status. Tables with such lists have a local index for each.

use aws_sdk_dynamodb::types::AttributeValue;

use crate::page::{Page, PageRequest};

use super::item::{Item, ItemReader, s};
use super::page::one_more_than;
use super::{Store, StoreError};

/// The index of all items by last occurrence, and its sort attribute.
const BY_LAST_SEEN: (&str, &str) = ("byLastSeen", "lastSeenKey");
/// The index by status and last occurrence, and its sort attribute.
const BY_STATUS: (&str, &str) = ("byStatus", "statusKey");

/// A list sorted by last occurrence.
pub struct LastSeenList<'a> {
    /// The table's name without its prefix.
    pub table: &'static str,
    /// The partition key.
    pub pk: String,
    /// The status to list, or `None` for any.
    pub status: Option<&'a str>,
}

/// Returns the attributes that put an item into both indexes. Positions must be unique and sort by
/// the time of the last occurrence.
pub fn index_attributes(status: &str, position: String) -> [(&'static str, AttributeValue); 2] {
    [(BY_STATUS.1, s(format!("{status}#{position}"))), (BY_LAST_SEEN.1, s(position))]
}

/// Returns an item's position in its list.
pub fn position_of(table: &'static str, item: &Item) -> Result<String, StoreError> {
    ItemReader { table, item }.text(BY_LAST_SEEN.1).map(str::to_owned)
}

impl Store {
    /// Returns a page of a list. Strongly consistent, because its indexes are local. `key_at` returns
    /// the key of the item at a position.
    pub async fn page_by_last_seen<T>(
        &self,
        list: &LastSeenList<'_>,
        page_request: &PageRequest,
        key_at: impl Fn(&str) -> Option<Item>,
        read: impl Fn(&Item) -> Result<T, StoreError>,
    ) -> Result<Page<T>, StoreError> {
        let (index, attribute) = if list.status.is_some() { BY_STATUS } else { BY_LAST_SEEN };
        let prefix = list.status.map_or_else(String::new, |status| format!("{status}#"));
        let mut query = self
            .query(list.table)
            .index_name(index)
            .consistent_read(true)
            .scan_index_forward(false)
            .expression_attribute_values(":pk", s(&list.pk))
            .limit(one_more_than(page_request.limit));
        query = if list.status.is_some() {
            query
                .key_condition_expression(format!("pk = :pk AND begins_with({attribute}, :status)"))
                .expression_attribute_values(":status", s(&prefix))
        } else {
            query.key_condition_expression("pk = :pk")
        };
        let after = page_request.after.as_deref();
        if let Some((after, mut start)) = after.and_then(|after| Some((after, key_at(after)?))) {
            start.insert(attribute.to_owned(), s(format!("{prefix}{after}")));
            query = query.set_exclusive_start_key(Some(start));
        }
        let response = query.send().await?;
        let more = response.last_evaluated_key.is_some();
        let items = response.items.unwrap_or_default();
        let end_of = |item: &Item| position_of(list.table, item);
        self.page(items, more, page_request.limit, end_of, read)
    }
}
