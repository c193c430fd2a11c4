//! The rows of a project's log, in table `errors`: its events in the order of receipt.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `log#PROJECT#SHARD` | time of receipt and event ID | the counted part of an event |
//!
//! One attribute of the item holds the values of all categories. With more attributes, a query of
//! many rows would take longer and cost more read units, since attribute names count.

use futures_util::stream::{self, Stream, StreamExt};

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{
    Item, ItemReader, b, key, n, read_time_key, s, sort_key_at_end, time_key,
};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::errors::TABLE;
use super::events::EVENT_RETENTION;
use super::head::LogPosition;
use crate::EventId;
use crate::attribute::Attribute;
use crate::category::{Attributes, Category};
use crate::grouping::Fingerprint;
use crate::log::row::{EventRow, decode_attributes, encode_attributes};
use crate::tag::{TagHash, TagKey};

/// Maximum partitions of a log, for 8,000 events a second.
pub(super) const MAX_SHARDS: u8 = 16;
/// Maximum rows of a page: a function with a small CPU share reads them well within the timeout of
/// one attempt.
pub(super) const PAGE_ROWS: usize = 1_000;
/// The attribute with the values that filters match.
const ATTRIBUTES: &str = "attributes";
/// The attribute with the hashes of tags. With one letter, a tag takes at most 8 bytes.
const TAGS: &str = "t";
/// The attribute with the keys of other tags, in a sample of rows.
const OTHER_TAGS: &str = "k";
/// A key that sorts after the sort keys of all rows.
const END: &str = "~";
/// Approximate bytes of a row without the values of its attributes.
const ROW_BYTES: usize = 150;

/// A row of a log.
#[derive(Debug, Clone)]
pub(super) struct LogRow {
    pub(super) sk: String,
    /// The time of receipt.
    pub(super) received_at: Timestamp,
    pub(super) row: EventRow,
    /// The hashes of the tags.
    pub(super) tags: Vec<TagHash>,
}

impl LogRow {
    /// Returns the approximate number of bytes.
    pub(super) fn bytes(&self) -> usize {
        let values = Attribute::ALL.map(|it| self.row.attributes.get(it).map_or(0, str::len));
        let tags = self.row.attributes.tags().map(|(_, value)| value.len());
        ROW_BYTES + values.iter().sum::<usize>() + tags.sum::<usize>()
    }
}

/// A page of the rows of one shard.
#[derive(Debug, Default)]
pub(super) struct RowPage {
    pub(super) rows: Vec<LogRow>,
    /// The sort key after which more rows can follow.
    pub(super) next: Option<String>,
}

/// The rows of a log to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowRange<'p> {
    pub(super) project: ProjectId,
    pub(super) shards: u8,
    pub(super) from: &'p LogPosition,
    /// The end of the rows. `None` for all rows from `from` on.
    pub(super) to: Option<&'p LogPosition>,
    /// The categories to read in addition to time and error.
    pub(super) categories: RowCategories<'p>,
    /// Maximum rows of a page of one shard.
    pub(super) page: usize,
    pub(super) now: Timestamp,
}

/// The categories to read of rows. Fewer categories are faster to read. `None` for all, to pack them.
pub(super) type RowCategories<'p> = Option<&'p [Category]>;

/// Returns the tags to read. `None` for all.
pub(super) fn tags_of(categories: RowCategories<'_>) -> Option<Vec<TagKey>> {
    let tag = |category: &Category| match category {
        Category::Tag(key) => Some(*key),
        Category::Attribute(_) => None,
    };
    Some(categories?.iter().filter_map(tag).collect())
}

