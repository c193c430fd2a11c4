//! Transactions: all of their actions happen, or none does and each says why.

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

/// How often a transaction that met other writers is tried.
pub const MAX_ATTEMPTS: u32 = 8;
/// How often one is tried of which an item is throttled, if another item can take its place.
const FEW_ATTEMPTS: u32 = 3;
/// From when on it is not tried again: early enough that the last attempt's outcome is the answer,
/// and not that the request took too long.
const MAX_RETRYING: Duration = Duration::from_millis(1_500);

/// The actions of a transaction, each under a name by which its failure is looked up.
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

/// Actions without names: for callers that need not know which one failed.
impl From<Vec<TransactWriteItem>> for Transaction {
    fn from(actions: Vec<TransactWriteItem>) -> Self {
        Self { names: vec![""; actions.len()], actions }
    }
}

/// Why a transaction did not happen, action by action.
#[derive(Debug)]
pub struct Cancellation {
    reasons: Vec<Reason>,
    /// An earlier attempt got no response. It was not carried out before this one, but may still arrive when
    /// the conditions hold again.
    is_unsure: bool,
}

/// The reason for which one action did not happen.
#[derive(Debug)]
struct Reason {
    name: &'static str,
    /// `None` if only other actions failed.
    code: Option<String>,
    /// The item as it was, if the action asked for it.
    item: Option<Item>,
}

impl Reason {
    fn condition_failed(&self) -> bool {
        self.code.as_deref() == Some("ConditionalCheckFailed")
    }

    /// Another transaction or write was at work on the item.
    fn conflicted(&self) -> bool {
        self.code.as_deref() == Some("TransactionConflict")
    }

    fn is_transient_failure(&self) -> bool {
        self.conflicted() || is_transient(self.code.as_deref())
    }
}

impl Cancellation {
    /// Returns `true` if the condition of an action of this name failed.
    pub fn failed(&self, name: &str) -> bool {
        self.named(name).any(Reason::condition_failed)
    }

    /// Returns `true` if the condition of one of the actions of this name failed. `index` counts them from 0.
    pub fn failed_at(&self, name: &str, index: usize) -> bool {
        self.named(name).nth(index).is_some_and(Reason::condition_failed)
    }

    /// Returns the stored items that made actions of this name fail, if the actions asked for them.
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

    /// Returns `true` if another attempt can succeed: no condition failed, but other writers interfered.
    fn is_transient_failure(&self) -> bool {
        !self.condition_failed() && self.reasons.iter().any(Reason::is_transient_failure)
    }

    /// Returns `true` if DynamoDB throttles an item.
    fn is_throttled(&self) -> bool {
        self.reasons.iter().any(|reason| is_throttling(reason.code.as_deref()))
    }

    /// The same, unless an earlier attempt may yet be carried out: nobody may be told then that it was not.
    fn unless_pending(self) -> Result<Self, StoreError> {
        if self.is_unsure {
            return Err(StoreError::Unavailable(
                "an attempt without an answer may yet arrive".into(),
            ));
        }
        Ok(self)
    }

    /// The error for a cancellation that its caller has no other name for.
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
            StoreError::Refused(codes.into())
        }
    }
}

/// What became of a transaction.
#[derive(Debug)]
pub enum TransactionOutcome {
    /// All of it happened.
    Done,
    /// Nothing happened: the idempotency key was used before.
    Replay(Replay),
    /// Nothing happened: a condition failed.
    Refused(Cancellation),
}

/// The name of the action that stores the response to an idempotent request.
const RESPONSE: &str = "response";

impl Store {
    /// Carries out all actions. Answers why not, if a condition failed.
    pub async fn commit_all(
        &self,
        transaction: impl Into<Transaction>,
    ) -> Result<Option<Cancellation>, StoreError> {
        unless_condition_failed(self.try_all(transaction.into(), MAX_ATTEMPTS).await?)
    }

    /// Carries out all actions. Gives up soon if an item is throttled, for callers that can write another one.
    pub async fn commit_unless_throttled(
        &self,
        transaction: Transaction,
    ) -> Result<Option<Cancellation>, StoreError> {
        unless_condition_failed(self.try_all(transaction, FEW_ATTEMPTS).await?)
    }

    /// Carries out all actions, and stores the response to an idempotent request with them.
    pub async fn commit(
        &self,
        mut transaction: Transaction,
        idempotent: Option<Idempotent<'_>>,
        now: Timestamp,
    ) -> Result<TransactionOutcome, StoreError> {
        if let Some(idempotent) = idempotent {
            transaction.add(RESPONSE, self.put_answer(idempotent, now)?)?;
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
            Ok(TransactionOutcome::Refused(cancelled))
        } else if response_conflicted {
            Ok(TransactionOutcome::Replay(Replay::StillRunning))
        } else {
            Err(cancelled.into_error())
        }
    }

