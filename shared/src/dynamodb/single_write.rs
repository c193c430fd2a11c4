//! Conditional writes of one item. The answer to one may be lost and the SDK send it once more: then
//! the condition fails because the write is done.

use std::fmt;

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use aws_sdk_dynamodb::types::builders::{DeleteBuilder, PutBuilder};
use aws_sdk_dynamodb::types::error::ConditionalCheckFailedException;

use super::{Store, StoreError};

impl Store {
    /// Puts an item on its condition. Answers whether it is stored.
    pub(crate) async fn put_if(&self, put: PutBuilder) -> Result<bool, StoreError> {
        let put = put.build()?;
        let written = self
            .client
            .put_item()
            .table_name(put.table_name)
            .set_item(Some(put.item.clone()))
            .set_condition_expression(put.condition_expression)
            .set_expression_attribute_names(put.expression_attribute_names)
            .set_expression_attribute_values(put.expression_attribute_values)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        let failed = |error: &PutItemError| match error {
            PutItemError::ConditionalCheckFailedException(failed) => Some(failed.clone()),
            _ => None,
        };
        Ok(match refusal(written, failed)? {
            None => true,
            Some(failed) => failed.item == Some(put.item),
        })
    }

    /// Deletes an item on its condition. Answers whether it is gone.
    pub(crate) async fn delete_if(&self, delete: DeleteBuilder) -> Result<bool, StoreError> {
        let delete = delete.build()?;
        let deleted = self
            .client
            .delete_item()
            .table_name(delete.table_name)
            .set_key(Some(delete.key))
            .set_condition_expression(delete.condition_expression)
            .set_expression_attribute_names(delete.expression_attribute_names)
            .set_expression_attribute_values(delete.expression_attribute_values)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        let failed = |error: &DeleteItemError| match error {
            DeleteItemError::ConditionalCheckFailedException(failed) => Some(failed.clone()),
            _ => None,
        };
        Ok(match refusal(deleted, failed)? {
            None => true,
            Some(failed) => failed.item.is_none(),
        })
    }
}

/// Why the condition of a write failed, if it did.
fn refusal<T, E, R>(
    written: Result<T, SdkError<E, R>>,
    failed: impl Fn(&E) -> Option<ConditionalCheckFailedException>,
) -> Result<Option<ConditionalCheckFailedException>, StoreError>
where
    StoreError: From<SdkError<E, R>>,
    R: fmt::Debug,
{
    match written {
        Ok(_) => Ok(None),
        Err(error) => match error.as_service_error().and_then(failed) {
            Some(failed) => Ok(Some(failed)),
            None => Err(error.into()),
        },
    }
}
