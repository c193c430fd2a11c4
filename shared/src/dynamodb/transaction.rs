//! Transactions: all actions are applied, or none is and each has a reason.

use std::iter::repeat;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{CancellationReason, TransactWriteItem};

use crate::id::random_bytes;
use crate::timestamp::Timestamp;

use super::error::{is_throttling, is_transient};
use super::idempotency::{Idempotent, Replay, read_replay};
use super::item::Item;
use super::request::IntoAction;
use super::unknown_outcome::UnknownOutcome;
use super::{Store, StoreError};

/// Most attempts at a transaction that conflicts with other writers.
pub const MAX_ATTEMPTS: u32 = 8;
/// Most attempts at a transaction with a throttled item, if another item can replace that one.
const FEW_ATTEMPTS: u32 = 3;
/// Time after which a transaction is not retried. The last attempt's outcome is then returned
/// before the request times out.
const MAX_RETRYING: Duration = Duration::from_millis(1_500);

/// The actions of a transaction. Each action's name identifies its failure.
#[derive(Debug, Default)]
pub struct Transaction {
    names: Vec<&'static str>,
    actions: Vec<TransactWriteItem>,
}

impl Transaction {
    /// Adds an action. Several actions can have one name.
    pub fn add(&mut self, name: &'static str, action: impl IntoAction) -> Result<(), StoreError> {
        self.names.push(name);
        self.actions.push(action.into_action()?);
        Ok(())
    }

    /// Returns `true` if there are no actions.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }
}

/// Converts actions without names, for callers that do not distinguish failures.
impl From<Vec<TransactWriteItem>> for Transaction {
    fn from(actions: Vec<TransactWriteItem>) -> Self {
        Self { names: vec![""; actions.len()], actions }
    }
}

/// The reasons why a transaction was not applied, by action.
#[derive(Debug)]
pub struct Cancellation {
    reasons: Vec<Reason>,
    /// `true` if an earlier attempt got no response. That attempt was not applied before this one,
    /// but can still arrive when the conditions hold again.
    is_unsure: bool,
}

/// The reason why an action was not applied.
#[derive(Debug)]
struct Reason {
    name: &'static str,
    /// `None` if only other actions failed.
    code: Option<String>,
    /// The stored item, if the action requested it.
    item: Option<Item>,
}

impl Reason {
    fn condition_failed(&self) -> bool {
        self.code.as_deref() == Some("ConditionalCheckFailed")
    }

    /// Returns `true` if a concurrent write or transaction used the item.
    fn conflicted(&self) -> bool {
        self.code.as_deref() == Some("TransactionConflict")
    }

    fn is_transient_failure(&self) -> bool {
        self.conflicted() || is_transient(self.code.as_deref())
    }
}

impl Cancellation {
    /// Returns `true` if the condition of an action with this name failed.
    pub fn failed(&self, name: &str) -> bool {
        self.named(name).any(Reason::condition_failed)
    }

    /// Returns `true` if the condition of action `index` with this name failed, counted from 0.
    pub fn failed_at(&self, name: &str, index: usize) -> bool {
        self.named(name).nth(index).is_some_and(Reason::condition_failed)
    }

    /// Returns the stored items that made actions with this name fail, if the actions requested
    /// them.
    pub fn items(&self, name: &str) -> impl Iterator<Item = &Item> {
        self.named(name).filter_map(|reason| reason.item.as_ref())
    }

    fn named(&self, name: &str) -> impl Iterator<Item = &Reason> {
        self.reasons.iter().filter(move |reason| reason.name == name)
    }

    /// Returns `true` if the condition of any action failed.
    fn condition_failed(&self) -> bool {
        self.reasons.iter().any(Reason::condition_failed)
    }

    /// Returns `true` if another attempt can succeed: no condition failed, and some failure is
    /// transient.
    fn is_transient_failure(&self) -> bool {
        !self.condition_failed() && self.reasons.iter().any(Reason::is_transient_failure)
    }

    /// Returns `true` if DynamoDB throttles an item.
    fn is_throttled(&self) -> bool {
        self.reasons.iter().any(|reason| is_throttling(reason.code.as_deref()))
    }

