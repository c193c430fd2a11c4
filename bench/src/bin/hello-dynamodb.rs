//! A function that only makes the DynamoDB call of a warm create-feature-flag, with equal actions.
//! The benchmark subtracts its CPU time from that of create-feature-flag, to get our own share.
//!
//! With `BENCH_FIRST_CALL` set, it measures its own first call instead.

use std::collections::HashMap;
use std::time::Instant;
use std::{env, fs};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{
    AttributeValue, ConditionCheck, KeysAndAttributes, Put, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem, Update,
};
use lambda_http::{Error, Request, RequestExt, Response, service_fn};
use serde_json::{Value as Json, json};
use shared::dynamodb::{TableNames, client};

type Item = HashMap<String, AttributeValue>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    if env::var_os("BENCH_FIRST_CALL").is_some() {
        return lambda_http::run(service_fn(async |_: Request| first_call().await)).await;
    }
    let actions = fs::read(env::var("BENCH_ACTIONS")?)?;
    let call = &Call::read(client::for_function()?, &actions)?;
    lambda_http::run(service_fn(async |request: Request| call.send(&request).await)).await
}

/// Creates a client and makes its first call. Returns the duration of both, and of the call alone.
async fn first_call() -> Result<String, Error> {
    let started = Instant::now();
    let tables = TableNames::from_environment()?;
    let client = client::for_function()?;
    let call_started = Instant::now();
    let key = Item::from([("keyId".to_owned(), AttributeValue::S("0000000000000000".to_owned()))]);
    let keys = KeysAndAttributes::builder().keys(key).consistent_read(true).build()?;
    client
        .batch_get_item()
        .request_items(format!("{}api-keys", tables.prefix()), keys)
        .send()
        .await?;
    let (both, call) = (started.elapsed(), call_started.elapsed());
    let figures = json!({
        "clientAndCallMs": both.as_secs_f64() * 1_000.0,
        "callMs": call.as_secs_f64() * 1_000.0,
    });
    Ok(figures.to_string())
}

/// The call of a warm create-feature-flag, with the recorded actions of its transaction.
struct Call {
    client: Client,
    actions: Vec<Action>,
    /// The names of the recorded flag.
    sent: Names,
}

/// A flag's id, key and project, which differ from flag to flag.
type Names = [String; 3];

/// A recorded action, and its attributes that can contain names.
#[derive(Clone)]
enum Action {
    Put(Put, Item),
    Update(Update, Item),
    Check(ConditionCheck, Item),
}

impl Call {
    fn read(client: Client, actions: &[u8]) -> Result<Self, Error> {
        let actions: Vec<Json> = serde_json::from_slice(actions)?;
        let flag = actions.first().map(|action| &action["Put"]["Item"]);
        let flag = flag.ok_or("there are no actions")?;
        let sent = ["id", "key", "projectId"].map(|it| flag[it]["S"].as_str().map(str::to_owned));
        let [Some(id), Some(key), Some(project)] = sent else {
            return Err("the first action puts no flag".into());
        };
        let actions = actions.iter().map(read_action).collect::<Result<_, _>>()?;
        Ok(Self { client, actions, sent: [id, key, project] })
    }

    /// Sends the actions for a flag with a new id and key, in the request's project.
    async fn send(&self, request: &Request) -> Result<Response<String>, Error> {
        let parameters = request.path_parameters();
        let project = parameters.first("idOrSlug").ok_or("the event names no project")?;
        // Request ids differ only after the last hyphen.
        let request_id = &request.lambda_context().request_id;
        let number = request_id.rsplit('-').next().unwrap_or_default();
        let names = [format!("{number:0>36}"), format!("checkout-{number}"), project.to_owned()];

        let mut call = self.client.transact_write_items();
        for action in self.actions.clone() {
            let item = TransactWriteItem::builder();
            call = call.transact_items(match action {
                Action::Put(mut put, item_of) => {
                    put.item.extend(self.named(item_of, &names));
                    item.put(put).build()
                }
                Action::Update(mut update, key) => {
                    update.key.extend(self.named(key, &names));
                    item.update(update).build()
                }
                Action::Check(mut check, key) => {
                    check.key.extend(self.named(key, &names));
                    item.condition_check(check).build()
                }
            });
        }
        call.send().await?;
        Ok(Response::builder().status(201).body("created".to_owned())?)
    }