    /// Carries out all actions, or tells why none was carried out. Tries again while nothing but
    /// other writers is in the way; while DynamoDB takes no more, so many times.
    ///
    /// All attempts have one token: should one that was given up arrive after all, DynamoDB knows that
    /// another was carried out.
    async fn try_all(
        &self,
        transaction: Transaction,
        most_throttled: u32,
    ) -> Result<Option<Cancellation>, StoreError> {
        let token = new_token();
        let unanswered = UnknownOutcome::default();
        let started = Instant::now();
        let (mut attempt, mut throttled) = (0, 0);
        loop {
            pause(attempt).await;
            attempt += 1;
            let is_last = || attempt == MAX_ATTEMPTS || started.elapsed() >= MAX_RETRYING;
            let outcome = write(&self.client, &transaction, &token, &unanswered).await?;
            if let Attempt::Cancelled(cancelled) = &outcome {
                throttled += u32::from(cancelled.is_throttled());
            }
            let is_last = || is_last() || throttled >= most_throttled;
            match outcome {
                Attempt::Done => return Ok(None),
                Attempt::InProgress if is_last() => {
                    return Err(StoreError::Unavailable("an attempt is still at work".into()));
                }
                Attempt::Cancelled(cancelled) if is_last() || !cancelled.is_transient_failure() => {
                    return Ok(Some(cancelled));
                }
                Attempt::InProgress | Attempt::Cancelled(_) => {}
            }
        }
    }
}

/// Attempts at something that others may be changing: read, decide, write, and once more if somebody
/// came between.
#[derive(Debug)]
pub struct ConflictRetry {
    made: u32,
    started: Instant,
}

impl Default for ConflictRetry {
    fn default() -> Self {
        Self { made: 0, started: Instant::now() }
    }
}

impl ConflictRetry {
    /// Whether to make another attempt; waits before all but the first.
    pub async fn next_attempt(&mut self) -> bool {
        if self.made == MAX_ATTEMPTS || self.made > 0 && self.started.elapsed() >= MAX_RETRYING {
            return false;
        }
        pause(self.made).await;
        self.made += 1;
        true
    }
}

/// The outcome of a transaction whose caller knows what a failed condition means.
fn unless_condition_failed(
    outcome: Option<Cancellation>,
) -> Result<Option<Cancellation>, StoreError> {
    match outcome.map(Cancellation::unless_pending).transpose()? {
        Some(cancelled) if !cancelled.condition_failed() => Err(cancelled.into_error()),
        outcome => Ok(outcome),
    }
}

/// What became of one attempt at a transaction.
enum Attempt {
    /// It is carried out, by this attempt or an earlier one.
    Done,
    /// An earlier attempt with the same token is still at work.
    InProgress,
    /// It was not carried out.
    Cancelled(Cancellation),
}

async fn write(
    client: &Client,
    transaction: &Transaction,
    token: &str,
    unanswered: &UnknownOutcome,
) -> Result<Attempt, StoreError> {
    let request = client.transact_write_items().client_request_token(token);
    let request = request.set_transact_items(Some(transaction.actions.clone())).customize();
    match request.interceptor(unanswered.clone()).send().await {
        Ok(_) => Ok(Attempt::Done),
        Err(error) => match error.as_service_error() {
            Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
                let names = transaction.names.iter().copied().chain(repeat(""));
                let reasons = names.zip(cancelled.cancellation_reasons());
                let reasons = reasons.map(|(name, reason)| read_reason(name, reason)).collect();
                Ok(Attempt::Cancelled(Cancellation { reasons, is_unsure: unanswered.any() }))
            }
            Some(TransactWriteItemsError::TransactionInProgressException(_)) => {
                Ok(Attempt::InProgress)
            }
            _ => Err(error.into()),
        },
    }
}

/// What tells a transaction from every other for the ten minutes for which DynamoDB knows it.
fn new_token() -> String {
    uuid::Builder::from_random_bytes(random_bytes()).into_uuid().to_string()
}

fn read_reason(name: &'static str, reason: &CancellationReason) -> Reason {
    let code = reason.code.clone().filter(|code| code != "None");
    Reason { name, code, item: reason.item.clone() }
}

/// Waits before attempt number `attempt`, counted from 0: not at all before the first, then a
/// random time whose bound doubles from 20 ms to 320 ms, so that writers who met once do not meet
/// again.
pub async fn pause(attempt: u32) {
    let Some(doublings) = attempt.checked_sub(1) else { return };
    let bound = 20_u64 << doublings.min(4);
    let share = u64::from(u16::from_le_bytes(random_bytes()));
    tokio::time::sleep(Duration::from_micros(bound * 1_000 * share / u64::from(u16::MAX))).await;
}
