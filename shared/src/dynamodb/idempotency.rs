//! Table `idempotency`, key `scope`: responses that are replayed for 24 hours.
//!
//! The transaction that applies a request also stores its response. A crash cannot leave one
//! without the other.

use aws_sdk_dynamodb::types::{ReturnValuesOnConditionCheckFailure, TransactWriteItem};

use crate::idempotency::{IdempotentRequest, RETENTION, StoredResponse};
use crate::timestamp::Timestamp;

use super::item::{Item, ItemReader, b, item, n, s};
use super::request::IntoAction;
use super::{Store, StoreError, Sweep};

/// The name of the table.
pub const TABLE: &str = "idempotency";
/// The partition key of the table.
pub const KEY: &str = "scope";

/// A request with an idempotency key, and the response that it gets if it succeeds.
#[derive(Debug, Clone, Copy)]
pub struct Idempotent<'a> {
    /// The request.
    pub request: &'a IdempotentRequest,
    /// The response.
    pub response: &'a StoredResponse,
}

impl<'a> Idempotent<'a> {
    /// Pairs a request with its response, if the request has an idempotency key.
    pub fn of(
        request: Option<&'a IdempotentRequest>,
        response: impl Into<Option<&'a StoredResponse>>,
    ) -> Option<Self> {
        request.zip(response.into()).map(|(request, response)| Self { request, response })
    }
}

/// The outcome of an earlier request with the same idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replay {
    /// The same request succeeded: its response.
    Response(StoredResponse),
    /// A different request succeeded.
    OtherRequest,
    /// A concurrent request with the key is still running.
    StillRunning,
}

impl Store {
    /// Returns the outcome of an earlier request with the same idempotency key, if any. Callers use
    /// it before a rejection, which the request's own earlier success can cause. Strongly
    /// consistent, since that success can be very recent.
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

    /// Removes expired responses from the next page of the table.
    pub async fn sweep_responses(
        &self,
        now: Timestamp,
        after: Option<&str>,
    ) -> Result<Sweep, StoreError> {
        self.sweep_expired(TABLE, KEY, now.as_seconds(), after).await
    }

    /// Returns the action that stores a response. It fails if one is already stored.
    pub(crate) fn put_response(
        &self,
        idempotent: Idempotent<'_>,
        now: Timestamp,
    ) -> Result<TransactWriteItem, StoreError> {
        let Idempotent { request, response } = idempotent;
        let headers = response.headers.iter().map(|(name, value)| (name.clone(), s(value)));
        self.put(
            TABLE,
            item([
                (KEY, s(&request.scope)),
                ("fingerprint", b(request.fingerprint.as_bytes())),
                ("status", n(response.status)),
                ("headers", aws_sdk_dynamodb::types::AttributeValue::M(headers.collect())),
                ("body", s(&response.body)),
                ("expiresAt", n(now.plus(RETENTION).as_seconds())),
            ]),
        )
        // `scope` is a reserved word. DynamoDB can take days to remove an expired item.
        .condition_expression("attribute_not_exists(#scope) OR expiresAt <= :now")
        .expression_attribute_names("#scope", KEY)
        .expression_attribute_values(":now", n(now.as_seconds()))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .into_action()
    }
}

/// Reads the stored item that made [`Store::put_response`] fail.
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
    Ok(Replay::Response(StoredResponse {
        status: status.ok_or_else(|| reader.damaged("status"))?,
        headers: read,
        body: reader.text("body")?.to_owned(),
    }))
}
