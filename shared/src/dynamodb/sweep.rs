//! Sweeps, which read a whole table and remove items. After its first page, a large table is read
//! in [`SEGMENTS`] parts at the same time: DynamoDB removes at most 1,000 items a second from each
//! of a table's partitions (`docs/erasure.md`, "Large projects").

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::try_join_all;
use serde_json::Value;

use super::item::{Item, n, s};
use super::{Store, StoreError};

/// Number of parts of a large table. A sweep that is in progress keeps its own number.
const SEGMENTS: usize = 32;

/// The result of one step of a sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Number of removed items.
    pub removed: u64,
    /// The position at which the next step continues; `None` at the end of the table.
    pub after: Option<String>,
}

impl Store {
    /// Returns the next page of a table, or of each of its parts, and the position after it. A page
    /// has at most 1 MB. The reads are strongly consistent. Items contain only `attributes`, or all
    /// if it is empty.
    pub async fn scan_page(
        &self,
        table: &str,
        attributes: &[&str],
        after: Option<&str>,
    ) -> Result<(Vec<Item>, Option<String>), StoreError> {
        let Some(after) = after else {
            let (items, end) = self.scan_part(table, attributes, None, None).await?;
            let parts = vec![Some(Item::new()); SEGMENTS];
            return Ok((items, end.map(|_| write_positions(&parts))));
        };
        let parts = read_positions(after)?;
        let total = parts.len();
        let pages = parts.into_iter().enumerate().map(async |(number, start)| match start {
            Some(start) => {
                self.scan_part(table, attributes, Some((number, total)), Some(start)).await
            }
            None => Ok((Vec::new(), None)),
        });
        let (pages, ends): (Vec<_>, Vec<_>) = try_join_all(pages).await?.into_iter().unzip();
        let is_complete = ends.iter().all(Option::is_none);
        Ok((interleaved(pages), (!is_complete).then(|| write_positions(&ends))))
    }

    /// Returns a page of one part of a table, or of the whole table, and the key at its end.
    async fn scan_part(
        &self,
        table: &str,
        attributes: &[&str],
        part: Option<(usize, usize)>,
        start: Option<Item>,
    ) -> Result<(Vec<Item>, Option<Item>), StoreError> {
        let number = |number: usize| i32::try_from(number).ok();
        let mut scan = self
            .scan(table)
            .consistent_read(true)
            .set_segment(part.and_then(|(this, _)| number(this)))
            .set_total_segments(part.and_then(|(_, total)| number(total)))
            .set_exclusive_start_key(start.filter(|key| !key.is_empty()));
        for (number, attribute) in attributes.iter().enumerate() {
            // Placeholders, since a name can be a reserved word.
            scan = scan.expression_attribute_names(format!("#{number}"), *attribute);
        }
        if !attributes.is_empty() {
            let names: Vec<String> =
                (0..attributes.len()).map(|number| format!("#{number}")).collect();
            scan = scan.projection_expression(names.join(", "));
        }
        let response = scan.send().await?;
        let end = response.last_evaluated_key.filter(|key| !key.is_empty());
        Ok((response.items.unwrap_or_default(), end))
    }

    /// Removes expired items from the next page of a table, some days earlier than DynamoDB would.
    pub(crate) async fn sweep_expired(
        &self,
        table: &str,
        key: &str,
        now_seconds: i64,
        after: Option<&str>,
    ) -> Result<Sweep, StoreError> {
        let (items, after) = self.scan_page(table, &[key, "expiresAt"], after).await?;
        let has_expired = |item: &Item| match item.get("expiresAt") {
            Some(AttributeValue::N(at)) => at.parse::<i64>().is_ok_and(|at| at <= now_seconds),
            _ => false,
        };
        let keys = items.into_iter().filter(has_expired).map(|mut item| {
            item.remove("expiresAt");
            item
        });
        self.sweep_away(table, keys.collect(), after).await
    }

    /// Deletes the items that a step found and returns the result of the step.
    pub async fn sweep_away(
        &self,
        table: &str,
        keys: Vec<Item>,
        after: Option<String>,
    ) -> Result<Sweep, StoreError> {
        let removed = u64::try_from(keys.len()).unwrap_or(u64::MAX);
        if !keys.is_empty() {
            self.delete_all(table, keys).await?;
        }
        Ok(Sweep { removed, after })
    }
}

/// Returns the items of all pages in turn, so that deletions reach several partitions.
fn interleaved(pages: Vec<Vec<Item>>) -> Vec<Item> {
    let longest = pages.iter().map(Vec::len).max().unwrap_or_default();
    let mut items = Vec::with_capacity(pages.iter().map(Vec::len).sum());
    let mut pages: Vec<_> = pages.into_iter().map(Vec::into_iter).collect();
    for _ in 0..longest {
        items.extend(pages.iter_mut().filter_map(Iterator::next));
    }
    items
}

/// Returns the positions in all parts as text: `{}` at the start, `null` at the end. The key
/// attributes of all tables are strings and integers.
fn write_positions(parts: &[Option<Item>]) -> String {
    let value = |value: &AttributeValue| match value {
        AttributeValue::N(number) => Some(Value::from(number.parse::<i64>().ok()?)),
        value => Some(Value::from(value.as_s().ok()?.as_str())),
    };
    let written = parts.iter().map(|part| {
        let key = part.as_ref()?.iter();
        Some(key.filter_map(|(name, it)| Some((name, value(it)?))).collect::<BTreeMap<_, _>>())
    });
    serde_json::to_string(&written.collect::<Vec<_>>()).unwrap_or_default()
}

/// Reads the positions in all parts. An earlier release wrote a key: its sweep starts again.
fn read_positions(text: &str) -> Result<Vec<Option<Item>>, StoreError> {
    let unreadable = || StoreError::Rejected("the position of a sweep cannot be read".into());
    if text.starts_with('{') {
        return Ok(vec![Some(Item::new()); SEGMENTS]);
    }
    let parts: Vec<Option<BTreeMap<String, Value>>> =
        serde_json::from_str(text).map_err(|_| unreadable())?;
    let value = |value| match value {
        Value::String(text) => Ok(s(text)),
        Value::Number(number) => number.as_i64().map(n).ok_or_else(unreadable),
        _ => Err(unreadable()),
    };
    let key = |part: BTreeMap<String, Value>| {
        part.into_iter().map(|(name, it)| Ok((name, value(it)?))).collect::<Result<Item, _>>()
    };
    parts.into_iter().map(|part| part.map(key).transpose()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamodb::item::{item, key};

    #[test]
    fn positions_survive_a_round_trip() {
        let number = item([("flagId", s("1")), ("version", n(7))]);
        let parts = [Some(key("event#1#\"é\"", "payload")), None, Some(Item::new()), Some(number)];
        assert_eq!(read_positions(&write_positions(&parts)).unwrap(), parts);
        assert!(read_positions("").is_err() && read_positions("[7]").is_err());
    }

    #[test]
    fn positions_of_earlier_releases_start_again() {
        let parts = read_positions(r#"{"pk":"event#1","sk":"payload"}"#).unwrap();
        assert_eq!(parts, vec![Some(Item::new()); SEGMENTS]);
    }

    #[test]
    fn deletions_alternate_between_parts() {
        let page = |keys: &[&str]| keys.iter().map(|it| key(it, "")).collect::<Vec<_>>();
        let pages = vec![page(&["a", "b", "c"]), page(&[]), page(&["d"])];
        assert_eq!(interleaved(pages), page(&["a", "d", "b", "c"]));
    }
}