/// Returns the item attributes to read. `None` for all.
fn names_of(categories: RowCategories<'_>) -> Option<Vec<&'static str>> {
    let mut names = vec!["sk", "occurredAt", "fingerprint"];
    if !categories?.is_empty() {
        names.push(ATTRIBUTES);
    }
    if tags_of(categories).is_none_or(|keys| !keys.is_empty()) {
        names.push(TAGS);
    }
    Some(names)
}

impl ErrorStore<'_> {
    /// Returns a page of the rows of a shard, after a sort key. Strongly consistent: acknowledged
    /// events are counted.
    pub(super) async fn read_row_page(
        self,
        range: &RowRange<'_>,
        shard: u8,
        after: Option<&str>,
    ) -> Result<RowPage, StoreError> {
        let pk = log_pk(range.project, shard);
        // DynamoDB can take days to remove expired rows. Like other items of an event, a row
        // expires at a whole second.
        let next_second = Timestamp::from_millis((range.now.as_seconds() + 1) * 1_000);
        let kept = LogPosition::before(next_second.minus(EVENT_RETENTION));
        let from = range.from.max(&kept);
        if range.to.is_some_and(|to| to < from) {
            return Ok(RowPage::default());
        }
        let to = range.to.map_or_else(|| END.to_owned(), ToString::to_string);
        let start = after.map(|after| key(&pk, after));
        let query = match names_of(range.categories) {
            None => self.db.query(TABLE),
            Some(names) => self.db.query_attributes(TABLE, &names),
        };
        let response = query
            .consistent_read(true)
            // No row has the sort key of a position, so `:to` is exclusive.
            .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
            .expression_attribute_values(":pk", s(&pk))
            .expression_attribute_values(":from", s(from))
            .expression_attribute_values(":to", s(to))
            .limit(i32::try_from(range.page.min(PAGE_ROWS)).unwrap_or(i32::MAX))
            .set_exclusive_start_key(start)
            .send()
            .await?;
        let next = sort_key_at_end(TABLE, response.last_evaluated_key.as_ref())?;
        let rows = response.items.unwrap_or_default();
        // A damaged row must not keep the others from being packed and counted.
        let read = |item: &Item| {
            let row = read_row(item, range.categories);
            if row.is_ok() {
                return row.map(Some);
            }
            // The report needs the partition key, which the query can omit.
            let mut item = item.clone();
            item.insert("pk".to_owned(), s(&pk));
            self.db.unless_damaged(&item, row)
        };
        let rows = rows.iter().map(read).filter_map(Result::transpose);
        let mut rows: Vec<LogRow> = rows.collect::<Result<_, _>>()?;
        self.resolve_tags(range.project, &mut rows, tags_of(range.categories).as_deref()).await?;
        Ok(RowPage { rows, next })
    }

    /// Returns all rows of a range, page by page, in no particular order.
    pub(super) fn row_pages<'s>(
        &'s self,
        range: &'s RowRange<'s>,
    ) -> impl Stream<Item = Result<Vec<LogRow>, StoreError>> + 's {
        let shards = (0..range.shards).map(move |shard| {
            let first = Some(None::<String>);
            stream::try_unfold(first, move |after| async move {
                let Some(after) = after else { return Ok::<_, StoreError>(None) };
                let page = self.read_row_page(range, shard, after.as_deref()).await?;
                Ok(Some((page.rows, page.next.map(Some))))
            })
            .boxed()
        });
        stream::select_all(shards)
    }
}

fn log_pk(project: ProjectId, shard: u8) -> String {
    format!("log#{project}#{shard:02}")
}

/// Returns the partition of an event.
pub(super) fn shard_of(event: EventId, shards: u8) -> u8 {
    let last = event.as_bytes().last().copied().unwrap_or_default();
    last.checked_rem(shards).unwrap_or_default()
}

/// Returns the time of receipt in the sort key of a row.
pub(super) fn row_time(sk: &str) -> Option<Timestamp> {
    read_time_key(sk.get(..15)?)
}

/// Returns the key of an event's row.
pub(super) fn row_key(
    project: ProjectId,
    shard: u8,
    event: EventId,
    received_at: Timestamp,
) -> Item {
    key(&log_pk(project, shard), &format!("{}#{event}", time_key(received_at)))
}

pub(super) fn write_row(
    project: ProjectId,
    shard: u8,
    event: EventId,
    row: &EventRow,
    received_at: Timestamp,
) -> Item {
    let mut item = row_key(project, shard, event, received_at);
    item.insert("occurredAt".to_owned(), n(row.occurred_at.as_millis()));
    item.insert("fingerprint".to_owned(), b(&row.fingerprint.0));
    item.insert(ATTRIBUTES.to_owned(), b(&encode_attributes(&row.attributes)));
    let tags: Vec<[u8; TagHash::BYTES]> =
        row.attributes.tags().map(|(key, value)| TagHash::of(key, value).0).collect();
    if !tags.is_empty() {
        item.insert(TAGS.to_owned(), b(tags.as_flattened()));
    }
    let others: Vec<&str> = row.attributes.other_tags().iter().map(TagKey::as_str).collect();
    if !others.is_empty() {
        item.insert(OTHER_TAGS.to_owned(), s(others.join(" ")));
    }
    item
}