    /// Returns the cancellation, or an error if an earlier attempt can still be applied.
    fn unless_pending(self) -> Result<Self, StoreError> {
        if self.is_unsure {
            return Err(StoreError::Unavailable(
                "an attempt without a response can still arrive".into(),
            ));
        }
        Ok(self)
    }

    /// Returns the error for a cancellation that the caller does not handle.
    pub fn into_error(self) -> StoreError {
        let codes: Vec<&str> = self.reasons.iter().filter_map(|r| r.code.as_deref()).collect();
        let codes = codes.join(", ");
        if self.reasons.iter().any(Reason::conflicted) {
            StoreError::Contended(codes.into())
        } else if self.is_transient_failure() {
            let throttled = self.reasons.iter().filter(|it| is_throttling(it.code.as_deref()));
            let actions: Vec<&str> = throttled.map(|reason| reason.name).collect();
            if actions.is_empty() {
                StoreError::Unavailable(codes.into())
            } else {
                StoreError::throttled(actions, codes.into())
            }
        } else {
            StoreError::Rejected(codes.into())
        }
    }
}

/// The outcome of a transaction.
#[derive(Debug)]
pub enum TransactionOutcome {
    /// All actions were applied.
    Done,
    /// Nothing was applied: the idempotency key was used before.
    Replay(Replay),
    /// Nothing was applied: a condition failed.
    Rejected(Cancellation),
}

/// The name of the action that stores the response to an idempotent request.
const RESPONSE: &str = "response";

impl Store {
    /// Applies all actions. Returns the cancellation if a condition failed.
    pub async fn commit_all(
        &self,
        transaction: impl Into<Transaction>,
    ) -> Result<Option<Cancellation>, StoreError> {
        unless_condition_failed(self.try_all(transaction.into(), MAX_ATTEMPTS).await?)
    }

    /// Applies all actions. Gives up soon if an item is throttled, for callers that can write
    /// another item.
    pub async fn commit_unless_throttled(
        &self,
        transaction: Transaction,
    ) -> Result<Option<Cancellation>, StoreError> {
        unless_condition_failed(self.try_all(transaction, FEW_ATTEMPTS).await?)
    }

    /// Applies all actions, and stores the response to an idempotent request with them.
    pub async fn commit(
        &self,
        mut transaction: Transaction,
        idempotent: Option<Idempotent<'_>>,
        now: Timestamp,
    ) -> Result<TransactionOutcome, StoreError> {
        if let Some(idempotent) = idempotent {
            transaction.add(RESPONSE, self.put_response(idempotent, now)?)?;
        }
        let Some(cancelled) = self.try_all(transaction, MAX_ATTEMPTS).await? else {
            return Ok(TransactionOutcome::Done);
        };
        // The stored response comes first: the request can conflict with its own earlier success.
        let response = cancelled.named(RESPONSE).next();
        if let (Some(response), Some(idempotent)) = (response, idempotent)
            && response.condition_failed()
        {
            let Some(stored) = &response.item else { return Err(cancelled.into_error()) };
            return Ok(TransactionOutcome::Replay(read_replay(stored, idempotent.request)?));
        }
        let response_conflicted = response.is_some_and(Reason::conflicted);
        let cancelled = cancelled.unless_pending()?;
        if !cancelled.is_transient_failure() {
            Ok(TransactionOutcome::Rejected(cancelled))
        } else if response_conflicted {
            Ok(TransactionOutcome::Replay(Replay::StillRunning))
        } else {
            Err(cancelled.into_error())
        }
    }

