//! Table `idempotency`, key `scope`: answers that are given again for 24 hours.
//!
//! An answer is stored by the very transaction that carries out its request: there is never one
//! without the other, whatever crashes in between.

use aws_sdk_dynamodb::types::{ReturnValuesOnConditionCheckFailure, TransactWriteItem};

use crate::idempotency::{IdempotentRequest, RETENTION, StoredAnswer};
use crate::timestamp::Timestamp;

use super::item::{Item, ItemReader, b, item, n, s};
use super::request::IntoAction;
use super::{Store, StoreError, Sweep};

/// The table.
pub const TABLE: &str = "idempotency";
/// The partition key of the table.
pub const KEY: &str = "scope";

/// A request with an idempotency key and the answer that it gets if it is carried out.
#[derive(Debug, Clone, Copy)]
pub struct Idempotent<'a> {
    /// The request.
    pub request: &'a IdempotentRequest,
    /// Its answer.
    pub answer: &'a StoredAnswer,
}

impl<'a> Idempotent<'a> {
    /// A request's answer, if the request has an idempotency key.
    pub fn of(
        request: Option<&'a IdempotentRequest>,
        answer: impl Into<Option<&'a StoredAnswer>>,
    ) -> Option<Self> {
        request.zip(answer.into()).map(|(request, answer)| Self { request, answer })
    }
}

/// A request that comes under an idempotency key that was used before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replay {
    /// The same request was carried out before: its answer.
    Answered(StoredAnswer),
    /// Another request was carried out under the key.
    OtherRequest,
    /// Another request with the key is still running.
    StillRunning,
}

impl Store {
    /// What became of an earlier request under the same idempotency key, if there was one: for
    /// requests whose refusal may be their own earlier success. Strongly consistent, since that
    /// success may just have come about.
    pub async fn find_replay(
        &self,
        request: Option<&IdempotentRequest>,
        now: Timestamp,
    ) -> Result<Option<Replay>, StoreError> {
        let Some(request) = request else { return Ok(None) };
        let found = self.get(TABLE, item([(KEY, s(&request.scope))])).await?;
        let Some(item) = found else { return Ok(None) };
        let expires_at = ItemReader { table: TABLE, item: &item }.optional_integer("expiresAt")?;
        if expires_at.is_some_and(|expires_at| expires_at <= now.as_seconds()) {
            return Ok(None);
        }
        read_replay(&item, request).map(Some)
    }

    /// Removes answers that have expired from the next page of the table.
    pub async fn sweep_answers(
        &self,
        now: Timestamp,
        after: Option<&str>,
    ) -> Result<Sweep, StoreError> {
        self.sweep_expired(TABLE, KEY, now.as_seconds(), after).await
    }

    /// The action that stores an answer, and fails if one is stored already.
    pub(crate) fn put_answer(
        &self,
        idempotent: Idempotent<'_>,
        now: Timestamp,
    ) -> Result<TransactWriteItem, StoreError> {
        let Idempotent { request, answer } = idempotent;
        let headers = answer.headers.iter().map(|(name, value)| (name.clone(), s(value)));
        self.put(
            TABLE,
            item([
                (KEY, s(&request.scope)),
                ("fingerprint", b(request.fingerprint.as_bytes())),
                ("status", n(answer.status)),
                ("headers", aws_sdk_dynamodb::types::AttributeValue::M(headers.collect())),
                ("body", s(&answer.body)),
                ("expiresAt", n(now.plus(RETENTION).as_seconds())),
            ]),
        )
        // `scope` is a reserved word. What has expired may be there for days more until
        // DynamoDB removes it.
        .condition_expression("attribute_not_exists(#scope) OR expiresAt <= :now")
        .expression_attribute_names("#scope", KEY)
        .expression_attribute_values(":now", n(now.as_seconds()))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .into_action()
    }
}

/// Reads what was in the way of [`Store::put_answer`].
pub(crate) fn read_replay(item: &Item, request: &IdempotentRequest) -> Result<Replay, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    if reader.bytes::<32>("fingerprint")? != request.fingerprint.as_bytes() {
        return Ok(Replay::OtherRequest);
    }
    let status = reader.optional_integer("status")?;
    let status = status.and_then(|status| u16::try_from(status).ok());
    let headers = item.get("headers").and_then(|headers| headers.as_m().ok());
    let headers = headers.ok_or_else(|| reader.damaged("headers"))?;
    let mut read = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        let value = value.as_s().map_err(|_| reader.damaged("headers"))?;
        read.push((name.clone(), value.clone()));
    }
    Ok(Replay::Answered(StoredAnswer {
        status: status.ok_or_else(|| reader.damaged("status"))?,
        headers: read,
        body: reader.text("body")?.to_owned(),
    }))
}
