//! The rows of a project's log, in table `errors`: its events in the order in which they were received.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `log#PROJECT#SHARD` | time of receipt and event id | what is counted of an event |

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::stream::{self, Stream, StreamExt};

use crate::dynamodb::item::{Item, ItemReader, b, key, n, read_time_key, s, time_key};
use crate::dynamodb::{Store, StoreError};
use crate::error_tracking::EventId;
use crate::error_tracking::attribute::{Attribute, Attributes};
use crate::error_tracking::log::row::{EventRow, Fingerprint};
use crate::projects::project::ProjectId;
use crate::timestamp::Timestamp;

use super::errors::TABLE;
use super::head::LogPosition;

/// The most partitions of a log: 8,000 events a second.
pub(super) const MAX_SHARDS: u8 = 16;
/// The most rows of a page: a function with little of a processor reads them well within the time of
/// one attempt.
pub(super) const PAGE_ROWS: usize = 1_000;
/// What sorts after the sort keys of all rows.
const END: &str = "~";
/// What a row takes besides the values of its attributes.
const ROW_BYTES: usize = 150;

/// A row of a log.
#[derive(Debug, Clone)]
pub(super) struct LogRow {
    pub(super) sk: String,
    pub(super) row: EventRow,
}

impl LogRow {
    /// When it was received.
    pub(super) fn received_at(&self) -> Option<Timestamp> {
        row_time(&self.sk)
    }

    /// About how many bytes it has.
    pub(super) fn bytes(&self) -> usize {
        let values = Attribute::ALL.map(|it| self.row.attributes.get(it).map_or(0, str::len));
        ROW_BYTES + values.iter().sum::<usize>()
    }
}

/// Rows of one shard that were read at once.
#[derive(Debug, Default)]
pub(super) struct RowPage {
    pub(super) rows: Vec<LogRow>,
    /// The sort key after which more may follow.
    pub(super) next: Option<String>,
}

/// Which rows of a log are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowRange<'p> {
    pub(super) project: ProjectId,
    pub(super) shards: u8,
    pub(super) from: &'p LogPosition,
    /// Before which rows are read; `None` for all that there are.
    pub(super) to: Option<&'p LogPosition>,
    /// The most rows that are wanted of a shard at once.
    pub(super) page: usize,
    pub(super) now: Timestamp,
}

impl Store {
    /// A page of the rows of a shard, after a sort key. Strongly consistent: what was acknowledged is
    /// counted.
    pub(super) async fn read_row_page(
        &self,
        range: &RowRange<'_>,
        shard: u8,
        after: Option<&str>,
    ) -> Result<RowPage, StoreError> {
        let pk = log_pk(range.project, shard);
        let to = range.to.map_or_else(|| END.to_owned(), ToString::to_string);
        let start = after.map(|after| key(&pk, after));
        let answer = self
            .query(TABLE)
            .consistent_read(true)
            // No row has the sort key of a position, so the end is left out.
            .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
            // What has expired may be there for days more until DynamoDB removes it.
            .filter_expression("expiresAt > :now")
            .expression_attribute_values(":pk", s(&pk))
            .expression_attribute_values(":from", s(range.from))
            .expression_attribute_values(":to", s(to))
            .expression_attribute_values(":now", n(range.now.as_seconds()))
            .limit(i32::try_from(range.page.min(PAGE_ROWS)).unwrap_or(i32::MAX))
            .set_exclusive_start_key(start)
            .send()
            .await?;
        let next = answer.last_evaluated_key.as_ref();
        let next = next.map(|key| ItemReader { table: TABLE, item: key }.text("sk")).transpose()?;
        let rows = answer.items.unwrap_or_default();
        let rows = rows.iter().map(read_row).collect::<Result<_, _>>()?;
        Ok(RowPage { rows, next: next.map(str::to_owned) })
    }

    /// All rows of a range, page by page, in no order.
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

/// In which of the partitions of its log an event is.
pub(super) fn shard_of(event: EventId, shards: u8) -> u8 {
    let last = event.as_bytes().last().copied().unwrap_or_default();
    last.checked_rem(shards).unwrap_or_default()
}

/// The time in the sort key of a row.
pub(super) fn row_time(sk: &str) -> Option<Timestamp> {
    read_time_key(sk.get(..15)?)
}

pub(super) fn write_row(
    project: ProjectId,
    shard: u8,
    event: EventId,
    row: &EventRow,
    received_at: Timestamp,
) -> Item {
    let mut item = key(&log_pk(project, shard), &format!("{}#{event}", time_key(received_at)));
    item.insert("occurredAt".to_owned(), n(row.occurred_at.as_millis()));
    item.insert("fingerprint".to_owned(), b(&row.fingerprint.0));
    for attribute in Attribute::ALL {
        if let Some(value) = row.attributes.get(attribute) {
            item.insert(attribute.name().to_owned(), AttributeValue::S(value.to_owned()));
        }
    }
    item
}

fn read_row(item: &Item) -> Result<LogRow, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let mut attributes = Attributes::default();
    for attribute in Attribute::ALL {
        attributes.set(attribute, reader.optional_text(attribute.name())?.map(str::to_owned));
    }
    let occurred_at = reader.optional_integer("occurredAt")?;
    let occurred_at = occurred_at.ok_or_else(|| reader.damaged("occurredAt"))?;
    let row = EventRow {
        occurred_at: Timestamp::from_millis(occurred_at),
        fingerprint: Fingerprint(reader.bytes("fingerprint")?),
        attributes,
    };
    Ok(LogRow { sk: reader.text("sk")?.to_owned(), row })
}
