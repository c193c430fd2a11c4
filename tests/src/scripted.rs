//! A DynamoDB that answers from a script: for what a well-behaved engine never does, such as
//! throttling, transactions that meet, or silence.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shared::projects::api_key::Scope;
use tokio::net::{TcpListener, TcpStream};

use crate::app::{PROJECT, app_over};
use crate::call::{Call, Reply};
use crate::wire::{self, Request};

/// One answer.
#[derive(Debug, Clone)]
pub enum ScriptedReply {
    /// 200 with this body.
    Answer(Value),
    /// An error of this name, with these further members.
    Error(&'static str, Value),
    /// Nothing, while the connection stays open.
    Silence,
}

/// A running script.
pub struct ScriptedDynamoDb {
    /// Where it listens.
    pub endpoint: String,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl ScriptedDynamoDb {
    /// Starts a script that decides on each request by its target, such as `TransactWriteItems`,
    /// and how many of that target came before.
    pub async fn start(script: fn(&str, usize) -> ScriptedReply) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let endpoint = format!("http://{}", listener.local_addr().expect("it has an address"));
        let requests = Arc::default();
        let seen: Arc<Mutex<Vec<(String, Value)>>> = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(converse(connection, script, Arc::clone(&seen)));
            }
        });
        Self { endpoint, requests }
    }

    /// The bodies of all requests of a target.
    pub fn requests(&self, target: &str) -> Vec<Value> {
        let requests = self.requests.lock().expect("nobody panicked");
        requests.iter().filter(|(name, _)| name == target).map(|(_, body)| body.clone()).collect()
    }
}

impl ScriptedDynamoDb {
    /// The transactions of one action that is a `Put`, an `Update` or a `Delete`: that action of each.
    pub fn single_writes(&self, action: &str) -> Vec<Value> {
        let transactions = self.requests("TransactWriteItems");
        let alone = transactions.iter().filter(|it| it["TransactItems"][1].is_null());
        alone.filter_map(|it| it["TransactItems"][0].get(action).cloned()).collect()
    }
}

async fn converse(
    mut connection: TcpStream,
    script: fn(&str, usize) -> ScriptedReply,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
) {
    while let Some(Request { target, body, .. }) = wire::read_request(&mut connection).await {
        let Ok(body) = serde_json::from_slice::<Value>(&body) else { return };
        let turn = {
            let mut seen = seen.lock().expect("nobody panicked");
            let before = seen.iter().filter(|(name, _)| *name == target).count();
            let turn = script(&target, before);
            seen.push((target, body));
            turn
        };
        let (status, body) = match turn {
            ScriptedReply::Answer(body) => (200, body),
            ScriptedReply::Error(name, mut members) => {
                members["__type"] = json!(format!("com.amazonaws.dynamodb.v20120810#{name}"));
                (if name == "InternalServerError" { 500 } else { 400 }, members)
            }
            ScriptedReply::Silence => {
                tokio::time::sleep(Duration::from_mins(1)).await;
                return;
            }
        };
        if wire::write_answer(&mut connection, status, body.to_string().as_bytes()).await.is_none()
        {
            return;
        }
    }
}

/// A cancelled transaction, one reason per action.
pub fn cancelled(reasons: &[&str]) -> ScriptedReply {
    let reasons: Vec<Value> = reasons.iter().map(|code| json!({ "Code": code })).collect();
    ScriptedReply::Error(
        "TransactionCanceledException",
        json!({ "message": "Transaction cancelled", "CancellationReasons": reasons }),
    )
}

/// A key that [`access`] lets in.
pub const KEY: &str = "wm_AAAABBBBCCCC0001_0123456789abcdefghijABCDEFGHIJ0123456789xyz0zL89M";

/// The answer to `BatchGetItem` that lets [`KEY`] in, with all scopes, and knows [`PROJECT`].
pub fn access() -> ScriptedReply {
    ScriptedReply::Answer(json!({"Responses": {
        "waymark-api-keys": [{
            "keyId": {"S": "AAAABBBBCCCC0001"},
            // SHA-256 of the secret.
            "secretHash": {"B": "3tVsQnEb71QIfMtd2ot1lsXQcKRPMRVJ6H8GcRKnzOA="},
            "organization": {"S": "default"},
            "user": {"S": "owner"},
            "scopes": {"SS": Scope::ALL.map(Scope::as_str)},
            "createdAt": {"S": "2026-01-01T00:00:00.000Z"},
        }],
        "waymark-projects": [{
            "idOrSlug": {"S": PROJECT},
            "projectId": {"S": "00000000-0000-7000-8000-000000000001"},
            "organization": {"S": "default"},
        }],
    }, "UnprocessedKeys": {}}))
}

/// The reply to a call over a script, within the time in which every request is answered.
pub async fn reply_under(
    script: fn(&str, usize) -> ScriptedReply,
    call: Call,
) -> (Reply, ScriptedDynamoDb) {
    let dynamodb = ScriptedDynamoDb::start(script).await;
    let (app, _) = app_over(&dynamodb.endpoint);
    let started = Instant::now();
    let reply = call.send(&app).await;
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    (reply, dynamodb)
}
