//! The names of the tables.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;

/// Environment variable with the prefix of all table names, set by `template.yaml`.
pub const TABLE_PREFIX_VARIABLE: &str = "WAYMARK_TABLE_PREFIX";
/// Default prefix of all table names.
pub const DEFAULT_TABLE_PREFIX: &str = "waymark-";
/// Environment variable with the restored tables, set by the template parameter `RestoredTables`.
pub const RESTORED_TABLES_VARIABLE: &str = "WAYMARK_RESTORED_TABLES";

/// Start of the suffix of restored tables, which follows the original name and a hyphen. The
/// policies of functions permit no other suffix.
const RESTORED: &str = "restored-";

/// The names of all tables: a prefix, and each table's own name. Tables that were restored to an
/// earlier time have a suffix and replace the originals (`docs/operations.md`, "Restore a table").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableNames {
    prefix: String,
    /// The suffixes of restored tables, by original name.
    suffixes: BTreeMap<String, String>,
}

/// The reason why the table names are unknown. An error is safer than another stack's tables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableNamesError {
    /// A variable is not UTF-8.
    #[error("{0} is not UTF-8; give it another value or none")]
    NotUnicode(&'static str),
    /// The list of restored tables is invalid.
    #[error(
        "{RESTORED_TABLES_VARIABLE} has `{0}`; use a comma-separated list such as \
         `errors:restored-20261121T041600Z`, with each table once"
    )]
    NotRestored(String),
}

impl TableNames {
    /// Returns names that start with `prefix`.
    pub fn new(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), suffixes: BTreeMap::new() }
    }

    /// Adds the restored tables of a list such as
    /// `feature-flags:restored-1,flag-changes:restored-1`. The list can be empty. `restored-1` is
    /// the suffix of the table that replaces the original.
    ///
    /// # Errors
    /// [`TableNamesError::NotRestored`] with the first entry that is invalid or repeats a table.
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

    /// Reads the names from the environment variables. The default prefix is `waymark-`.
    ///
    /// # Errors
    /// A [`TableNamesError`] with the first invalid value.
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

    /// Replaces the prefix.
    #[must_use]
    pub fn with_prefix(self, prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// Returns the prefix of all names.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the full name of a table.
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
    fn restored_tables_replace_their_originals() {
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
    fn invalid_lists_of_restored_tables_are_rejected() {
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
            let rejected = TableNamesError::NotRestored(place.to_owned());
            assert_eq!(restored(list), Err(rejected), "{list}");
        }
    }
}
