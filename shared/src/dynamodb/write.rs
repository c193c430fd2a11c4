//! Writes of one item. If a response is lost, the SDK repeats the write, possibly after another
//! writer. The first attempt can also arrive long after the second. Each kind of write therefore
//! handles repeats (docs/data-model.md, "Idempotent writes").

use std::error::Error;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;

use super::error::is_conflict;
use super::item::{Item, n};
use super::request::IntoAction;
use super::transaction::ConflictRetry;
use super::{Store, StoreError};

impl Store {
    /// Applies one write. Returns `true` if its condition held.
    ///
    /// The write is a transaction of one action, for its token: DynamoDB recognizes a repeat for
    /// ten minutes, regardless of later writers. A plain write would cost half as much. Its repeat
    /// would fail on its own change or on a later one.
    pub async fn write_if(&self, action: impl IntoAction) -> Result<bool, StoreError> {
        Ok(self.commit_all(vec![action.into_action()?]).await?.is_none())
    }

    /// Puts an item unless one exists. The caller does not learn which case applied, so a repeat
    /// has nothing to recognize.
    pub async fn put_unless_there(
        &self,
        table: &str,
        partition_key: &str,
        item: Item,
    ) -> Result<(), StoreError> {
        let put = self
            .client
            .put_item()
            .table_name(self.table(table))
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(#key)")
            .expression_attribute_names("#key", partition_key);
        or_condition_error(|| put.clone().send()).await.map(drop)
    }

    /// Puts an item in place of any other. Use this for items whose content follows from their key, or whose
    /// order does not matter, such as times that are accurate to an hour: a repeat can arrive after a later
    /// write.
    pub async fn put_over(&self, table: &str, item: Item) -> Result<(), StoreError> {
        let put = self.client.put_item().table_name(self.table(table)).set_item(Some(item));
        or_condition_error(|| put.clone().send()).await.map(drop)
    }

    /// Adds one to each of some counts of an item, unless one of them has reached its maximum. In
    /// that case, returns the item.
    ///
    /// A repeat can count twice, which costs less than conflicting transactions. Use this for
    /// limits whose counts are regularly recalculated.
    pub async fn add_while_below(
        &self,
        table: &str,
        key: Item,
        counts: &[(&str, u32)],
    ) -> Result<Option<Item>, StoreError> {
        let mut update = self.client.update_item().table_name(self.table(table)).set_key(Some(key));
        let (mut conditions, mut additions) = (Vec::new(), Vec::new());
        for (name, most) in counts {
            conditions.push(format!("(attribute_not_exists(#{name}) OR #{name} < :{name})"));
            additions.push(format!("#{name} :one"));
            update = update
                .expression_attribute_names(format!("#{name}"), *name)
                .expression_attribute_values(format!(":{name}"), n(*most));
        }
        let update = update
            .condition_expression(conditions.join(" AND "))
            .update_expression(format!("ADD {}", additions.join(", ")))
            .expression_attribute_values(":one", n(1))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let Err(failed) = or_condition_error(|| update.clone().send()).await? else {
            return Ok(None);
        };
        Ok(Some(item_of(&failed).unwrap_or_default()))
    }
}

/// Returns the result of a write, or the error if its condition failed. Retries conflicts with
/// other writers.
async fn or_condition_error<T, E, W>(
    write: impl Fn() -> W,
) -> Result<Result<T, SdkError<E>>, StoreError>
where
    W: Future<Output = Result<T, SdkError<E>>>,
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let mut retry = ConflictRetry::default();
    loop {
        // Boxed, since the SDK's futures are large.
        match Box::pin(write()).await {
            Err(error) if is_failed_condition(&error) => return Ok(Err(error)),
            Err(error) if is_conflict(error.code()) && retry.next_attempt().await => {}
            written => return Ok(Ok(written?)),
        }
    }
}

/// Returns `true` if the condition of a write failed.
fn is_failed_condition(error: &impl ProvideErrorMetadata) -> bool {
    error.code() == Some("ConditionalCheckFailedException")
}

/// Returns the item on which an update failed, if the update requested it.
fn item_of(failed: &SdkError<UpdateItemError>) -> Option<Item> {
    match failed.as_service_error()? {
        UpdateItemError::ConditionalCheckFailedException(failed) => failed.item.clone(),
        _ => None,
    }
}
