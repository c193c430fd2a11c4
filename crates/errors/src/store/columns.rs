//! The columns of runs, in table `errors`. They are written before a manifest references them, and
//! never change.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `bundle#PROJECT` | `DAY#RUN` | all columns of a small run |
//! | `columns#PROJECT#COLUMN#DAY-MOD-8` | `DAY#RUN#PART` | up to 350 kB of a column of a larger run |

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::stream::{self, StreamExt, TryStreamExt};

use shared::dynamodb::StoreError;
use shared::dynamodb::immutable_items::{ItemKey, place};
use shared::dynamodb::item::{Item, b, key};
use shared::projects::project::ProjectId;

use super::ErrorStore;
use super::errors::TABLE;
use super::manifest::run_expiry;
use crate::log::day::{Day, MINUTES_PER_DAY};
use crate::log::manifest::{Run, RunId, RunLayout};
use crate::log::run::{ColumnName, Columns};

/// Maximum bytes of columns that share one item, which is written and read as a whole. Queries need
/// a few of seventeen columns, so larger bundles cost readers more than they save writers.
const MAX_BUNDLE_BYTES: usize = 16_000;
/// Maximum bytes of a column in one item.
const PART_BYTES: usize = 350_000;
/// The attribute with a part of a column.
const PART: &str = "bytes";
/// Number of partitions that store one column of all runs.
const COLUMN_PARTITIONS: i64 = 8;
/// Maximum concurrent requests.
const PARALLEL: usize = 8;

/// The columns to read of a run.
#[derive(Debug, Clone)]
pub(super) struct ColumnRequest<'m> {
    pub(super) day: Day,
    pub(super) run: &'m Run,
    pub(super) names: &'m [ColumnName],
    /// `true` to also read all tags.
    pub(super) with_tags: bool,
}

impl ColumnRequest<'_> {
    /// Returns the columns to read, except tags of a bundle.
    fn columns(&self) -> Vec<ColumnName> {
        let tags = self.run.columns().filter(|it| self.with_tags && it.is_tag());
        self.names.iter().copied().chain(tags).collect()
    }
}

impl ErrorStore<'_> {
    /// Writes the columns of a run under a new ID. Returns the ID, the layout and the bytes.
    pub(super) async fn put_columns(
        self,
        project: ProjectId,
        day: Day,
        columns: &Columns,
    ) -> Result<(RunId, RunLayout, u64), StoreError> {
        let id = RunId::random();
        let bytes = columns.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        let (form, items) = if bytes <= MAX_BUNDLE_BYTES {
            let mut item = bundle_key(project, day, id);
            item.extend(columns.iter().map(|(name, bytes)| (name.name().into_owned(), b(bytes))));
            (RunLayout::Bundle, vec![item])
        } else {
            let mut parts = BTreeMap::new();
            let mut items = Vec::new();
            for (name, bytes) in columns.iter() {
                parts.insert(name, bytes.len().div_ceil(PART_BYTES));
                for (part, bytes) in bytes.chunks(PART_BYTES).enumerate() {
                    let mut item = part_key(project, day, id, name, part);
                    item.insert(PART.to_owned(), b(bytes));
                    items.push(item);
                }
            }
            (RunLayout::Columns(parts), items)
        };
        let puts: Vec<_> = items
            .into_iter()
            .map(|mut item| {
                item.insert("expiresAt".to_owned(), run_expiry(day));
                self.db.put_unless_there(TABLE, "pk", item)
            })
            .collect();
        stream::iter(puts).buffer_unordered(PARALLEL).try_collect::<()>().await?;
        Ok((id, form, u64::try_from(bytes).unwrap_or(u64::MAX)))
    }

    /// Returns the requested columns in the order of `requested`. A run with damaged or missing
    /// columns is reported and returned as `None`.
    pub(super) async fn read_columns(
        self,
        project: ProjectId,
        requested: &[ColumnRequest<'_>],
    ) -> Result<Vec<Option<Columns>>, StoreError> {
        let keys: Vec<Item> = requested
            .iter()
            .flat_map(|requested| {
                keys_of(project, requested.day, requested.run, &requested.columns())
            })
            .collect();
        let found = self.db.get_all_unchanging(TABLE, keys).await?;
        let assemble = |requested: &ColumnRequest<'_>| {
            let first =
                keys_of(project, requested.day, requested.run, requested.names).into_iter().next();
            let columns = assemble(project, requested, &found);
            self.db.unless_damaged(&first.unwrap_or_default(), columns)
        };
        requested.iter().map(assemble).collect()
    }

    /// Reports a run that is skipped because its columns cannot be decoded.
    pub(super) fn report_damaged_run(self, project: ProjectId, day: Day, run: &Run) {
        let first = keys_of(project, day, run, &[ColumnName::Base]).into_iter().next();
        self.db.report_damaged(TABLE, &first.unwrap_or_default(), PART);
    }

    /// Deletes the columns of runs that no query counts any more.
    pub(super) async fn delete_columns(
        self,
        project: ProjectId,
        day: Day,
        runs: &[&Run],
    ) -> Result<(), StoreError> {
        let keys = runs.iter().flat_map(|run| {
            let all: Vec<ColumnName> = run.columns().collect();
            keys_of(project, day, run, &all)
        });
        self.db.delete_all(TABLE, keys.collect()).await
    }
}

