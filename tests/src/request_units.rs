//! What DynamoDB charges for: request units, by the embedded engine's account.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::{
    AfterDeserializationInterceptorContextRef, BeforeSerializationInterceptorContextMut,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::operation::batch_get_item::{BatchGetItemInput, BatchGetItemOutput};
use aws_sdk_dynamodb::operation::batch_write_item::{BatchWriteItemInput, BatchWriteItemOutput};
use aws_sdk_dynamodb::operation::delete_item::{DeleteItemInput, DeleteItemOutput};
use aws_sdk_dynamodb::operation::get_item::{GetItemInput, GetItemOutput};
use aws_sdk_dynamodb::operation::put_item::{PutItemInput, PutItemOutput};
use aws_sdk_dynamodb::operation::query::{QueryInput, QueryOutput};
use aws_sdk_dynamodb::operation::transact_write_items::{
    TransactWriteItemsInput, TransactWriteItemsOutput,
};
use aws_sdk_dynamodb::operation::update_item::{UpdateItemInput, UpdateItemOutput};
use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};
use shared::app::App;
use shared::store::client;

use crate::app::app_with;

/// Read and write request units.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RequestUnits {
    /// Read request units.
    pub read: f64,
    /// Write request units.
    pub write: f64,
}

impl fmt::Display for RequestUnits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} | {}", self.read, self.write)
    }
}

/// Counts the request units that an app consumes.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Mutex<RequestUnits>>);

impl Meter {
    /// What was consumed since this was last asked.
    pub fn read(&self) -> RequestUnits {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, consumed: &[ConsumedCapacity], is_read: bool) {
        let consumed: f64 = consumed.iter().filter_map(ConsumedCapacity::capacity_units).sum();
        let mut units = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *(if is_read { &mut units.read } else { &mut units.write }) += consumed;
    }
}

/// An app whose DynamoDB is at `endpoint`, and a meter of it.
pub fn metered_app(endpoint: &str) -> (App, Meter) {
    let meter = Meter::default();
    let client = client::for_endpoint(endpoint).expect("a client is made");
    let config = client.config().to_builder().interceptor(meter.clone()).build();
    (app_with(Client::from_conf(config)), meter)
}

impl Intercept for Meter {
    fn name(&self) -> &'static str {
        "Meter"
    }

    fn modify_before_serialization(
        &self,
        context: &mut BeforeSerializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        macro_rules! ask {
            ($($request:ty)+) => {
                $(if let Some(request) = context.input_mut().downcast_mut::<$request>() {
                    request.return_consumed_capacity = Some(ReturnConsumedCapacity::Total);
                })+
            };
        }
        ask!(GetItemInput PutItemInput UpdateItemInput DeleteItemInput QueryInput);
        ask!(BatchGetItemInput BatchWriteItemInput TransactWriteItemsInput);
        Ok(())
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Ok(answer) = context.output_or_error() else { return Ok(()) };
        macro_rules! count {
            ($($answer:ty, $is_read:literal;)+) => {
                $(if let Some(answer) = answer.downcast_ref::<$answer>() {
                    self.add(answer.consumed_capacity.as_slice(), $is_read);
                })+
            };
        }
        macro_rules! count_tables {
            ($($answer:ty, $is_read:literal;)+) => {
                $(if let Some(answer) = answer.downcast_ref::<$answer>() {
                    self.add(answer.consumed_capacity(), $is_read);
                })+
            };
        }
        count!(GetItemOutput, true; QueryOutput, true; PutItemOutput, false;);
        count!(UpdateItemOutput, false; DeleteItemOutput, false;);
        count_tables!(BatchGetItemOutput, true; BatchWriteItemOutput, false;);
        count_tables!(TransactWriteItemsOutput, false;);
        Ok(())
    }
}
