//! Limits the errors of a project, in table `errors`: a DSN holder can report events with any
//! fingerprints.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `error-count#PROJECT` | `count` | number of errors, and number of errors created per hour |
//!
//! Capacity is reserved before an error is created. The daily count releases the capacity
//! of failed reservations and expired errors.

use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, Select, TransactWriteItem};

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, key, n, s};
use shared::dynamodb::request::IntoAction;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::errors::{TABLE, errors_pk};
use crate::ErrorLimits;

/// Time between counts of a project's errors.
const COUNTED_AFTER: Duration = Duration::from_hours(24);
/// The attribute with the number of errors.
const ERRORS: &str = "errors";
/// The attribute with the time of the last count.
const COUNTED_AT: &str = "countedAt";
/// The prefix of the attributes with the number of errors created in an hour.
const CREATED: &str = "created";
/// The starts of the names of all counts.
const COUNTS: [&str; 3] = [ERRORS, COUNTED_AT, CREATED];
const SECONDS_PER_HOUR: i64 = 3_600;

impl ErrorStore<'_> {
    /// Reserves capacity for one more error of a project. Returns `false` if a limit is reached.
    pub async fn reserve_error(
        self,
        project: ProjectId,
        limits: &ErrorLimits,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let hour = now.as_seconds().div_euclid(SECONDS_PER_HOUR);
        let created = format!("{CREATED}{hour}");
        let counts = [(ERRORS, limits.errors), (&created, limits.new_errors_per_hour)];
        let reserve = || self.db.add_while_below(TABLE, count_key(project), &counts);
        let Some(item) = reserve().await? else { return Ok(true) };
        // A count that is not a number never passes the condition.
        Ok(self.reset_damaged_counts(project, &item).await? && reserve().await?.is_none())
    }

    /// Removes all counts of a project if one is unreadable. So they restart at 0, and the packer
    /// counts the errors at its next check. Returns `true` if one was.
    async fn reset_damaged_counts(
        self,
        project: ProjectId,
        item: &Item,
    ) -> Result<bool, StoreError> {
        let counts: Vec<(&String, &AttributeValue)> =
            item.iter().filter(|(name, _)| COUNTS.iter().any(|it| name.starts_with(it))).collect();
        let damaged = counts.iter().find(|(_, value)| !is_integer(value));
        let Some((name, value)) = damaged.copied() else { return Ok(false) };
        let known = COUNTS.into_iter().find(|it| name.starts_with(it));
        self.db.report_damaged(TABLE, item, known.unwrap_or(ERRORS));
        let names: Vec<&str> = counts.iter().map(|(name, _)| name.as_str()).collect();
        let update = self
            .db
            .update(TABLE, count_key(project))
            .condition_expression(format!("{name} = :damaged"))
            .update_expression(format!("REMOVE {}", names.join(", ")))
            .expression_attribute_values(":damaged", value.clone());
        // If the condition fails, a concurrent request has removed them.
        self.db.write_if(update).await.map(|_| true)
    }

    /// Returns the action that releases the capacity of an error.
    pub(super) fn release_error(self, project: ProjectId) -> Result<TransactWriteItem, StoreError> {
        self.db
            .update(TABLE, count_key(project))
            .update_expression("ADD errors :less")
            .expression_attribute_values(":less", n(-1))
            .into_action()
    }

    /// Counts the errors of a project, unless they were counted within a day.
    pub async fn count_errors(self, project: ProjectId, now: Timestamp) -> Result<(), StoreError> {
        let Some(mut item) = self.db.get(TABLE, count_key(project)).await? else { return Ok(()) };
        if self.reset_damaged_counts(project, &item).await? {
            let undamaged = self.db.get(TABLE, count_key(project)).await?;
            item = undamaged.unwrap_or_default();
        }
        let reader = ItemReader { table: TABLE, item: &item };
        let counted_at = reader.optional_millis(COUNTED_AT)?;
        if counted_at.is_some_and(|at| now < at.plus(COUNTED_AFTER)) {
            return Ok(());
        }
        let reserved = reader.optional_integer(ERRORS)?.unwrap_or_default();
        let existing = self.count_kept_errors(project, now).await?;
        let hour = now.as_seconds().div_euclid(SECONDS_PER_HOUR);
        let old: Vec<&str> = item.keys().filter_map(|name| of_earlier_hour(name, hour)).collect();
        let remove =
            if old.is_empty() { String::new() } else { format!(" REMOVE {}", old.join(", ")) };
        // `ADD` keeps concurrent reservations.
        let mut update = self
            .db
            .update(TABLE, count_key(project))
            .condition_expression("attribute_not_exists(countedAt)")
            .update_expression(format!("ADD errors :more SET countedAt = :now{remove}"))
            .expression_attribute_values(":more", n(existing - reserved))
            .expression_attribute_values(":now", n(now.as_millis()));
        if let Some(counted_at) = counted_at {
            update = update
                .condition_expression("countedAt = :counted")
                .expression_attribute_values(":counted", n(counted_at.as_millis()));
        }
        // If the condition fails, a concurrent packer has just counted.
        self.db.write_if(update).await.map(drop)
    }

    async fn count_kept_errors(
        self,
        project: ProjectId,
        now: Timestamp,
    ) -> Result<i64, StoreError> {
        let mut pages = self
            .db
            .query(TABLE)
            .key_condition_expression("pk = :pk")
            .filter_expression("expiresAt > :now")
            .expression_attribute_values(":pk", s(errors_pk(project)))
            .expression_attribute_values(":now", n(now.as_seconds()))
            .select(Select::Count)
            .into_paginator()
            .send();
        let mut count = 0;
        while let Some(page) = pages.next().await {
            count += i64::from(page?.count);
        }
        Ok(count)
    }
}

fn count_key(project: ProjectId) -> Item {
    key(&format!("error-count#{project}"), "count")
}

fn is_integer(value: &AttributeValue) -> bool {
    value.as_n().is_ok_and(|digits| digits.parse::<i64>().is_ok())
}

/// Returns the attribute name if it counts the errors created in an hour before `hour`.
fn of_earlier_hour(name: &str, hour: i64) -> Option<&str> {
    let of: i64 = name.strip_prefix(CREATED)?.parse().ok()?;
    (of < hour).then_some(name)
}
