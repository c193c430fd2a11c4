//! The head of a project's log, in table `errors`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `log-head#PROJECT` | `head` | packing progress, number of partitions, tombstones |

use std::fmt;

use aws_sdk_dynamodb::types::builders::UpdateBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, count, key, n, s, time_key};
use shared::dynamodb::request::IntoAction;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::deletion::read_tombstones;
use super::errors::TABLE;
use super::manifest::{manifest_key, read_date, run_attribute};
use super::rows::{MAX_SHARDS, row_time};
use crate::log::day::Day;
use crate::log::manifest::{Run, RunId};
use crate::log::tombstone::Tombstones;

/// A position in a log: before all rows with an equal or greater sort key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogPosition(String);

impl LogPosition {
    /// Returns the position before all rows.
    pub(super) fn start() -> Self {
        Self("0".to_owned())
    }

    /// Parses a displayed position.
    pub(super) fn read(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the position before all rows received at `received_at` or later.
    pub(super) fn before(received_at: Timestamp) -> Self {
        Self(time_key(received_at))
    }

    /// Returns the position directly after the row with a sort key.
    pub(super) fn after(sk: &str) -> Self {
        // The sort keys of all rows have equal length.
        Self(format!("{sk}~"))
    }

    /// Returns a time by which all rows before the position had been received.
    pub(super) fn time(&self) -> Timestamp {
        let time = row_time(&self.0).unwrap_or(Timestamp::from_millis(Timestamp::MIN_MILLIS));
        if self.0.ends_with('~') {
            Timestamp::from_millis(time.as_millis().saturating_add(1))
        } else {
            time
        }
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The packing progress of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LogHead {
    /// All rows before this position are packed.
    pub(super) watermark: LogPosition,
    /// The number of pack steps up to the watermark.
    pub(super) steps: u64,
    /// Readers count runs before this position, and rows from it on.
    pub(super) readable: LogPosition,
    /// The number of pack steps up to `readable`.
    pub(super) readable_steps: u64,
    /// The runs of the step between `readable` and the watermark.
    pub(super) step: Vec<(Day, RunId)>,
    /// The number of partitions of the rows.
    pub(super) shards: u8,
    /// The deleted errors.
    pub(super) tombstones: Tombstones,
}

impl Default for LogHead {
    fn default() -> Self {
        Self {
            watermark: LogPosition::start(),
            steps: 0,
            readable: LogPosition::start(),
            readable_steps: 0,
            step: Vec::new(),
            shards: 1,
            tombstones: Tombstones::default(),
        }
    }
}

impl ErrorStore<'_> {
    /// Returns the head of a project's log. Strongly consistent: counts depend on it.
    pub(super) async fn find_log_head(self, project: ProjectId) -> Result<LogHead, StoreError> {
        let found = self.db.get(TABLE, head_key(project)).await?;
        found.as_ref().map_or_else(|| Ok(LogHead::default()), read_head)
    }

    /// Returns the log heads of projects, in the order of `projects`. Strongly consistent.
    pub(super) async fn find_log_heads(
        self,
        projects: &[ProjectId],
    ) -> Result<Vec<LogHead>, StoreError> {
        let keys = projects.iter().map(|project| head_key(*project)).collect();
        let items = self.db.get_all(TABLE, keys).await?;
        let of = |project: &ProjectId| {
            let key = head_key(*project);
            let found = items.iter().find(|item| item.get("pk") == key.get("pk"));
            found.map_or_else(|| Ok(LogHead::default()), read_head)
        };
        projects.iter().map(of).collect()
    }

    /// Returns the number of partitions of a log's rows, or 1 if the head does not have it. Ignores
    /// damage of other attributes: writers of rows do not need them.
    pub(super) fn shards_of_head(self, head: &Item) -> Result<u8, StoreError> {
        Ok(self.db.unless_damaged(head, read_shards(head))?.unwrap_or(1))
    }

    /// Spreads a log's rows over twice as many partitions, after one was throttled. Returns the new
    /// number of partitions.
    pub async fn add_log_shards(self, project: ProjectId, seen: u8) -> Result<u8, StoreError> {
        let shards = seen.saturating_mul(2).min(MAX_SHARDS);
        let spread = self
            .db
            .update(TABLE, head_key(project))
            .condition_expression("attribute_not_exists(shards) OR shards < :shards")
            .update_expression("SET shards = :shards")
            .expression_attribute_values(":shards", n(shards));
        if self.db.write_if(spread).await? {
            return Ok(shards);
        }
        // A concurrent request added partitions.
        self.log_shards(project).await
    }

    /// Returns the number of partitions of a log's rows. Strongly consistent: each acknowledged
    /// event is in one of them.
    pub(super) async fn log_shards(self, project: ProjectId) -> Result<u8, StoreError> {
        let head = self.db.get(TABLE, head_key(project)).await?;
        head.map_or(Ok(1), |head| self.shards_of_head(&head))
    }

    /// Returns the action that moves the watermark of a log to the end of a step with these runs,
    /// on the condition that the steps and shards of `head` are unchanged.
    pub(super) fn move_watermark(
        self,
        project: ProjectId,
        head: &LogHead,
        end: &LogPosition,
        runs: &[(Day, Run)],
    ) -> Result<TransactWriteItem, StoreError> {
        let runs = runs.iter().map(|(day, run)| s(format!("{day}#{}", run.id))).collect();
        let mut condition = "attribute_not_exists(shards) OR shards = :shards".to_owned();
        condition = match head.steps {
            0 => format!("attribute_not_exists(steps) AND ({condition})"),
            _ => format!("steps = :steps AND ({condition})"),
        };
        let mut update = self
            .db
            .update(TABLE, head_key(project))
            .update_expression("SET watermark = :to, steps = :next, step = :runs")
            // A packer that read fewer shards has not read all rows.
            .condition_expression(condition)
            .expression_attribute_values(":to", s(end))
            .expression_attribute_values(":next", count(head.steps.saturating_add(1)))
            .expression_attribute_values(":runs", AttributeValue::L(runs))
            .expression_attribute_values(":shards", n(head.shards));
        if head.steps > 0 {
            update = update.expression_attribute_values(":steps", count(head.steps));
        }
        update.into_action()
    }

    /// Publishes the runs of the last step to readers. Call it after the step's transaction was
    /// committed. Returns `false` if another step was committed since `head` was read.
    pub(super) async fn finish_step(
        self,
        project: ProjectId,
        head: &LogHead,
    ) -> Result<bool, StoreError> {
        self.db.write_if(self.move_readable(project, head)).await
    }

    /// Publishes the runs of another packer's last step to readers. That packer's transaction can
    /// still be in progress, so the update also checks that the manifests list the runs.
    pub(super) async fn finish_step_of_others(
        self,
        project: ProjectId,
        head: &LogHead,
    ) -> Result<bool, StoreError> {
        let mut actions = vec![self.move_readable(project, head).into_action()?];
        for (day, id) in &head.step {
            let check = self
                .db
                .check(TABLE, manifest_key(project, *day, head.steps))
                .condition_expression(format!("attribute_exists({})", run_attribute(*id)));
            actions.push(check.into_action()?);
        }
        Ok(self.db.commit_all(actions).await?.is_none())
    }

    fn move_readable(self, project: ProjectId, head: &LogHead) -> UpdateBuilder {
        self.db
            .update(TABLE, head_key(project))
            .condition_expression("steps = :steps")
            .update_expression("SET readable = watermark, readableSteps = steps REMOVE step")
            .expression_attribute_values(":steps", count(head.steps))
    }
}

fn read_head(item: &Item) -> Result<LogHead, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let position = |name| {
        let text = reader.optional_text(name)?;
        Ok::<_, StoreError>(text.map_or_else(LogPosition::start, LogPosition::read))
    };
    let step = match item.get("step") {
        None => Vec::new(),
        Some(AttributeValue::L(runs)) => {
            let runs: Option<Vec<_>> = runs.iter().map(read_run_of_step).collect();
            runs.ok_or_else(|| reader.damaged("step"))?
        }
        Some(_) => return Err(reader.damaged("step")),
    };
    Ok(LogHead {
        watermark: position("watermark")?,
        steps: reader.optional_count("steps")?.unwrap_or_default(),
        readable: position("readable")?,
        readable_steps: reader.optional_count("readableSteps")?.unwrap_or_default(),
        step,
        shards: read_shards(item)?,
        tombstones: read_tombstones(item)?,
    })
}

pub(super) fn head_key(project: ProjectId) -> Item {
    key(&format!("log-head#{project}"), "head")
}

fn read_shards(head: &Item) -> Result<u8, StoreError> {
    let shards = ItemReader { table: TABLE, item: head }.optional_small_count("shards")?;
    Ok(shards.unwrap_or(1))
}

fn read_run_of_step(value: &AttributeValue) -> Option<(Day, RunId)> {
    let (day, id) = value.as_s().ok()?.split_once('#')?;
    Some((read_date(day)?, RunId::parse(id)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_sort_as_rows_do() {
        let at = Timestamp::parse_rfc3339("2026-11-21T04:16:00Z").unwrap();
        let next = Timestamp::from_millis(at.as_millis() + 1);
        let row = format!("{}#{}", time_key(at), "7".repeat(32));
        let later = format!("{}#{}", time_key(at), "8".repeat(32));
        assert!(LogPosition::start().0 < LogPosition::before(at).0);
        assert!(LogPosition::before(at).0 < row && row < LogPosition::after(&row).0);
        assert!(LogPosition::after(&row).0 < later);
        assert!(LogPosition::after(&later) < LogPosition::before(next));
        assert_eq!(LogPosition::before(at).time(), at);
        assert_eq!(LogPosition::after(&row).time(), next);
    }
}
