//! Request builders. Each takes a table's name without the prefix, and an item or its key.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::operation::scan::builders::ScanFluentBuilder;
use aws_sdk_dynamodb::types::builders::{
    ConditionCheckBuilder, DeleteBuilder, PutBuilder, UpdateBuilder,
};
use aws_sdk_dynamodb::types::{ConditionCheck, Delete, Put, TransactWriteItem, Update};

use super::item::{Item, s};
use super::{Store, StoreError};

impl Store {
    /// Reads an item with strong consistency, if it exists.
    pub async fn get(&self, table: &str, key: Item) -> Result<Option<Item>, StoreError> {
        let get = self.client.get_item().table_name(self.table(table)).set_key(Some(key));
        Ok(get.consistent_read(true).send().await?.item)
    }

    /// Starts a query, which is eventually consistent by default.
    pub fn query(&self, table: &str) -> QueryFluentBuilder {
        self.client.query().table_name(self.table(table))
    }

    /// Starts a strongly consistent query of a partition of a table with the keys `pk` and `sk`.
    pub fn partition(&self, table: &str, pk: impl ToString) -> QueryFluentBuilder {
        self.query(table)
            .consistent_read(true)
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", s(pk))
    }

    /// Like [`Self::partition`], for the items whose sort keys start with a text.
    pub fn partition_from(
        &self,
        table: &str,
        pk: impl ToString,
        prefix: impl ToString,
    ) -> QueryFluentBuilder {
        self.partition(table, pk)
            .key_condition_expression("pk = :pk AND begins_with(sk, :prefix)")
            .expression_attribute_values(":prefix", s(prefix))
    }

    /// Returns the items on all pages of a query.
    pub async fn all(&self, query: QueryFluentBuilder) -> Result<Vec<Item>, StoreError> {
        Ok(query.into_paginator().items().send().collect::<Result<_, _>>().await?)
    }

    /// Starts a query that returns only some attributes of items.
    pub fn query_attributes(&self, table: &str, names: &[&str]) -> QueryFluentBuilder {
        // Placeholders, since a name can be a reserved word.
        let placeholders: Vec<String> = (0..names.len()).map(|it| format!("#read{it}")).collect();
        let query = self.query(table).projection_expression(placeholders.join(", "));
        placeholders.into_iter().zip(names).fold(query, |query, (placeholder, name)| {
            query.expression_attribute_names(placeholder, *name)
        })
    }

    /// Starts a scan of a whole table, which is eventually consistent by default.
    pub fn scan(&self, table: &str) -> ScanFluentBuilder {
        self.client.scan().table_name(self.table(table))
    }

    /// Starts a put of an item.
    pub fn put(&self, table: &str, item: Item) -> PutBuilder {
        Put::builder().table_name(self.table(table)).set_item(Some(item))
    }

    /// Starts an update of the item with this key.
    pub fn update(&self, table: &str, key: Item) -> UpdateBuilder {
        Update::builder().table_name(self.table(table)).set_key(Some(key))
    }

    /// Starts a deletion of the item with this key.
    pub fn delete(&self, table: &str, key: Item) -> DeleteBuilder {
        Delete::builder().table_name(self.table(table)).set_key(Some(key))
    }

    /// Starts a condition check of the item with this key.
    pub fn check(&self, table: &str, key: Item) -> ConditionCheckBuilder {
        ConditionCheck::builder().table_name(self.table(table)).set_key(Some(key))
    }
}

/// A value that converts into an action of a transaction.
pub trait IntoAction {
    /// Returns the action.
    fn into_action(self) -> Result<TransactWriteItem, StoreError>;
}

impl IntoAction for TransactWriteItem {
    fn into_action(self) -> Result<TransactWriteItem, StoreError> {
        Ok(self)
    }
}

impl IntoAction for PutBuilder {
    fn into_action(self) -> Result<TransactWriteItem, StoreError> {
        Ok(TransactWriteItem::builder().put(self.build()?).build())
    }
}

impl IntoAction for UpdateBuilder {
    fn into_action(self) -> Result<TransactWriteItem, StoreError> {
        Ok(TransactWriteItem::builder().update(self.build()?).build())
    }
}

impl IntoAction for DeleteBuilder {
    fn into_action(self) -> Result<TransactWriteItem, StoreError> {
        Ok(TransactWriteItem::builder().delete(self.build()?).build())
    }
}

impl IntoAction for ConditionCheckBuilder {
    fn into_action(self) -> Result<TransactWriteItem, StoreError> {
        Ok(TransactWriteItem::builder().condition_check(self.build()?).build())
    }
}
