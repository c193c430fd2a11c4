//! Unreadable items: those without the form that this code writes.
//!
//! A request for one such item fails. Lists and jobs skip the item and report it, since one item
//! must not hide the others permanently.

use std::fmt;

use super::item::Item;
use super::{Store, StoreError};

/// An unreadable item that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedItem {
    /// The table's name without its prefix.
    pub table: &'static str,
    /// The item's key attributes with their values.
    pub key: String,
    /// The attribute that is missing or has another form.
    pub attribute: &'static str,
}

impl fmt::Display for DamagedItem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, key, attribute } = self;
        write!(formatter, "an item of table {table} is damaged: attribute {attribute} of {key}")
    }
}

/// A function that reports a skipped item.
pub type DamageReport = fn(&DamagedItem);

/// Logs the item. This is the default report.
pub(super) fn log(item: &DamagedItem) {
    tracing::error!("{item}");
}

/// The key attributes of the tables whose items are read in bulk.
const KEYS: [&[&str]; 4] = [&["pk", "sk"], &["idOrSlug"], &["keyId"], &["projectId", "key"]];

fn key_of(item: &Item) -> String {
    let attributes = KEYS.iter().find(|names| names.iter().all(|name| item.contains_key(*name)));
    let attributes = attributes.copied().unwrap_or_default().iter();
    let texts = attributes.map(|name| {
        let value = item.get(*name).and_then(|value| value.as_s().ok());
        format!("{name} {}", value.map_or("", String::as_str))
    });
    texts.collect::<Vec<_>>().join(", ")
}

impl Store {
    /// Sets another report for skipped items.
    #[must_use]
    pub fn reporting_damage(mut self, report: DamageReport) -> Self {
        self.report_damage = report;
        self
    }

    /// Returns the item, or reports it and returns `None` if it is unreadable.
    pub fn unless_damaged<T>(
        &self,
        item: &Item,
        read: Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        match read {
            Err(StoreError::Damaged { table, attribute }) => {
                self.report_damaged(table, item, attribute);
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    /// Reports a skipped item. `key` must have the item's key attributes and can have others.
    pub fn report_damaged(&self, table: &'static str, key: &Item, attribute: &'static str) {
        (self.report_damage)(&DamagedItem { table, key: key_of(key), attribute });
    }

    /// Returns all readable items and reports the others.
    pub fn undamaged<'i, T, C: FromIterator<T>>(
        &self,
        items: impl IntoIterator<Item = &'i Item>,
        read: impl Fn(&'i Item) -> Result<T, StoreError>,
    ) -> Result<C, StoreError> {
        let read = items.into_iter().map(|item| self.unless_damaged(item, read(item)));
        read.filter_map(Result::transpose).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamodb::item::{item, key, n, s};

    #[test]
    fn items_are_named_by_their_key_only() {
        let mut event = key("events#1", "2");
        event.insert("name".to_owned(), s("private"));
        assert_eq!(key_of(&event), "pk events#1, sk 2");
        let project = item([("idOrSlug", s("shop")), ("projectId", s("3")), ("key", s("x"))]);
        assert_eq!(key_of(&project), "idOrSlug shop");
        assert_eq!(key_of(&item([("keyId", s("k")), ("user", s("private"))])), "keyId k");
        assert_eq!(key_of(&item([("projectId", s("3")), ("key", s("f"))])), "projectId 3, key f");
        assert_eq!(key_of(&item([("other", n(1))])), "");
    }
}
