//! A function that only writes one transaction, with as many actions and about as many bytes as
//! that of a warm create-feature-flag. The benchmark subtracts its CPU time from that of
//! create-feature-flag, to get our own share.
//!
//! The response is the call's time in milliseconds. The first call creates the client.

use std::collections::HashMap;
use std::env;
use std::sync::LazyLock;
use std::time::Instant;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use lambda_http::{Error, Request, service_fn};
use shared::dynamodb::client::{self, ClientError};
use shared::dynamodb::{TableNames, TableNamesError};

/// The value of a list, like the values of a flag's conditions.
const VALUE: &str = "customer-000-000";
/// The size of a value on the wire, in bytes.
const VALUE_BYTES: usize = 25;
/// The size of an action without values on the wire, in bytes.
const ACTION_BYTES: usize = 111;
/// The size of a call without actions on the wire, in bytes.
const CALL_BYTES: usize = 98;

static CLIENT: LazyLock<Result<Client, ClientError>> = LazyLock::new(client::for_function);
static TABLES: LazyLock<Result<TableNames, TableNamesError>> =
    LazyLock::new(TableNames::from_environment);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let number = |name| Ok::<usize, Error>(env::var(name)?.parse()?);
    let (actions, bytes) = (number("BENCH_ACTIONS")?, number("BENCH_BYTES")?);
    let values = bytes.saturating_sub(CALL_BYTES + actions * ACTION_BYTES) / VALUE_BYTES;
    lambda_http::run(service_fn(move |_: Request| write(actions, values))).await
}

/// Puts `actions` items, the first of them with a list of `values` values. Returns the time.
async fn write(actions: usize, values: usize) -> Result<String, Error> {
    let started = Instant::now();
    let table = format!("{}feature-flags", TABLES.as_ref()?.prefix());
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let mut call = CLIENT.as_ref()?.transact_write_items();
    for action in 0..actions {
        let mut item = HashMap::from([
            ("projectId".to_owned(), text("hello-dynamodb")),
            ("key".to_owned(), text(&format!("item-{action}"))),
        ]);
        if action == 0 {
            item.insert("values".to_owned(), AttributeValue::L(vec![text(VALUE); values]));
        }
        let put = Put::builder().table_name(&table).set_item(Some(item)).build()?;
        call = call.transact_items(TransactWriteItem::builder().put(put).build());
    }
    call.send().await?;
    Ok((started.elapsed().as_secs_f64() * 1_000.0).to_string())
}
