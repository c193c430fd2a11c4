//! Items that are not of the form in which this code writes them, where many are read.
//!
//! Who asks for one is told that it is damaged. Whoever asks for many gets all the others, and a job
//! goes on with them: one item must not hide the rest for good. It is reported instead.

use std::fmt;

use super::item::Item;
use super::{Store, StoreError};

/// An item that was left out since it cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedItem {
    /// The table's name without its prefix.
    pub table: &'static str,
    /// The item's key: attribute and value, of a sort key too.
    pub key: String,
    /// The attribute that is missing or of another form.
    pub attribute: &'static str,
}

impl fmt::Display for DamagedItem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, key, attribute } = self;
        write!(formatter, "an item of table {table} is damaged: attribute {attribute} of {key}")
    }
}

/// What is done about damaged items that are left out.
pub type DamageReport = fn(&DamagedItem);

/// Has the log name the item: all that is done where nobody says more.
pub(super) fn log(item: &DamagedItem) {
    tracing::error!("{item}");
}

/// The attributes that are keys of tables, as far as many items of them are read at once.
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
    /// The store with another way to report the items that it leaves out.
    #[must_use]
    pub fn reporting_damage(mut self, report: DamageReport) -> Self {
        self.report_damage = report;
        self
    }

    /// What was read of an item; nothing if it is damaged, which is reported.
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

    /// Reports an item that is left out, by any attributes that tell its key.
    pub fn report_damaged(&self, table: &'static str, key: &Item, attribute: &'static str) {
        (self.report_damage)(&DamagedItem { table, key: key_of(key), attribute });
    }

    /// All that can be read of some items.
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
    fn an_item_is_named_by_its_key_and_nothing_else() {
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
