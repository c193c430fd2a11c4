//! Manifests, which list the counted runs of a day, in table `errors`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `manifest#PROJECT` | `DAY`, or `DAY#PART` | an attribute for each run of the day |
//!
//! A run is stored as bytes. Parsing a map of its numbers, mostly the names, took much of the time
//! of queries that read only manifests.
//!
//! An item has at most 400 kB, but a day can have any number of runs. So each part of a day's
//! manifest holds the runs of [`STEPS_OF_PART`] pack steps. Runs are compacted only within a part.

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, b, item, key, n, s};
use shared::dynamodb::request::IntoAction;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::errors::TABLE;
use crate::log::day::{COUNT_RETENTION, Day};
use crate::log::manifest::{Manifest, Run, RunId};

/// The prefix of the attributes with runs.
const RUN: &str = "r_";
/// The prefix of the attributes with runs that were compacted into another one.
const REPLACED: &str = "d_";
/// The field of a replaced run that has the run.
const RUN_OF_REPLACED: &str = "run";
/// The field of a replaced run that has the time of its replacement.
const REPLACED_AT: &str = "replacedAt";
/// Pack steps whose runs share one item of a day. Each step adds a run of up to 200 bytes.
/// Compacted runs, and runs replaced within the last hour, take about as much again.
const STEPS_OF_PART: u64 = 512;

impl ErrorStore<'_> {
    /// Returns the manifests of the days from `first` to `last`. Strongly consistent: counts depend
    /// on them.
    ///
    /// `first` must be within the retention: DynamoDB can take days to remove expired items.
    pub(super) async fn list_manifests(
        self,
        project: ProjectId,
        first: Day,
        last: Day,
    ) -> Result<Vec<Manifest>, StoreError> {
        let mut items = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk AND sk BETWEEN :first AND :last")
            .expression_attribute_values(":pk", s(manifests_pk(project)))
            .expression_attribute_values(":first", s(first))
            .expression_attribute_values(":last", s(format!("{last}{AFTER_PARTS}")))
            .into_paginator()
            .items()
            .send();
        let mut manifests = Vec::new();
        while let Some(item) = items.next().await {
            let item = item?;
            manifests.extend(self.db.unless_damaged(&item, self.read_manifest(&item))?);
        }
        Ok(manifests)
    }

    /// Reads a manifest. An unreadable run counts nothing and does not affect other runs.
    fn read_manifest(self, item: &Item) -> Result<Manifest, StoreError> {
        let day = |sk: &str| read_date(sk.split('#').next()?);
        let day = ItemReader { table: TABLE, item }.parsed("sk", day)?;
        let (mut runs, mut replaced) = (Vec::new(), Vec::new());
        for (name, value) in item {
            if let Some(id) = name.strip_prefix(RUN) {
                runs.extend(self.db.unless_damaged(item, read_run(id, value))?);
            } else if let Some(id) = name.strip_prefix(REPLACED) {
                replaced.extend(self.db.unless_damaged(item, read_replaced(id, value))?);
            }
        }
        runs.sort_by_key(|run| (run.first_step, run.id));
        Ok(Manifest { day, runs, replaced })
    }

    /// Returns the action that adds a run to a day.
    pub(super) fn add_run(
        self,
        project: ProjectId,
        day: Day,
        run: &Run,
    ) -> Result<TransactWriteItem, StoreError> {
        self.db
            .update(TABLE, manifest_key(project, day, run.first_step))
            .update_expression(format!("SET {} = :run, expiresAt = :expiry", run_attribute(run.id)))
            .expression_attribute_values(":run", write_run(run))
            .expression_attribute_values(":expiry", run_expiry(day))
            .into_action()
    }

    /// Replaces the runs `merged`, which are of one part of a day, by `run`. Returns `false` if the
    /// manifest no longer lists all of them.
    pub(super) async fn replace_runs(
        self,
        project: ProjectId,
        day: Day,
        merged: &[&Run],
        run: Option<&Run>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut set = Vec::new();
        let mut update = self.db.update(TABLE, manifest_key(project, day, step_of(merged)));
        if let Some(run) = run {
            set.push(format!("{} = :run", run_attribute(run.id)));
            update = update.expression_attribute_values(":run", write_run(run));
        }
        for (number, run) in merged.iter().enumerate() {
            set.push(format!("{REPLACED}{} = :replaced{number}", run.id));
            update = update.expression_attribute_values(
                format!(":replaced{number}"),
                write_replaced(run, now),
            );
        }
        let attributes: Vec<String> = merged.iter().map(|run| run_attribute(run.id)).collect();
        let are_there: Vec<String> =
            attributes.iter().map(|name| format!("attribute_exists({name})")).collect();
        let update = update
            .condition_expression(are_there.join(" AND "))
            .update_expression(format!("SET {} REMOVE {}", set.join(", "), attributes.join(", ")));
        self.db.write_if(update).await
    }

    /// Removes replaced runs from a manifest, after their columns were deleted.
    pub(super) async fn remove_replaced(
        self,
        project: ProjectId,
        day: Day,
        replaced: &[&Run],
    ) -> Result<(), StoreError> {
        let attributes: Vec<String> =
            replaced.iter().map(|run| format!("{REPLACED}{}", run.id)).collect();
        let update = self
            .db
            .update(TABLE, manifest_key(project, day, step_of(replaced)))
            // An expired manifest must not be recreated.
            .condition_expression("attribute_exists(pk)")
            .update_expression(format!("REMOVE {}", attributes.join(", ")));
        self.db.write_if(update).await.map(drop)
    }
}

