//! How requests begin: with a table, by its name without the prefix, and an item or its key.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::operation::scan::builders::ScanFluentBuilder;
use aws_sdk_dynamodb::types::builders::{
    ConditionCheckBuilder, DeleteBuilder, PutBuilder, UpdateBuilder,
};
use aws_sdk_dynamodb::types::{ConditionCheck, Delete, Put, TransactWriteItem, Update};

use super::item::Item;
use super::{Store, StoreError};

impl Store {
    /// An item, if it is there. Strongly consistent.
    pub async fn get(&self, table: &str, key: Item) -> Result<Option<Item>, StoreError> {
        let get = self.client.get_item().table_name(self.table(table)).set_key(Some(key));
        Ok(get.consistent_read(true).send().await?.item)
    }

    /// Begins a query, which is eventually consistent unless told otherwise.
    pub fn query(&self, table: &str) -> QueryFluentBuilder {
        self.client.query().table_name(self.table(table))
    }

    /// Begins a query that answers some attributes of items only.
    pub fn query_attributes(&self, table: &str, names: &[&str]) -> QueryFluentBuilder {
        // By placeholders: a name may be a reserved word.
        let placeholders: Vec<String> = (0..names.len()).map(|it| format!("#read{it}")).collect();
        let query = self.query(table).projection_expression(placeholders.join(", "));
        placeholders.into_iter().zip(names).fold(query, |query, (placeholder, name)| {
            query.expression_attribute_names(placeholder, *name)
        })
    }

    /// Begins a scan of a whole table, which is eventually consistent unless told otherwise.
    pub fn scan(&self, table: &str) -> ScanFluentBuilder {
        self.client.scan().table_name(self.table(table))
    }

    /// Begins to put an item.
    pub fn put(&self, table: &str, item: Item) -> PutBuilder {
        Put::builder().table_name(self.table(table)).set_item(Some(item))
    }

    /// Begins to update the item of a key.
    pub fn update(&self, table: &str, key: Item) -> UpdateBuilder {
        Update::builder().table_name(self.table(table)).set_key(Some(key))
    }

    /// Begins to delete the item of a key.
    pub fn delete(&self, table: &str, key: Item) -> DeleteBuilder {
        Delete::builder().table_name(self.table(table)).set_key(Some(key))
    }

    /// Begins to check a condition of the item of a key.
    pub fn check(&self, table: &str, key: Item) -> ConditionCheckBuilder {
        ConditionCheck::builder().table_name(self.table(table)).set_key(Some(key))
    }
}

/// What can be an action of a transaction.
pub trait IntoAction {
    /// The action.
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
