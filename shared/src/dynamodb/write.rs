//! Writes of one item. An answer may be lost and the SDK send the write once more, after somebody else
//! wrote, or deliver the first attempt long after the second: so each kind of write is recognizable
//! (docs/data-model.md, "How a write recognizes itself").

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

/// How many of an item's latest writes it names: [`Store::set_in_order`] knows itself again for as many
/// later ones.
const LATEST: usize = 8;

impl Store {
    /// Carries out one write. Answers whether its condition held.
    ///
    /// A transaction of one action, for its token: DynamoDB knows a repeat of it for ten minutes,
    /// whoever has written since. A plain write of the item would cost half as much, and would find
    /// its own work, or somebody else's on top of it, in its way.
    pub async fn write_if(&self, action: impl IntoAction) -> Result<bool, StoreError> {
        Ok(self.commit_all(vec![action.into_action()?]).await?.is_none())
    }

    /// Puts an item where there is none; one that is there stays. Whoever asks does not learn which
    /// it was, so a repeat has nothing to recognize.
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

    /// Sets an attribute of an item that lacks it, and answers all that the item holds then; `None` if
    /// there is no such item. The first value stays, so a repeat changes and tells nothing else.
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

    /// Adds one to each of some counts of an item, unless one of them is as large as it may become: then it
    /// answers the item.
    ///
    /// A repeat may count once more, which is worth less than transactions that get into each other's
    /// way: for counts that bound something, and are counted anew from time to time.
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
        let Err(refused) = unless_refused(|| update.clone().send()).await? else { return Ok(None) };
        Ok(Some(item_of(&refused).unwrap_or_default()))
    }

    /// Sets attributes of an item, which need not exist, and answers all that it holds then. One
    /// `UpdateItem`: nothing is read before.
    ///
    /// Such writes of an item happen in the order of their ids, which are UUIDs of version 7: one that
    /// is delivered after a later one was carried out does nothing. The item names its latest writes,
    /// so that one whose answer was lost finds itself. A new write whose clock is behind another's
    /// takes a later id.
    ///
    /// Answers [`StoreError::Unavailable`] where it cannot tell whether it was carried out: the answer
    /// was lost, and then so many others wrote that the item no longer names it.
    pub async fn set_in_order(
        &self,
        table: &str,
        key: Item,
        attributes: &[(&str, AttributeValue)],
        id: Uuid,
    ) -> Result<Item, StoreError> {
        let mut id = id;
        let mut unanswered = UnknownOutcome::default();
        let mut retry = ConflictRetry::default();
        while retry.next_attempt().await {
            let error = match self.set_as(table, &key, attributes, id, &unanswered).await {
                Ok(item) => return Ok(item),
                Err(error) if is_conflict(error.code()) => continue,
                Err(error) => error,
            };
            if !is_refusal(&error) {
                return Err(error.into());
            }
            let item = item_of(&error).unwrap_or_default();
            let latest = latest_writes(&item);
            if latest.contains(&id) {
                return Ok(item);
            }
            let (Some(&newest), Some(&oldest)) = (latest.first(), latest.last()) else {
                return Err(StoreError::Refused("a first write was refused".into()));
            };
            if unanswered.any() && latest.len() == LATEST && oldest > id {
                return Err(StoreError::Unavailable("too many others wrote at once".into()));
            }
            (id, unanswered) = (id_after(newest, id), UnknownOutcome::default());
        }
        // An earlier attempt may have been carried out.
        Err(StoreError::Unavailable("others kept writing the item".into()))
    }

    async fn set_as(
        &self,
        table: &str,
        key: &Item,
        attributes: &[(&str, AttributeValue)],
        id: Uuid,
        unanswered: &UnknownOutcome,
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
            // By placeholders: a name may be a reserved word.
            assignments.push(format!("#{name} = :{name}"));
            request = request
                .expression_attribute_names(format!("#{name}"), *name)
                .expression_attribute_values(format!(":{name}"), value.clone());
        }
        let request = request.update_expression(format!("SET {}", assignments.join(", ")));
        let request = request.customize().interceptor(unanswered.clone());
        Ok(request.send().await?.attributes.unwrap_or_default())
    }
}

/// What a write gave; `None` if its condition failed.
async fn unless_condition_fails<T, E, W>(write: impl Fn() -> W) -> Result<Option<T>, StoreError>
where
    W: Future<Output = Result<T, SdkError<E>>>,
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    Ok(unless_refused(write).await?.ok())
}

/// What a write gave, or how it was refused since its condition failed. Tries again while others are at work
/// on the item.
async fn unless_refused<T, E, W>(
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
            Err(error) if is_refusal(&error) => return Ok(Err(error)),
            Err(error) if is_conflict(error.code()) && retry.next_attempt().await => {}
            written => return Ok(Ok(written?)),
        }
    }
}

/// Whether a write was refused since its condition failed.
fn is_refusal(error: &impl ProvideErrorMetadata) -> bool {
    error.code() == Some("ConditionalCheckFailedException")
}

/// The item that an update was refused on, where it asks for that.
fn item_of(refused: &SdkError<UpdateItemError>) -> Option<Item> {
    match refused.as_service_error()? {
        UpdateItemError::ConditionalCheckFailedException(failed) => failed.item.clone(),
        _ => None,
    }
}

/// The attribute that names the newest write but `index`.
fn name_of_latest(index: usize) -> String {
    format!("write{index}")
}

/// The ids of an item's latest writes, the newest first.
fn latest_writes(item: &Item) -> Vec<Uuid> {
    let ids = (0..LATEST).map_while(|index| {
        let id = item.get(&name_of_latest(index))?.as_b().ok();
        id.map(Blob::as_ref).and_then(|id| Uuid::from_slice(id).ok())
    });
    ids.take_while(|id| !id.is_nil()).collect()
}

/// The earliest id after `newest` that is as random as `id`.
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
    fn a_later_id_is_later_than_both_and_keeps_what_makes_it_unique() {
        for (newest, own) in [(id(5, 1), id(3, 9)), (id(3, 9), id(5, 1)), (id(5, 9), id(5, 1))] {
            let after = id_after(newest, own);
            assert!(after > newest && after > own);
            assert_eq!(after, id(6, own.as_bytes()[15]));
            assert_eq!(after.get_version_num(), 7);
        }
    }

    #[test]
    fn an_item_that_few_wrote_names_no_others() {
        let mut item = Item::new();
        assert!(latest_writes(&item).is_empty());
        item.insert("write0".to_owned(), b(id(7, 1).as_bytes()));
        item.insert("write1".to_owned(), b(Uuid::nil().as_bytes()));
        assert_eq!(latest_writes(&item), [id(7, 1)]);
    }
}
