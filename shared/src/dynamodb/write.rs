//! Writes of one item. If a response is lost, the SDK repeats the write, possibly after another
//! writer. The first attempt can also arrive long after the second. Each kind of write therefore
//! handles repeats (docs/data-model.md, "Idempotent writes").

use std::error::Error;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure};
use uuid::Uuid;

use super::error::is_conflict;
use super::item::{Item, b, n};
use super::request::IntoAction;
use super::transaction::ConflictRetry;
use super::unknown_outcome::UnknownOutcome;
use super::{Store, StoreError};

/// Number of latest writes that an item names. [`Store::set_in_order`] recognizes its own write
/// among them.
const LATEST: usize = 8;

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
        unless_condition_fails(|| put.clone().send()).await.map(drop)
    }

    /// Puts an item in place of any other. Use this for items whose content follows from their key, or whose
    /// order does not matter, such as times that are accurate to an hour: a repeat can arrive after a later
    /// write.
    pub async fn put_over(&self, table: &str, item: Item) -> Result<(), StoreError> {
        let put = self.client.put_item().table_name(self.table(table)).set_item(Some(item));
        or_condition_error(|| put.clone().send()).await.map(drop)
    }

    /// Sets an attribute of an item that lacks it. Returns the whole item, or `None` if there is no
    /// item. The first value stays, so a repeat changes nothing and returns the same value.
    pub(crate) async fn set_once(
        &self,
        table: &str,
        key: Item,
        attribute: &str,
        value: AttributeValue,
    ) -> Result<Option<Item>, StoreError> {
        let key_name = key.keys().next().cloned().unwrap_or_default();
        let update = self
            .client
            .update_item()
            .table_name(self.table(table))
            .set_key(Some(key))
            .condition_expression("attribute_exists(#key)")
            .update_expression("SET #attribute = if_not_exists(#attribute, :value)")
            .expression_attribute_names("#key", key_name)
            .expression_attribute_names("#attribute", attribute)
            .expression_attribute_values(":value", value)
            .return_values(ReturnValue::AllNew);
        let updated = unless_condition_fails(|| update.clone().send()).await?;
        Ok(updated.map(|updated| updated.attributes.unwrap_or_default()))
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

    /// Sets attributes of an item, which need not exist, and returns the whole item. Uses one
    /// `UpdateItem` without a prior read.
    ///
    /// These writes of an item are ordered by id, a UUID of version 7. A write that arrives after a
    /// later one was applied has no effect. The item names its latest writes, so a write whose
    /// response was lost finds itself. A new write whose clock is behind takes a later id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the outcome is unknown: the response was lost, and so many
    /// writers followed that the item no longer names the write.
    pub async fn set_in_order(
        &self,
        table: &str,
        key: Item,
        attributes: &[(&str, AttributeValue)],
        id: Uuid,
    ) -> Result<Item, StoreError> {
        let mut id = id;
        let mut unknown_outcome = UnknownOutcome::default();
        let mut retry = ConflictRetry::default();
        while retry.next_attempt().await {
            let error = match self.set_as(table, &key, attributes, id, &unknown_outcome).await {
                Ok(item) => return Ok(item),
                Err(error) if is_conflict(error.code()) => continue,
                Err(error) => error,
            };
            if !is_failed_condition(&error) {
                return Err(error.into());
            }
            let item = item_of(&error).unwrap_or_default();
            let latest = latest_writes(&item);
            if latest.contains(&id) {
                return Ok(item);
            }
            let (Some(&newest), Some(&oldest)) = (latest.first(), latest.last()) else {
                return Err(StoreError::Rejected("a first write was rejected".into()));
            };
            if unknown_outcome.any() && latest.len() == LATEST && oldest > id {
                return Err(StoreError::Unavailable("too many concurrent writers".into()));
            }
            (id, unknown_outcome) = (id_after(newest, id), UnknownOutcome::default());
        }
        // An earlier attempt may have been applied.
        Err(StoreError::Unavailable("other writers kept changing the item".into()))
    }

    async fn set_as(
        &self,
        table: &str,
        key: &Item,
        attributes: &[(&str, AttributeValue)],
        id: Uuid,
        unknown_outcome: &UnknownOutcome,
    ) -> Result<Item, SdkError<UpdateItemError>> {
        let mut request = self
            .client
            .update_item()
            .table_name(self.table(table))
            .set_key(Some(key.clone()))
            .condition_expression(format!(
                "attribute_not_exists({0}) OR {0} < :id",
                name_of_latest(0)
            ))
            .expression_attribute_values(":id", b(id.as_bytes()))
            .expression_attribute_values(":none", b(Uuid::nil().as_bytes()))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let mut assignments = vec![format!("{} = :id", name_of_latest(0))];
        for index in 1..LATEST {
            let (older, newer) = (name_of_latest(index), name_of_latest(index - 1));
            assignments.push(format!("{older} = if_not_exists({newer}, :none)"));
        }
        for (name, value) in attributes {
            // Placeholders, since a name can be a reserved word.
            assignments.push(format!("#{name} = :{name}"));
            request = request
                .expression_attribute_names(format!("#{name}"), *name)
                .expression_attribute_values(format!(":{name}"), value.clone());
        }
        let request = request.update_expression(format!("SET {}", assignments.join(", ")));
        let request = request.customize().interceptor(unknown_outcome.clone());
        Ok(request.send().await?.attributes.unwrap_or_default())
    }
}

/// Returns the result of a write, or `None` if its condition failed.
async fn unless_condition_fails<T, E, W>(write: impl Fn() -> W) -> Result<Option<T>, StoreError>
where
    W: Future<Output = Result<T, SdkError<E>>>,
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    Ok(or_condition_error(write).await?.ok())
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

/// Returns the attribute with the id of a latest write. Index 0 is the newest.
fn name_of_latest(index: usize) -> String {
    format!("write{index}")
}

/// Returns the ids of an item's latest writes, newest first.
fn latest_writes(item: &Item) -> Vec<Uuid> {
    let ids = (0..LATEST).map_while(|index| {
        let id = item.get(&name_of_latest(index))?.as_b().ok();
        id.map(Blob::as_ref).and_then(|id| Uuid::from_slice(id).ok())
    });
    ids.take_while(|id| !id.is_nil()).collect()
}

/// Returns the earliest id after `newest` and `id` with the random bits of `id`.
fn id_after(newest: Uuid, id: Uuid) -> Uuid {
    let millis_of = |id: Uuid| id.as_u128() >> 80;
    let millis = millis_of(newest).max(millis_of(id)).saturating_add(1);
    Uuid::from_u128(millis << 80 | id.as_u128() & ((1 << 80) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(millis: u64, tail: u8) -> Uuid {
        uuid::Builder::from_unix_timestamp_millis(millis, &[tail; 10]).into_uuid()
    }

    #[test]
    fn later_ids_keep_their_random_bits() {
        for (newest, own) in [(id(5, 1), id(3, 9)), (id(3, 9), id(5, 1)), (id(5, 9), id(5, 1))] {
            let after = id_after(newest, own);
            assert!(after > newest && after > own);
            assert_eq!(after, id(6, own.as_bytes()[15]));
            assert_eq!(after.get_version_num(), 7);
        }
    }

    #[test]
    fn nil_ids_name_no_writes() {
        let mut item = Item::new();
        assert!(latest_writes(&item).is_empty());
        item.insert("write0".to_owned(), b(id(7, 1).as_bytes()));
        item.insert("write1".to_owned(), b(Uuid::nil().as_bytes()));
        assert_eq!(latest_writes(&item), [id(7, 1)]);
    }
}
