//! A function that does nothing but make the DynamoDB call of a warm create-feature-flag, with the
//! same item: what is taken off that function's CPU time to get our own share of it.
//!
//! With `BENCH_FIRST_CALL` set it measures its own first call instead.

use std::collections::HashMap;
use std::time::Instant;
use std::{env, fs};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeValue, KeysAndAttributes, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
    Update,
};
use lambda_http::{Error, Request, RequestExt, Response, service_fn};
use serde_json::{Value as Json, json};
use shared::app::{DEFAULT_TABLE_PREFIX, TABLE_PREFIX_VARIABLE};
use shared::dynamodb::client;
use shared::flags::MAX_LIVE_FLAGS;

type Item = HashMap<String, AttributeValue>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    if env::var_os("BENCH_FIRST_CALL").is_some() {
        return lambda_http::run(service_fn(async |_: Request| first_call().await)).await;
    }
    let call = &Call {
        client: client::for_function()?,
        table: table("feature-flags"),
        item: read_item(&fs::read(env::var("BENCH_ITEM")?)?)?,
    };
    lambda_http::run(service_fn(async |request: Request| call.make(&request).await)).await
}

fn table(name: &str) -> String {
    let prefix =
        env::var(TABLE_PREFIX_VARIABLE).unwrap_or_else(|_| DEFAULT_TABLE_PREFIX.to_owned());
    format!("{prefix}{name}")
}

/// Makes a client and its first call, and answers how long both took, and the call alone.
async fn first_call() -> Result<String, Error> {
    let started = Instant::now();
    let client = client::for_function()?;
    let made = Instant::now();
    let key = Item::from([("keyId".to_owned(), AttributeValue::S("0000000000000000".to_owned()))]);
    let keys = KeysAndAttributes::builder().keys(key).consistent_read(true).build()?;
    client.batch_get_item().request_items(table("api-keys"), keys).send().await?;
    let (both, call) = (started.elapsed(), made.elapsed());
    let figures = json!({
        "clientAndCallMs": both.as_secs_f64() * 1_000.0,
        "callMs": call.as_secs_f64() * 1_000.0,
    });
    Ok(figures.to_string())
}

/// The call of a warm create-feature-flag.
struct Call {
    client: Client,
    table: String,
    item: Item,
}

impl Call {
    /// Stores the item under a key of its own, and counts it among its project's flags.
    async fn make(&self, request: &Request) -> Result<Response<String>, Error> {
        let parameters = request.path_parameters();
        let project = parameters.first("idOrSlug").ok_or("the event names no project")?;
        let project = AttributeValue::S(project.to_owned());
        // Request ids differ at their ends only.
        let request_id = &request.lambda_context().request_id;
        let key = format!("checkout-{}", request_id.rsplit('-').next().unwrap_or_default());

        let mut item = self.item.clone();
        item.insert("projectId".to_owned(), project.clone());
        item.insert("key".to_owned(), AttributeValue::S(key));
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(projectId)")
            .build()?;
        let count = Update::builder()
            .table_name(&self.table)
            .key("projectId", project)
            .key("key", AttributeValue::S("#".to_owned()))
            .condition_expression("(attribute_not_exists(liveFlags) OR liveFlags < :limit)")
            .update_expression("ADD liveFlags :one")
            .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
            .expression_attribute_values(":limit", AttributeValue::N(MAX_LIVE_FLAGS.to_string()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()?;
        self.client
            .transact_write_items()
            .transact_items(TransactWriteItem::builder().put(put).build())
            .transact_items(TransactWriteItem::builder().update(count).build())
            .send()
            .await?;
        Ok(Response::builder().status(201).body("created".to_owned())?)
    }
}

/// Reads an item in DynamoDB's JSON, as far as flags need it.
fn read_item(json: &[u8]) -> Result<Item, Error> {
    let json: HashMap<String, HashMap<String, Json>> = serde_json::from_slice(json)?;
    json.into_iter().map(|(name, value)| Ok((name, read_value(value)?))).collect()
}

fn read_value(value: HashMap<String, Json>) -> Result<AttributeValue, Error> {
    let (kind, value) = value.into_iter().next().ok_or("an attribute has no value")?;
    Ok(match (kind.as_str(), value) {
        ("S", Json::String(text)) => AttributeValue::S(text),
        ("N", Json::String(digits)) => AttributeValue::N(digits),
        ("BOOL", Json::Bool(value)) => AttributeValue::Bool(value),
        ("SS", value) => AttributeValue::Ss(serde_json::from_value(value)?),
        (kind, _) => return Err(format!("hello-dynamodb cannot write type {kind}").into()),
    })
}
