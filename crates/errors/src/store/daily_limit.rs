//! Registrations of which a project gets a limited number each day: releases, deploys and values of tags.

use std::time::Duration;

use aws_sdk_dynamodb::types::builders::{PutBuilder, UpdateBuilder};

use shared::dynamodb::item::{Item, n};
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::errors::TABLE;

/// Time after which the number of a day is removed.
const DAY_RETENTION: Duration = Duration::from_hours(48);

impl ErrorStore<'_> {
    /// Returns the action that puts an item. It fails if there is one that has not expired.
    pub(super) fn register_once(self, item: Item, now: Timestamp) -> PutBuilder {
        self.db
            .put(TABLE, item)
            .condition_expression("attribute_not_exists(pk) OR expiresAt <= :now")
            .expression_attribute_values(":now", n(now.as_seconds()))
    }

    /// Returns the action that counts a registration in the item of its day. It fails if `most` are
    /// counted.
    pub(super) fn count_of_day(
        self,
        key: Item,
        counter: &str,
        most: u32,
        now: Timestamp,
    ) -> UpdateBuilder {
        self.db
            .update(TABLE, key)
            .condition_expression("attribute_not_exists(#counter) OR #counter < :most")
            .update_expression("ADD #counter :one SET expiresAt = :expiresAt")
            .expression_attribute_names("#counter", counter)
            .expression_attribute_values(":most", n(most))
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":expiresAt", n(now.plus(DAY_RETENTION).as_seconds()))
    }
}
