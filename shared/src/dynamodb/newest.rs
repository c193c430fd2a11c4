//! The newest items of a query, and the number of the others.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::Select;

use super::item::Item;
use super::{Store, StoreError};

/// Maximum pages of 1 MB that are only counted.
const MAX_COUNTED_PAGES: u32 = 20;

/// The items of a query with the greatest sort keys.
#[derive(Debug, Default)]
pub struct Newest {
    /// The items, greatest sort key first.
    pub items: Vec<Item>,
    /// The number of further items.
    pub left_out: u64,
    /// `false` if there can be more of them.
    pub is_exact: bool,
}

impl Store {
    /// Returns up to `limit` items of a query with the greatest sort keys, and counts the others.
    /// One round trip if there are no others.
    pub async fn newest(
        &self,
        query: QueryFluentBuilder,
        limit: u32,
    ) -> Result<Newest, StoreError> {
        let query = query.scan_index_forward(false);
        let limit = i32::try_from(limit).unwrap_or(i32::MAX);
        let first = query.clone().limit(limit).send().await?;
        let mut newest = Newest { items: first.items.unwrap_or_default(), ..Newest::default() };
        let mut start = first.last_evaluated_key;
        for _ in 0..MAX_COUNTED_PAGES {
            let Some(after) = start.take() else { break };
            let counted = query.clone().select(Select::Count).set_exclusive_start_key(Some(after));
            let counted = counted.send().await?;
            newest.left_out += u64::try_from(counted.count).unwrap_or_default();
            start = counted.last_evaluated_key;
        }
        newest.is_exact = start.is_none();
        Ok(newest)
    }
}
