//! What the tables are called.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;

/// The prefix of all table names, set by `template.yaml`.
pub const TABLE_PREFIX_VARIABLE: &str = "WAYMARK_TABLE_PREFIX";
/// The prefix where none is set.
pub const DEFAULT_TABLE_PREFIX: &str = "waymark-";
/// The tables that others stand in for, set by the template's parameter `RestoredTables`.
pub const RESTORED_TABLES_VARIABLE: &str = "WAYMARK_RESTORED_TABLES";

/// What follows a table's name, and a hyphen, in the name of one that was restored from it: the
/// functions' policies allow no other.
const RESTORED: &str = "restored-";

/// The names of all tables: a prefix and the table's own, but for tables that were restored to an
/// earlier moment and stand in for those (`docs/operations.md`, "Restore a table").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableNames {
    prefix: String,
    /// What follows the names of tables that others stand in for.
    suffixes: BTreeMap<String, String>,
}

/// Why it is not known what the tables are called. Others than the stack's would be worse than an
/// error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableNamesError {
    /// A variable is not UTF-8.
    #[error("{0} is not UTF-8; give it another value or none")]
    NotUnicode(&'static str),
    /// The list of restored tables is not one.
    #[error(
        "{RESTORED_TABLES_VARIABLE} has `{0}`; it takes a list such as \
         `errors:restored-20261121T041600Z`, each table once, with commas between"
    )]
    NotRestored(String),
}

impl TableNames {
    /// Tables whose names start with `prefix`.
    pub fn new(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), suffixes: BTreeMap::new() }
    }

    /// The same, but for those of a list such as `feature-flags:restored-1,flag-changes:restored-1`,
    /// which may be empty: `restored-1` is the end of the name of the table that stands in.
    ///
    /// # Errors
    /// Says what is no entry of such a list, or the second one of its table.
    pub fn with_restored(mut self, list: &str) -> Result<Self, TableNamesError> {
        for entry in list.split(',').filter(|_| !list.is_empty()) {
            let wrong = || TableNamesError::NotRestored(entry.to_owned());
            let (table, suffix) = entry.split_once(':').ok_or_else(wrong)?;
            let moment = suffix.strip_prefix(RESTORED).ok_or_else(wrong)?;
            let is_name = |text: &str, also: fn(char) -> bool| {
                !text.is_empty() && text.chars().all(|it| it.is_ascii_alphanumeric() || also(it))
            };
            if !is_name(table, |it| it == '-') || !is_name(moment, |_| false) {
                return Err(wrong());
            }
            if self.suffixes.insert(table.to_owned(), suffix.to_owned()).is_some() {
                return Err(wrong());
            }
        }
        Ok(self)
    }

    /// The names that the environment's variables give; where the prefix is not set, it is `waymark-`.
    ///
    /// # Errors
    /// Says which variable has no such value.
    pub fn from_environment() -> Result<Self, TableNamesError> {
        let value = |name| match env::var_os(name).map(OsString::into_string) {
            Some(Ok(value)) => Ok(Some(value).filter(|value| !value.is_empty())),
            Some(Err(_)) => Err(TableNamesError::NotUnicode(name)),
            None => Ok(None),
        };
        let prefix = value(TABLE_PREFIX_VARIABLE)?;
        let names = Self::new(prefix.unwrap_or_else(|| DEFAULT_TABLE_PREFIX.to_owned()));
        names.with_restored(&value(RESTORED_TABLES_VARIABLE)?.unwrap_or_default())
    }

    /// The same tables of another prefix.
    #[must_use]
    pub fn with_prefix(self, prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// What all names start with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The full name of a table.
    pub fn of(&self, table: &str) -> String {
        let Self { prefix, suffixes } = self;
        match suffixes.get(table) {
            Some(suffix) => format!("{prefix}{table}-{suffix}"),
            None => format!("{prefix}{table}"),
        }
    }
}

impl From<String> for TableNames {
    fn from(prefix: String) -> Self {
        Self::new(prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restored(list: &str) -> Result<TableNames, TableNamesError> {
        TableNames::new("shop-").with_restored(list)
    }

    #[test]
    fn a_restored_table_stands_in_for_the_one_it_was_restored_from() {
        let names =
            restored("feature-flags:restored-20261121T041600Z,flag-changes:restored-2").unwrap();
        assert_eq!(names.of("feature-flags"), "shop-feature-flags-restored-20261121T041600Z");
        assert_eq!(names.of("flag-changes"), "shop-flag-changes-restored-2");
        assert_eq!(names.of("errors"), "shop-errors");
        assert_eq!(restored("").unwrap().of("errors"), "shop-errors");
        let staging = names.with_prefix("staging-");
        assert_eq!(staging.of("flag-changes"), "staging-flag-changes-restored-2");
    }

    #[test]
    fn a_list_that_names_other_tables_than_restored_ones_is_refused() {
        for (list, place) in [
            ("errors", "errors"),
            ("errors:", "errors:"),
            ("errors:restored-", "errors:restored-"),
            ("errors:production", "errors:production"),
            ("errors:restored-1-x", "errors:restored-1-x"),
            (":restored-1", ":restored-1"),
            ("errors:restored-1,", ""),
            ("errors:restored-1, quotas:restored-1", " quotas:restored-1"),
            ("errors:restored-1,errors:restored-2", "errors:restored-2"),
        ] {
            let refused = TableNamesError::NotRestored(place.to_owned());
            assert_eq!(restored(list), Err(refused), "{list}");
        }
    }
}