pub(super) fn read_row(item: &Item, categories: RowCategories<'_>) -> Result<LogRow, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let mut attributes = match categories {
        // The attribute was not read.
        Some([]) => Attributes::default(),
        requested => decode_attributes(reader.blob(ATTRIBUTES)?, requested)
            .map_err(|_| reader.damaged(ATTRIBUTES))?,
    };
    let others = reader.optional_text(OTHER_TAGS)?.unwrap_or_default();
    attributes.set_other_tags(others.split(' ').filter_map(TagKey::parse).collect());
    let tags = if item.contains_key(TAGS) { reader.blob(TAGS)? } else { &[] };
    let (tags, rest) = tags.as_chunks();
    if !rest.is_empty() {
        return Err(reader.damaged(TAGS));
    }
    let tags = tags.iter().map(|hash| TagHash(*hash)).collect();
    let row = EventRow {
        occurred_at: reader.millis("occurredAt")?,
        fingerprint: Fingerprint(reader.bytes("fingerprint")?),
        attributes,
    };
    let received_at = reader.parsed("sk", row_time)?;
    Ok(LogRow { sk: reader.text("sk")?.to_owned(), received_at, row, tags })
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::AttributeValue;

    use super::*;
    use crate::attribute::user_hash;
    use crate::ingestion::testing::normalize_store_body;

    fn row(values: &[(Attribute, String)]) -> EventRow {
        let mut attributes = Attributes::default();
        for (attribute, value) in values {
            attributes.set(*attribute, Some(value.clone()));
        }
        attributes.set(Attribute::User, user_hash("42"));
        let occurred_at = Timestamp::from_millis(1_795_000_000_000);
        EventRow { occurred_at, fingerprint: Fingerprint([7; 16]), attributes }
    }

    fn written(row: &EventRow) -> Item {
        let project = ProjectId::new(uuid::Uuid::max());
        let event = EventId::from_random_bytes([0xff; 16]).unwrap();
        write_row(project, 15, event, row, row.occurred_at)
    }

    #[test]
    fn written_rows_are_read_unchanged() {
        let row = row(&Attribute::ALL.map(|name| (name, format!("{name:?}"))));
        assert_eq!(read_row(&written(&row), None).unwrap().row, row);
    }

    /// Returns the bytes of an item as DynamoDB counts them. A number takes a byte for two digits.
    fn size(item: &Item) -> usize {
        let size_of = |value: &AttributeValue| match value {
            AttributeValue::S(text) => text.len(),
            AttributeValue::B(bytes) => bytes.as_ref().len(),
            AttributeValue::N(number) => number.len().div_ceil(2) + 1,
            other => panic!("{other:?}"),
        };
        item.iter().map(|(name, value)| name.len() + size_of(value)).sum()
    }

    #[test]
    fn the_longest_row_takes_one_write_unit() {
        let long = "x".repeat(300);
        for transaction in [long.as_str(), ""] {
            let event = format!(
                r#"{{"environment":"{long}","release":"{long}","level":"warning","platform":"{long}",
                "transaction":"{transaction}","user":{{"id":"{long}","geo":{{"country_code":"de"}}}},
                "request":{{"url":"https://h/{long}"}},"contexts":{{"browser":{{"name":"{long}"}},
                "os":{{"name":"{long}"}},"device":{{"family":"{long}"}}}},
                "exception":[{{"type":"{long}","mechanism":{{"handled":false}},
                "stacktrace":{{"frames":[{{"function":"{long}"}}]}}}}]}}"#
            );
            let received_at = Timestamp::from_millis(1_795_000_000_000);
            let event = normalize_store_body(event.as_bytes(), received_at).unwrap().unwrap();
            let mut item = written(&EventRow { attributes: event.attributes, ..row(&[]) });
            item.insert("expiresAt".to_owned(), n(received_at.as_seconds()));
            assert!((900..=1_024).contains(&size(&item)), "{}", size(&item));
        }
    }
}
