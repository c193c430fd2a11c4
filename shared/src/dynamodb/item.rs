//! Items as DynamoDB holds them, read and written by attribute.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;

use crate::timestamp::Timestamp;

use super::StoreError;

/// An item, or a part of one.
pub type Item = HashMap<String, AttributeValue>;

/// An item, or a key, of the given attributes.
pub fn item<const N: usize>(attributes: [(&str, AttributeValue); N]) -> Item {
    attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// An item of the attributes of a key and those that are given.
pub fn item_at<const N: usize>(key: Item, attributes: [(&str, AttributeValue); N]) -> Item {
    let mut item = key;
    item.extend(attributes.map(|(name, value)| (name.to_owned(), value)));
    item
}

/// A string.
#[allow(clippy::needless_pass_by_value)] // Callers pass values and references alike.
pub fn s(value: impl ToString) -> AttributeValue {
    AttributeValue::S(value.to_string())
}

/// A number.
pub fn n(value: impl Into<i64>) -> AttributeValue {
    AttributeValue::N(value.into().to_string())
}

/// Bytes.
pub fn b(value: &[u8]) -> AttributeValue {
    AttributeValue::B(Blob::new(value))
}

/// A set of strings, or nothing: DynamoDB knows no empty sets.
pub fn ss<T: ToString>(values: impl IntoIterator<Item = T>) -> Option<AttributeValue> {
    let distinct: BTreeSet<String> = values.into_iter().map(|value| value.to_string()).collect();
    (!distinct.is_empty()).then(|| AttributeValue::Ss(distinct.into_iter().collect()))
}

/// The key of an item in a table whose keys are `pk` and `sk`.
pub fn key(pk: &str, sk: &str) -> Item {
    item([("pk", s(pk)), ("sk", s(sk))])
}

/// A point in time so that its text sorts as it does: milliseconds since the year 0.
pub fn time_key(at: Timestamp) -> String {
    range_key(at.as_millis())
}

/// An end of a range, which sorts among the keys of [`time_key`] even where no event can be.
pub fn range_key(millis: i64) -> String {
    let millis = millis.clamp(Timestamp::MIN_MILLIS, Timestamp::MAX_MILLIS + 1);
    format!("{:015}", millis - Timestamp::MIN_MILLIS)
}

/// Reads what [`time_key`] wrote.
pub fn read_time_key(key: &str) -> Option<Timestamp> {
    let millis: i64 = key.parse().ok()?;
    Some(Timestamp::from_millis(millis.checked_add(Timestamp::MIN_MILLIS)?))
}

/// The sort key that a page of a query ends at, where there may be more.
pub fn sort_key_at_end(
    table: &'static str,
    last_evaluated_key: Option<&Item>,
) -> Result<Option<String>, StoreError> {
    let Some(item) = last_evaluated_key else { return Ok(None) };
    Ok(Some(ItemReader { table, item }.text("sk")?.to_owned()))
}

/// An item of a table, for reading.
#[derive(Clone, Copy)]
pub struct ItemReader<'i> {
    /// The table's name without its prefix.
    pub table: &'static str,
    /// The item.
    pub item: &'i Item,
}

impl<'i> ItemReader<'i> {
    /// The error for an attribute that is missing or of another form.
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

    /// A text parsed into a type.
    pub fn parsed<T>(
        &self,
        attribute: &'static str,
        parse: impl FnOnce(&'i str) -> Option<T>,
    ) -> Result<T, StoreError> {
        parse(self.text(attribute)?).ok_or_else(|| self.damaged(attribute))
    }

    /// A text parsed into a type, where there is one.
    pub fn optional_parsed<T>(
        &self,
        attribute: &'static str,
        parse: impl FnOnce(&'i str) -> Option<T>,
    ) -> Result<Option<T>, StoreError> {
        let Some(text) = self.optional_text(attribute)? else { return Ok(None) };
        parse(text).map(Some).ok_or_else(|| self.damaged(attribute))
    }

    /// A point in time, written as RFC 3339 has it.
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

    /// A number that is not negative, where there is one.
    pub fn optional_count(&self, attribute: &'static str) -> Result<Option<u64>, StoreError> {
        let integer = self.optional_integer(attribute)?;
        let count = integer.map(|integer| integer.try_into().map_err(|_| self.damaged(attribute)));
        count.transpose()
    }

    /// A number that is not negative.
    pub fn count(&self, attribute: &'static str) -> Result<u64, StoreError> {
        self.optional_count(attribute)?.ok_or_else(|| self.damaged(attribute))
    }

    /// A number up to 255.
    pub fn small_count(&self, attribute: &'static str) -> Result<u8, StoreError> {
        self.optional_small_count(attribute)?.ok_or_else(|| self.damaged(attribute))
    }

    /// Reads a count up to 255 that may be absent.
    pub fn optional_small_count(&self, attribute: &'static str) -> Result<Option<u8>, StoreError> {
        let count = self.optional_count(attribute)?.map(u8::try_from).transpose();
        count.map_err(|_| self.damaged(attribute))
    }

    /// A point in time, in milliseconds.
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

    /// Bytes of any length.
    pub fn blob(&self, attribute: &'static str) -> Result<&'i [u8], StoreError> {
        match self.item.get(attribute) {
            Some(AttributeValue::B(blob)) => Ok(blob.as_ref()),
            _ => Err(self.damaged(attribute)),
        }
    }

    /// A set of strings; empty where there is none.
    pub fn text_set(&self, attribute: &'static str) -> Result<&'i [String], StoreError> {
        match self.item.get(attribute) {
            None => Ok(&[]),
            Some(AttributeValue::Ss(texts)) => Ok(texts),
            Some(_) => Err(self.damaged(attribute)),
        }
    }
}
