//! Items in DynamoDB, with readers and builders of their attributes.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;

use crate::timestamp::Timestamp;

use super::StoreError;

/// An item, or a part of one.
pub type Item = HashMap<String, AttributeValue>;

/// Returns an item or key with these attributes.
pub fn item<const N: usize>(attributes: [(&str, AttributeValue); N]) -> Item {
    attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns an item with the attributes of a key and these attributes.
pub fn item_at<const N: usize>(key: Item, attributes: [(&str, AttributeValue); N]) -> Item {
    let mut item = key;
    item.extend(attributes.map(|(name, value)| (name.to_owned(), value)));
    item
}

/// Returns a string attribute.
#[allow(clippy::needless_pass_by_value)] // Callers pass values and references alike.
pub fn s(value: impl ToString) -> AttributeValue {
    AttributeValue::S(value.to_string())
}

/// Returns a number attribute.
pub fn n(value: impl Into<i64>) -> AttributeValue {
    AttributeValue::N(value.into().to_string())
}

/// Returns a count as a number attribute. Counts do not reach `i64::MAX`.
pub fn count(value: u64) -> AttributeValue {
    n(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Returns a binary attribute.
pub fn b(value: &[u8]) -> AttributeValue {
    AttributeValue::B(Blob::new(value))
}

/// Returns a string set, or `None` if it would be empty: DynamoDB has no empty sets.
pub fn ss<T: ToString>(values: impl IntoIterator<Item = T>) -> Option<AttributeValue> {
    let distinct: BTreeSet<String> = values.into_iter().map(|value| value.to_string()).collect();
    (!distinct.is_empty()).then(|| AttributeValue::Ss(distinct.into_iter().collect()))
}

/// Returns the key of an item in a table with the keys `pk` and `sk`.
pub fn key(pk: &str, sk: &str) -> Item {
    item([("pk", s(pk)), ("sk", s(sk))])
}

/// Returns a time as text that sorts chronologically: milliseconds since the year 0.
pub fn time_key(at: Timestamp) -> String {
    range_key(at.as_millis())
}

/// Returns the end of a range as text that sorts among the keys of [`time_key`]. Clamps ends
/// outside the valid times.
pub fn range_key(millis: i64) -> String {
    let millis = millis.clamp(Timestamp::MIN_MILLIS, Timestamp::MAX_MILLIS + 1);
    format!("{:015}", millis - Timestamp::MIN_MILLIS)
}

/// Parses the text of [`time_key`].
pub fn read_time_key(key: &str) -> Option<Timestamp> {
    let millis: i64 = key.parse().ok()?;
    Some(Timestamp::from_millis(millis.checked_add(Timestamp::MIN_MILLIS)?))
}

/// Returns the sort key at which a page of a query ends, if there can be more.
pub fn sort_key_at_end(
    table: &'static str,
    last_evaluated_key: Option<&Item>,
) -> Result<Option<String>, StoreError> {
    let Some(item) = last_evaluated_key else { return Ok(None) };
    Ok(Some(ItemReader { table, item }.text("sk")?.to_owned()))
}

/// A reader of an item's attributes.
#[derive(Clone, Copy)]
pub struct ItemReader<'i> {
    /// The table's name without its prefix.
    pub table: &'static str,
    /// The item.
    pub item: &'i Item,
}

impl<'i> ItemReader<'i> {
    /// Returns the error for an attribute that is missing or has another form.
    pub fn damaged(&self, attribute: &'static str) -> StoreError {
        StoreError::Damaged { table: self.table, attribute }
    }

    /// Reads a text.
    pub fn text(&self, attribute: &'static str) -> Result<&'i str, StoreError> {
        self.optional_text(attribute)?.ok_or_else(|| self.damaged(attribute))
    }

    /// Reads a text that may be absent.
    pub fn optional_text(&self, attribute: &'static str) -> Result<Option<&'i str>, StoreError> {
        match self.item.get(attribute) {
            None => Ok(None),
            Some(AttributeValue::S(text)) => Ok(Some(text)),
            Some(_) => Err(self.damaged(attribute)),
        }
    }

    /// Reads and parses a text.
    pub fn parsed<T>(
        &self,
        attribute: &'static str,
        parse: impl FnOnce(&'i str) -> Option<T>,
    ) -> Result<T, StoreError> {
        parse(self.text(attribute)?).ok_or_else(|| self.damaged(attribute))
    }

    /// Reads and parses a text that may be absent.
    pub fn optional_parsed<T>(
        &self,
        attribute: &'static str,
        parse: impl FnOnce(&'i str) -> Option<T>,
    ) -> Result<Option<T>, StoreError> {
        let Some(text) = self.optional_text(attribute)? else { return Ok(None) };
        parse(text).map(Some).ok_or_else(|| self.damaged(attribute))
    }

    /// Reads a time in RFC 3339.
    pub fn time(&self, attribute: &'static str) -> Result<Timestamp, StoreError> {
        self.optional_time(attribute)?.ok_or_else(|| self.damaged(attribute))
    }

    /// Reads a time in RFC 3339 that may be absent.
    pub fn optional_time(&self, attribute: &'static str) -> Result<Option<Timestamp>, StoreError> {
        self.optional_parsed(attribute, |text| Timestamp::parse_rfc3339(text).ok())
    }

    /// Reads an integer that may be absent.
    pub fn optional_integer(&self, attribute: &'static str) -> Result<Option<i64>, StoreError> {
        match self.item.get(attribute) {
            None => Ok(None),
            Some(AttributeValue::N(digits)) => {
                digits.parse().map(Some).map_err(|_| self.damaged(attribute))
            }
            Some(_) => Err(self.damaged(attribute)),
        }
    }

    /// Reads a count that may be absent. A count is not negative.
    pub fn optional_count(&self, attribute: &'static str) -> Result<Option<u64>, StoreError> {
        let integer = self.optional_integer(attribute)?;
        let count = integer.map(|integer| integer.try_into().map_err(|_| self.damaged(attribute)));
        count.transpose()
    }

    /// Reads a count.
    pub fn count(&self, attribute: &'static str) -> Result<u64, StoreError> {
        self.optional_count(attribute)?.ok_or_else(|| self.damaged(attribute))
    }

    /// Reads a count up to 255.
    pub fn small_count(&self, attribute: &'static str) -> Result<u8, StoreError> {
        self.optional_small_count(attribute)?.ok_or_else(|| self.damaged(attribute))
    }

    /// Reads a count up to 255 that may be absent.
    pub fn optional_small_count(&self, attribute: &'static str) -> Result<Option<u8>, StoreError> {
        let count = self.optional_count(attribute)?.map(u8::try_from).transpose();
        count.map_err(|_| self.damaged(attribute))
    }

    /// Reads a time in milliseconds since the Unix epoch.
    pub fn millis(&self, attribute: &'static str) -> Result<Timestamp, StoreError> {
        self.optional_millis(attribute)?.ok_or_else(|| self.damaged(attribute))
    }

    /// Reads a time in milliseconds since the Unix epoch that may be absent.
    pub fn optional_millis(
        &self,
        attribute: &'static str,
    ) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.optional_integer(attribute)?.map(Timestamp::from_millis))
    }

    /// Reads a boolean that may be absent.
    pub fn optional_boolean(&self, attribute: &'static str) -> Result<Option<bool>, StoreError> {
        match self.item.get(attribute) {
            None => Ok(None),
            Some(AttributeValue::Bool(value)) => Ok(Some(*value)),
            Some(_) => Err(self.damaged(attribute)),
        }
    }

    /// Reads a binary value of exactly `N` bytes.
    pub fn bytes<const N: usize>(&self, attribute: &'static str) -> Result<[u8; N], StoreError> {
        self.blob(attribute)?.try_into().map_err(|_| self.damaged(attribute))
    }

    /// Reads a binary value of any length.
    pub fn blob(&self, attribute: &'static str) -> Result<&'i [u8], StoreError> {
        match self.item.get(attribute) {
            Some(AttributeValue::B(blob)) => Ok(blob.as_ref()),
            _ => Err(self.damaged(attribute)),
        }
    }

    /// Reads a string set. An absent set is empty.
    pub fn text_set(&self, attribute: &'static str) -> Result<&'i [String], StoreError> {
        match self.item.get(attribute) {
            None => Ok(&[]),
            Some(AttributeValue::Ss(texts)) => Ok(texts),
            Some(_) => Err(self.damaged(attribute)),
        }
    }
}
