//! DynamoDB and cache usage of a request or job, counted while it runs.

use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::config::interceptors::{
    BeforeSerializationInterceptorContextMut, BeforeTransmitInterceptorContextRef,
    FinalizerInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::operation::{
    batch_get_item, batch_write_item, delete_item, get_item, put_item, query, transact_write_items,
    update_item,
};
use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};

/// The usage of a request or job.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// DynamoDB calls. A retried call counts once.
    pub calls: u32,
    /// Attempts at calls, including the first.
    pub attempts: u32,
    /// Calls that DynamoDB throttled, after all retries.
    pub throttled: u32,
    /// The read capacity units that successful calls consumed.
    pub read_units: f64,
    /// The write capacity units that successful calls consumed. Transactions that DynamoDB rejects
    /// also consume some, but DynamoDB does not report them.
    pub write_units: f64,
    /// Cache lookups that saved a read.
    pub cache_hits: u32,
    /// Cache lookups without a value.
    pub cache_misses: u32,
}

impl Usage {
    /// Returns the number of retries.
    pub(crate) fn retries(&self) -> u32 {
        self.attempts.saturating_sub(self.calls)
    }

    fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.attempts = self.attempts.saturating_add(other.attempts);
        self.throttled = self.throttled.saturating_add(other.throttled);
        self.read_units += other.read_units;
        self.write_units += other.write_units;
        self.cache_hits = self.cache_hits.saturating_add(other.cache_hits);
        self.cache_misses = self.cache_misses.saturating_add(other.cache_misses);
    }
}

tokio::task_local! {
    static USAGE: Arc<Mutex<Usage>>;
}

/// Runs some work and returns its usage. Spawned tasks are not counted. Usage of nested counted
/// work counts for both.
pub async fn counted<W: Future>(work: W) -> (W::Output, Usage) {
    let counted = Arc::default();
    let output = USAGE.scope(Arc::clone(&counted), work).await;
    let used = *counted.lock().unwrap_or_else(PoisonError::into_inner);
    note(|outer| outer.add(&used));
    (output, used)
}

/// Counts a cache lookup.
pub fn note_cache_lookup(is_hit: bool) {
    note(|usage| {
        let count = if is_hit { &mut usage.cache_hits } else { &mut usage.cache_misses };
        *count = count.saturating_add(1);
    });
}

/// Counts a call that DynamoDB throttled, after all retries.
pub(crate) fn note_throttled() {
    note(|usage| usage.throttled = usage.throttled.saturating_add(1));
}

/// Changes the usage of the current work, if it is counted.
fn note(change: impl FnOnce(&mut Usage)) {
    let _ = USAGE.try_with(|usage| {
        change(&mut usage.lock().unwrap_or_else(PoisonError::into_inner));
    });
}

/// An interceptor that counts the calls of a client.
#[derive(Debug)]
pub(crate) struct UsageMeter;

impl Intercept for UsageMeter {
    fn name(&self) -> &'static str {
        "UsageMeter"
    }

    fn modify_before_serialization(
        &self,
        context: &mut BeforeSerializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        note(|usage| {
            usage.calls = usage.calls.saturating_add(1);
            request_capacity(context);
        });
        Ok(())
    }

    fn read_before_attempt(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        note(|usage| usage.attempts = usage.attempts.saturating_add(1));
        Ok(())
    }

    fn read_after_execution(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        note(|usage| {
            let (read, written) = consumed(context);
            usage.read_units += read;
            usage.write_units += written;
        });
        Ok(())
    }
}

/// Requests that DynamoDB reports the capacity that a call consumes.
fn request_capacity(context: &mut BeforeSerializationInterceptorContextMut<'_>) {
    let input = context.input_mut();
    macro_rules! enable {
        ($($input:ty),+ $(,)?) => {$(
            if let Some(input) = input.downcast_mut::<$input>() {
                input.return_consumed_capacity = Some(ReturnConsumedCapacity::Total);
                return;
            }
        )+};
    }
    enable!(
        get_item::GetItemInput,
        query::QueryInput,
        transact_write_items::TransactWriteItemsInput,
        batch_get_item::BatchGetItemInput,
        put_item::PutItemInput,
        update_item::UpdateItemInput,
        delete_item::DeleteItemInput,
        batch_write_item::BatchWriteItemInput,
    );
}

/// Returns the read and the write capacity units that a call consumed.
fn consumed(context: &FinalizerInterceptorContextRef<'_>) -> (f64, f64) {
    let Some(Ok(output)) = context.output_or_error() else { return (0.0, 0.0) };
    macro_rules! reads {
        ($($output:ty),+ $(,)?) => {$(
            if let Some(output) = output.downcast_ref::<$output>() {
                return (total(output.consumed_capacity()), 0.0);
            }
        )+};
    }
    macro_rules! writes {
        ($($output:ty),+ $(,)?) => {$(
            if let Some(output) = output.downcast_ref::<$output>() {
                return (0.0, total(output.consumed_capacity()));
            }
        )+};
    }
    reads!(get_item::GetItemOutput, query::QueryOutput, batch_get_item::BatchGetItemOutput);
    writes!(
        transact_write_items::TransactWriteItemsOutput,
        put_item::PutItemOutput,
        update_item::UpdateItemOutput,
        delete_item::DeleteItemOutput,
        batch_write_item::BatchWriteItemOutput,
    );
    (0.0, 0.0)
}

fn total<'c>(capacities: impl IntoIterator<Item = &'c ConsumedCapacity>) -> f64 {
    capacities.into_iter().filter_map(ConsumedCapacity::capacity_units).sum()
}
