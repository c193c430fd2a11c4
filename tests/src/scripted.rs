//! A DynamoDB that responds from a script, for behavior that the engine lacks: throttling,
//! transaction conflicts, or no response.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shared::projects::api_key::Scope;
use tokio::net::{TcpListener, TcpStream};

use crate::app::{PROJECT, app_over};
use crate::call::{Call, Reply};
use crate::wire::{self, Request};

/// A scripted response.
#[derive(Debug, Clone)]
pub enum ScriptedReply {
    /// Status 200 with this body.
    Response(Value),
    /// An error with this name and these additional fields.
    Error(&'static str, Value),
    /// No response, while the connection stays open.
    Silence,
}

/// A running script.
pub struct ScriptedDynamoDb {
    /// The address.
    pub endpoint: String,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl ScriptedDynamoDb {
    /// Starts a script. It returns the response for a target, such as `TransactWriteItems`, and the
    /// number of earlier requests with that target.
    pub async fn start(
        script: impl Fn(&str, usize) -> ScriptedReply + Clone + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let endpoint = format!("http://{}", listener.local_addr().expect("it has an address"));
        let requests = Arc::default();
        let seen: Arc<Mutex<Vec<(String, Value)>>> = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(converse(connection, script.clone(), Arc::clone(&seen)));
            }
        });
        Self { endpoint, requests }
    }

    /// Returns the bodies of all requests with a target.
    pub fn requests(&self, target: &str) -> Vec<Value> {
        let requests = self.requests.lock().expect("not poisoned");
        requests.iter().filter(|(name, _)| name == target).map(|(_, body)| body.clone()).collect()
    }
}

impl ScriptedDynamoDb {
    /// Returns the writes of single-action transactions. `action` is `Put`, `Update` or `Delete`.
    pub fn single_writes(&self, action: &str) -> Vec<Value> {
        let transactions = self.requests("TransactWriteItems");
        let alone = transactions.iter().filter(|it| it["TransactItems"][1].is_null());
        alone.filter_map(|it| it["TransactItems"][0].get(action).cloned()).collect()
    }
}

async fn converse(
    mut connection: TcpStream,
    script: impl Fn(&str, usize) -> ScriptedReply,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
) {
    while let Some(Request { target, body, .. }) = wire::read_request(&mut connection).await {
        let Ok(body) = serde_json::from_slice::<Value>(&body) else { return };
        let turn = {
            let mut seen = seen.lock().expect("not poisoned");
            let before = seen.iter().filter(|(name, _)| *name == target).count();
            let turn = script(&target, before);
            seen.push((target, body));
            turn
        };
        let (status, body) = match turn {
            ScriptedReply::Response(body) => (200, body),
            ScriptedReply::Error(name, mut fields) => {
                fields["__type"] = json!(format!("com.amazonaws.dynamodb.v20120810#{name}"));
                (if name == "InternalServerError" { 500 } else { 400 }, fields)
            }
            ScriptedReply::Silence => {
                tokio::time::sleep(Duration::from_mins(1)).await;
                return;
            }
        };
        if wire::write_response(&mut connection, status, body.to_string().as_bytes())
            .await
            .is_none()
        {
            return;
        }
    }
}

/// Returns a canceled transaction with one reason per action.
pub fn cancelled(reasons: &[&str]) -> ScriptedReply {
    let reasons: Vec<Value> = reasons.iter().map(|code| json!({ "Code": code })).collect();
    ScriptedReply::Error(
        "TransactionCanceledException",
        json!({ "message": "Transaction cancelled", "CancellationReasons": reasons }),
    )
}

/// An API key that [`access`] accepts.
pub const KEY: &str = "wm_AAAABBBBCCCC0001_0123456789abcdefghijABCDEFGHIJ0123456789xyz0zL89M";

/// Returns the response to `BatchGetItem` that accepts [`KEY`] with all scopes, and contains
/// [`PROJECT`].
pub fn access() -> ScriptedReply {
    ScriptedReply::Response(json!({"Responses": {
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

/// Returns the response to a call with a script. It must arrive within the time budget of every
/// request.
pub async fn reply_under(
    script: impl Fn(&str, usize) -> ScriptedReply + Clone + Send + 'static,
    call: Call,
) -> (Reply, ScriptedDynamoDb) {
    let dynamodb = ScriptedDynamoDb::start(script).await;
    let (app, _) = app_over(&dynamodb.endpoint);
    let started = Instant::now();
    let reply = call.send(&app).await;
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    (reply, dynamodb)
}
