//! Sweeps, which read a whole table page by page and remove items.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::Value;

use super::item::{Item, n, s};
use super::{Store, StoreError};

/// The result of one step of a sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Number of removed items.
    pub removed: u64,
    /// The position at which the next step continues; `None` at the end of the table.
    pub after: Option<String>,
}

impl Store {
    /// Returns the next page of a table, at most 1 MB, and the position of the page after it. The
    /// read is strongly consistent. Items contain only `attributes`, or all if it is empty.
    pub async fn scan_page(
        &self,
        table: &str,
        attributes: &[&str],
        after: Option<&str>,
    ) -> Result<(Vec<Item>, Option<String>), StoreError> {
        let mut scan = self.scan(table).consistent_read(true);
        for (number, attribute) in attributes.iter().enumerate() {
            // Placeholders, since a name can be a reserved word.
            scan = scan.expression_attribute_names(format!("#{number}"), *attribute);
        }
        if !attributes.is_empty() {
            let names: Vec<String> =
                (0..attributes.len()).map(|number| format!("#{number}")).collect();
            scan = scan.projection_expression(names.join(", "));
        }
        if let Some(after) = after {
            scan = scan.set_exclusive_start_key(Some(read_position(after)?));
        }
        let response = scan.send().await?;
        let end = response.last_evaluated_key.filter(|key| !key.is_empty());
        Ok((response.items.unwrap_or_default(), end.as_ref().map(write_position)))
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

/// Returns a key as text. The key attributes of all tables are strings and integers.
fn write_position(key: &Item) -> String {
    let part = |value: &AttributeValue| match value {
        AttributeValue::N(number) => Some(Value::from(number.parse::<i64>().ok()?)),
        value => Some(Value::from(value.as_s().ok()?.as_str())),
    };
    let parts = key.iter().filter_map(|(name, value)| Some((name, part(value)?)));
    let parts: BTreeMap<&String, Value> = parts.collect();
    serde_json::to_string(&parts).unwrap_or_default()
}

fn read_position(text: &str) -> Result<Item, StoreError> {
    let unreadable = || StoreError::Rejected("the position of a sweep cannot be read".into());
    let parts: BTreeMap<String, Value> = serde_json::from_str(text).map_err(|_| unreadable())?;
    let read = |value| match value {
        Value::String(text) => Ok(s(text)),
        Value::Number(number) => number.as_i64().map(n).ok_or_else(unreadable),
        _ => Err(unreadable()),
    };
    parts.into_iter().map(|(name, value)| Ok((name, read(value)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamodb::item::{item, key};

    #[test]
    fn positions_survive_a_round_trip() {
        let key = key("event#1#\"é\"", "payload");
        assert_eq!(read_position(&write_position(&key)).unwrap(), key);
        let key = item([("flagId", s("1")), ("version", n(7))]);
        assert_eq!(read_position(&write_position(&key)).unwrap(), key);
        assert!(read_position("").is_err());
    }
}