    /// Returns the string attributes, with the names of the recorded flag replaced by `names`.
    fn named(&self, texts: Item, names: &Names) -> Item {
        let replaced = |mut text: String| {
            for (sent, name) in self.sent.iter().zip(names) {
                text = text.replace(sent, name);
            }
            text
        };
        let texts = texts.into_iter().filter_map(|(attribute, value)| match value {
            AttributeValue::S(text) => Some((attribute, AttributeValue::S(replaced(text)))),
            _ => None,
        });
        texts.collect()
    }
}

/// The longest string in which names are replaced, in bytes. Keys are shorter.
const MAX_NAMING_BYTES: usize = 300;

fn read_action(action: &Json) -> Result<Action, Error> {
    let text = |of: &Json, member: &str| of[member].as_str().map(str::to_owned);
    let names = |of: &Json| -> Result<Option<HashMap<String, String>>, Error> {
        let names = of.get("ExpressionAttributeNames").cloned();
        Ok(names.map(serde_json::from_value).transpose()?)
    };
    let values = |of: &Json| of.get("ExpressionAttributeValues").map(read_item).transpose();
    let failure = |of: &Json| {
        let given = text(of, "ReturnValuesOnConditionCheckFailure");
        given.map(|it| ReturnValuesOnConditionCheckFailure::from(it.as_str()))
    };
    if let Some(put) = action.get("Put") {
        let item = read_item(&put["Item"])?;
        let built = Put::builder()
            .set_table_name(text(put, "TableName"))
            .set_condition_expression(text(put, "ConditionExpression"))
            .set_expression_attribute_names(names(put)?)
            .set_expression_attribute_values(values(put)?)
            .set_return_values_on_condition_check_failure(failure(put))
            .set_item(Some(item.clone()))
            .build()?;
        return Ok(Action::Put(built, naming(item)));
    }
    if let Some(check) = action.get("ConditionCheck") {
        let key = read_item(&check["Key"])?;
        let built = ConditionCheck::builder()
            .set_table_name(text(check, "TableName"))
            .set_condition_expression(text(check, "ConditionExpression"))
            .set_expression_attribute_names(names(check)?)
            .set_expression_attribute_values(values(check)?)
            .set_return_values_on_condition_check_failure(failure(check))
            .set_key(Some(key.clone()))
            .build()?;
        return Ok(Action::Check(built, naming(key)));
    }
    let update =
        action.get("Update").ok_or("an action is neither Put, Update nor ConditionCheck")?;
    let key = read_item(&update["Key"])?;
    let built = Update::builder()
        .set_table_name(text(update, "TableName"))
        .set_update_expression(text(update, "UpdateExpression"))
        .set_condition_expression(text(update, "ConditionExpression"))
        .set_expression_attribute_names(names(update)?)
        .set_expression_attribute_values(values(update)?)
        .set_return_values_on_condition_check_failure(failure(update))
        .set_key(Some(key.clone()))
        .build()?;
    Ok(Action::Update(built, naming(key)))
}

/// Returns the attributes of an item that are short enough to contain names.
fn naming(item: Item) -> Item {
    let is_short =
        |value: &AttributeValue| value.as_s().is_ok_and(|text| text.len() <= MAX_NAMING_BYTES);
    item.into_iter().filter(|(_, value)| is_short(value)).collect()
}

/// Reads an item in DynamoDB's JSON format, with the types that flags use.
fn read_item(json: &Json) -> Result<Item, Error> {
    let attributes = json.as_object().ok_or("an item is no object")?;
    attributes.iter().map(|(name, value)| Ok((name.clone(), read_value(value)?))).collect()
}

fn read_value(value: &Json) -> Result<AttributeValue, Error> {
    let kinds = value.as_object().ok_or("a value is no object")?;
    let (kind, value) = kinds.iter().next().ok_or("an attribute has no value")?;
    Ok(match (kind.as_str(), value) {
        ("S", Json::String(text)) => AttributeValue::S(text.clone()),
        ("N", Json::String(digits)) => AttributeValue::N(digits.clone()),
        ("BOOL", Json::Bool(value)) => AttributeValue::Bool(*value),
        ("NULL", Json::Bool(value)) => AttributeValue::Null(*value),
        // Base64: four characters are three bytes. Only the length matters.
        ("B", Json::String(text)) => AttributeValue::B(Blob::new(vec![0; text.len() / 4 * 3])),
        ("SS", value) => AttributeValue::Ss(serde_json::from_value(value.clone())?),
        ("M", value) => AttributeValue::M(read_item(value)?),
        ("L", Json::Array(values)) => {
            AttributeValue::L(values.iter().map(read_value).collect::<Result<_, _>>()?)
        }
        (kind, _) => return Err(format!("hello-dynamodb cannot write type {kind}").into()),
    })
}