fn manifests_pk(project: ProjectId) -> String {
    format!("manifest#{project}")
}

/// A suffix that sorts after the parts of a day.
const AFTER_PARTS: &str = "~";

/// Returns the key of a day's manifest part with the runs of a step.
pub(super) fn manifest_key(project: ProjectId, day: Day, step: u64) -> Item {
    let sk = match step / STEPS_OF_PART {
        0 => day.to_string(),
        part => format!("{day}#{part:012}"),
    };
    key(&manifests_pk(project), &sk)
}

/// Returns a step of these runs, which are of one manifest part.
pub(super) fn step_of(runs: &[&Run]) -> u64 {
    runs.first().map_or(0, |run| run.first_step)
}

/// Returns the attribute of a run in its manifest.
pub(super) fn run_attribute(id: RunId) -> String {
    format!("{RUN}{id}")
}

/// Returns the expiry of the runs of a day.
pub(super) fn run_expiry(day: Day) -> AttributeValue {
    n(day.next().start().plus(COUNT_RETENTION).as_seconds())
}

pub(super) fn read_date(date: &str) -> Option<Day> {
    Timestamp::parse_date_or_date_time(date).ok().map(Day::of)
}

fn write_run(run: &Run) -> AttributeValue {
    b(&run.to_bytes())
}

fn write_replaced(run: &Run, at: Timestamp) -> AttributeValue {
    AttributeValue::M(item([(RUN_OF_REPLACED, write_run(run)), (REPLACED_AT, n(at.as_millis()))]))
}

fn damaged_run() -> StoreError {
    StoreError::Damaged { table: TABLE, attribute: RUN }
}

fn read_replaced(id: &str, value: &AttributeValue) -> Result<(Run, Timestamp), StoreError> {
    let fields = value.as_m().map_err(|_| damaged_run())?;
    let at = ItemReader { table: TABLE, item: fields }.millis(REPLACED_AT)?;
    let run = read_run(id, fields.get(RUN_OF_REPLACED).ok_or_else(damaged_run)?)?;
    Ok((run, at))
}

fn read_run(id: &str, value: &AttributeValue) -> Result<Run, StoreError> {
    let id = RunId::parse(id).ok_or_else(damaged_run)?;
    let bytes = value.as_b().map_err(|_| damaged_run())?;
    Run::from_bytes(id, bytes.as_ref()).map_err(|_| damaged_run())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::attribute::Attribute;
    use crate::category::Attributes;
    use crate::grouping::Fingerprint;
    use crate::log::manifest::RunLayout;
    use crate::log::row::EventRow;
    use crate::log::run::{ColumnName, pack};
    use crate::store::packing::totals_of;

    fn run() -> Run {
        let until = Timestamp::from_millis(1_795_219_200_000);
        let row = EventRow {
            occurred_at: until,
            fingerprint: Fingerprint([7; 16]),
            attributes: Attributes::default(),
        };
        let columns = pack(Day::of(until), &[row]).unwrap();
        let totals = totals_of(&columns).unwrap();
        let url = ColumnName::Category(Attribute::Url.into());
        let form = RunLayout::Columns(BTreeMap::from([(url, 2)]));
        let (id, first_step, last_step, level) = (RunId::random(), 3, 5, 1);
        Run { id, first_step, last_step, until, level, bytes: 100, values: 20, form, totals }
    }

    #[test]
    fn written_runs_are_read_unchanged() {
        let (run, at) = (run(), Timestamp::from_millis(1_795_219_260_000));
        let id = run.id.to_string();
        assert_eq!(read_run(&id, &write_run(&run)).ok().as_ref(), Some(&run));
        assert_eq!(read_replaced(&id, &write_replaced(&run, at)).ok(), Some((run, at)));
    }
}