fn bundle_key(project: ProjectId, day: Day, run: RunId) -> Item {
    key(&format!("bundle#{project}"), &format!("{day}#{run}"))
}

fn part_key(project: ProjectId, day: Day, run: RunId, name: ColumnName, part: usize) -> Item {
    let number = day.first_minute().div_euclid(MINUTES_PER_DAY).rem_euclid(COLUMN_PARTITIONS);
    let pk = format!("columns#{project}#{}#{number}", name.name());
    key(&pk, &format!("{day}#{run}#{part:02}"))
}

/// Returns the keys of the items that store these columns of a run.
fn keys_of(project: ProjectId, day: Day, run: &Run, names: &[ColumnName]) -> Vec<Item> {
    match &run.form {
        // The totals in the manifest suffice.
        RunLayout::Bundle if names.is_empty() => Vec::new(),
        RunLayout::Bundle => vec![bundle_key(project, day, run.id)],
        RunLayout::Columns(parts) => names
            .iter()
            .filter(|name| !name.is_tag() || parts.contains_key(name))
            .flat_map(|name| {
                let parts = parts.get(name).copied().unwrap_or(1);
                (0..parts).map(|part| part_key(project, day, run.id, *name, part))
            })
            .collect(),
    }
}

/// Returns the maximum bytes of these columns of a run.
pub(super) fn most_bytes_of(run: &Run, names: &[ColumnName]) -> u64 {
    let RunLayout::Columns(parts) = &run.form else { return run.bytes };
    let parts: usize = names.iter().map(|name| parts.get(name).copied().unwrap_or(1)).sum();
    run.bytes.min(u64::try_from(parts * PART_BYTES).unwrap_or(u64::MAX))
}

fn assemble(
    project: ProjectId,
    requested: &ColumnRequest<'_>,
    found: &HashMap<ItemKey, Arc<Item>>,
) -> Result<Columns, StoreError> {
    let damaged = |attribute| StoreError::Damaged { table: TABLE, attribute };
    let find = |key: &Item| found.get(&place(key)).ok_or_else(|| damaged("pk"));
    let (day, run) = (requested.day, requested.run);
    let column = |name: &ColumnName| {
        let attribute = match run.form {
            RunLayout::Bundle => name.name(),
            RunLayout::Columns(_) => Cow::Borrowed(PART),
        };
        let mut column = None::<Vec<u8>>;
        for key in keys_of(project, day, run, &[*name]) {
            match find(&key)?.get(attribute.as_ref()) {
                None if name.is_tag() && run.form == RunLayout::Bundle => {}
                Some(AttributeValue::B(bytes)) => {
                    column.get_or_insert_default().extend(bytes.as_ref());
                }
                _ => return Err(damaged(PART)),
            }
        }
        Ok(column.map(|bytes| (*name, bytes)))
    };
    let mut names = requested.columns();
    if requested.with_tags && run.form == RunLayout::Bundle {
        let item = find(&bundle_key(project, day, run.id))?;
        let stored = item.keys().filter_map(|name| ColumnName::parse(name));
        names.extend(stored.filter(|name| name.is_tag()));
    }
    names.iter().filter_map(|name| column(name).transpose()).collect()
}