    /// Applies all actions, or returns why none was applied. Retries transient failures, but
    /// throttled attempts at most `most_throttled` times.
    ///
    /// All attempts have one token. If an abandoned attempt arrives late, DynamoDB recognizes that
    /// another one was applied.
    async fn try_all(
        &self,
        transaction: Transaction,
        most_throttled: u32,
    ) -> Result<Option<Cancellation>, StoreError> {
        let token = new_token();
        let unknown_outcome = UnknownOutcome::default();
        let started = Instant::now();
        let (mut attempt, mut throttled) = (0, 0);
        loop {
            pause(attempt).await;
            attempt += 1;
            let is_last = || attempt == MAX_ATTEMPTS || started.elapsed() >= MAX_RETRYING;
            let outcome = write(&self.client, &transaction, &token, &unknown_outcome).await?;
            if let Attempt::Cancelled(cancelled) = &outcome {
                throttled += u32::from(cancelled.is_throttled());
            }
            let is_last = || is_last() || throttled >= most_throttled;
            match outcome {
                Attempt::Done => return Ok(None),
                Attempt::InProgress if is_last() => {
                    return Err(StoreError::Unavailable("an attempt is still in progress".into()));
                }
                Attempt::Cancelled(cancelled) if is_last() || !cancelled.is_transient_failure() => {
                    return Ok(Some(cancelled));
                }
                Attempt::InProgress | Attempt::Cancelled(_) => {}
            }
        }
    }
}

/// The attempts at a change that other writers can interrupt: read, decide, write, and repeat after
/// a conflict.
#[derive(Debug)]
pub struct ConflictRetry {
    attempts: u32,
    started: Instant,
}

impl Default for ConflictRetry {
    fn default() -> Self {
        Self { attempts: 0, started: Instant::now() }
    }
}

impl ConflictRetry {
    /// Returns `true` if another attempt is due. Waits before each attempt but the first.
    pub async fn next_attempt(&mut self) -> bool {
        if self.attempts == MAX_ATTEMPTS
            || self.attempts > 0 && self.started.elapsed() >= MAX_RETRYING
        {
            return false;
        }
        pause(self.attempts).await;
        self.attempts += 1;
        true
    }
}

/// Returns the cancellation if a condition failed, since its caller knows the meaning. Other
/// cancellations are errors.
fn unless_condition_failed(
    outcome: Option<Cancellation>,
) -> Result<Option<Cancellation>, StoreError> {
    match outcome.map(Cancellation::unless_pending).transpose()? {
        Some(cancelled) if !cancelled.condition_failed() => Err(cancelled.into_error()),
        outcome => Ok(outcome),
    }
}

/// The outcome of one attempt at a transaction.
enum Attempt {
    /// The transaction was applied, by this attempt or an earlier one.
    Done,
    /// An earlier attempt with the same token is still in progress.
    InProgress,
    /// The transaction was not applied.
    Cancelled(Cancellation),
}

async fn write(
    client: &Client,
    transaction: &Transaction,
    token: &str,
    unknown_outcome: &UnknownOutcome,
) -> Result<Attempt, StoreError> {
    let request = client.transact_write_items().client_request_token(token);
    let request = request.set_transact_items(Some(transaction.actions.clone())).customize();
    match request.interceptor(unknown_outcome.clone()).send().await {
        Ok(_) => Ok(Attempt::Done),
        Err(error) => match error.as_service_error() {
            Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
                let names = transaction.names.iter().copied().chain(repeat(""));
                let reasons = names.zip(cancelled.cancellation_reasons());
                let reasons = reasons.map(|(name, reason)| read_reason(name, reason)).collect();
                Ok(Attempt::Cancelled(Cancellation { reasons, is_unsure: unknown_outcome.any() }))
            }
            Some(TransactWriteItemsError::TransactionInProgressException(_)) => {
                Ok(Attempt::InProgress)
            }
            _ => Err(error.into()),
        },
    }
}

/// Returns a token that identifies a transaction for the ten minutes that DynamoDB keeps tokens.
fn new_token() -> String {
    uuid::Builder::from_random_bytes(random_bytes()).into_uuid().to_string()
}

fn read_reason(name: &'static str, reason: &CancellationReason) -> Reason {
    let code = reason.code.clone().filter(|code| code != "None");
    Reason { name, code, item: reason.item.clone() }
}

/// Waits before attempt number `attempt`, counted from 0. There is no wait before the first
/// attempt. Later waits are random, up to a bound that doubles from 20 ms to 320 ms, so that
/// conflicting writers do not meet again.
pub async fn pause(attempt: u32) {
    let Some(doublings) = attempt.checked_sub(1) else { return };
    let bound = 20_u64 << doublings.min(4);
    let share = u64::from(u16::from_le_bytes(random_bytes()));
    tokio::time::sleep(Duration::from_micros(bound * 1_000 * share / u64::from(u16::MAX))).await;
}
