//! How many errors a project has, in table `errors`: whoever has its DSN can report events of any kinds.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `error-count#PROJECT` | `count` | how many errors there are, and how many were made in an hour |
//!
//! Room is reserved before an error is made. What was reserved in vain, or expired, is given back once a
//! day, when the errors are counted.

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

/// How often the errors of a project are counted.
const COUNTED_AFTER: Duration = Duration::from_hours(24);
/// The attribute that tells how many errors there are.
const ERRORS: &str = "errors";
/// The attribute that tells when they were counted.
const COUNTED_AT: &str = "countedAt";
/// What the attribute begins with that tells how many errors were made in an hour.
const MADE: &str = "made";
const SECONDS_PER_HOUR: i64 = 3_600;

impl ErrorStore<'_> {
    /// Reserves room for one more error of a project. Answers whether there is any.
    pub async fn reserve_error(
        self,
        project: ProjectId,
        limits: &ErrorLimits,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let hour = now.as_seconds().div_euclid(SECONDS_PER_HOUR);
        let made = format!("{MADE}{hour}");
        let counts = [(ERRORS, limits.errors), (&made, limits.new_errors_per_hour)];
        let reserve = || self.db.add_while_below(TABLE, count_key(project), &counts);
        let Some(item) = reserve().await? else { return Ok(true) };
        // What is no number is below nothing.
        Ok(self.forget_damaged_counts(project, &item).await? && reserve().await?.is_none())
    }

    /// Removes counts of a project that cannot be read, so that they begin anew and the packer counts the
    /// errors on its next visit. Answers whether there were any.
    async fn forget_damaged_counts(
        self,
        project: ProjectId,
        item: &Item,
    ) -> Result<bool, StoreError> {
        let mut remove = vec![COUNTED_AT.to_owned()];
        let mut update = self.db.update(TABLE, count_key(project));
        let mut conditions = Vec::new();
        for (name, value) in item {
            let known = [ERRORS, COUNTED_AT].into_iter().find(|known| *known == name);
            let is_of_hour = of_earlier_hour(name, i64::MAX).is_some();
            let Some(known) = known.or(is_of_hour.then_some(MADE)) else { continue };
            if is_integer(value) {
                continue;
            }
            self.db.report_damaged(TABLE, item, known);
            conditions.push(format!("{name} = :{name}"));
            update = update.expression_attribute_values(format!(":{name}"), value.clone());
            if known != COUNTED_AT {
                remove.push(name.clone());
            }
        }
        if conditions.is_empty() {
            return Ok(false);
        }
        let update = update
            .condition_expression(conditions.join(" AND "))
            .update_expression(format!("REMOVE {}", remove.join(", ")));
        // Otherwise somebody else has just done that.
        self.db.write_if(update).await.map(|_| true)
    }

    /// The action that gives the room of an error back.
    pub(super) fn release_error(self, project: ProjectId) -> Result<TransactWriteItem, StoreError> {
        self.db
            .update(TABLE, count_key(project))
            .update_expression("ADD errors :less")
            .expression_attribute_values(":less", n(-1))
            .into_action()
    }

    /// Counts the errors of a project, unless that was done within a day.
    pub async fn count_errors(self, project: ProjectId, now: Timestamp) -> Result<(), StoreError> {
        let Some(mut item) = self.db.get(TABLE, count_key(project)).await? else { return Ok(()) };
        if self.forget_damaged_counts(project, &item).await? {
            let undamaged = self.db.get(TABLE, count_key(project)).await?;
            item = undamaged.unwrap_or_default();
        }
        let reader = ItemReader { table: TABLE, item: &item };
        let counted_at = reader.optional_millis(COUNTED_AT)?;
        if counted_at.is_some_and(|at| now < at.plus(COUNTED_AFTER)) {
            return Ok(());
        }
        let reserved = reader.optional_integer(ERRORS)?.unwrap_or_default();
        let there = self.count_kept_errors(project, now).await?;
        let hour = now.as_seconds().div_euclid(SECONDS_PER_HOUR);
        let old: Vec<&str> = item.keys().filter_map(|name| of_earlier_hour(name, hour)).collect();
        let remove =
            if old.is_empty() { String::new() } else { format!(" REMOVE {}", old.join(", ")) };
        // What is reserved meanwhile is added to.
        let mut update = self
            .db
            .update(TABLE, count_key(project))
            .condition_expression("attribute_not_exists(countedAt)")
            .update_expression(format!("ADD errors :more SET countedAt = :now{remove}"))
            .expression_attribute_values(":more", n(there - reserved))
            .expression_attribute_values(":now", n(now.as_millis()));
        if let Some(counted_at) = counted_at {
            update = update
                .condition_expression("countedAt = :counted")
                .expression_attribute_values(":counted", n(counted_at.as_millis()));
        }
        // Otherwise somebody else has just counted.
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

/// The name of an attribute that tells how many errors were made in an hour before `hour`.
fn of_earlier_hour(name: &str, hour: i64) -> Option<&str> {
    let of: i64 = name.strip_prefix(MADE)?.parse().ok()?;
    (of < hour).then_some(name)
}
