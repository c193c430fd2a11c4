//! A DynamoDB that answers from a script: for what a well-behaved engine never does, such as
//! throttling, transactions that meet, or silence.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shared::projects::api_key::Scope;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::app::{PROJECT, app_over};
use crate::call::{Call, Reply};

/// One answer.
#[derive(Debug, Clone)]
pub enum Turn {
    /// 200 with this body.
    Answer(Value),
    /// An error of this name, with these further members.
    Error(&'static str, Value),
    /// The condition of a write fails on the very item that it writes: an earlier attempt was carried
    /// out, and its answer was lost.
    FailedOnItself,
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
    pub async fn start(script: fn(&str, usize) -> Turn) -> Self {
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

async fn converse(
    mut connection: TcpStream,
    script: fn(&str, usize) -> Turn,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
) {
    while let Some((target, body)) = read_request(&mut connection).await {
        let turn = {
            let mut seen = seen.lock().expect("nobody panicked");
            let before = seen.iter().filter(|(name, _)| *name == target).count();
            let turn = script(&target, before);
            seen.push((target, body.clone()));
            match turn {
                Turn::FailedOnItself => {
                    let failed = json!({ "message": "", "Item": body["Item"] });
                    Turn::Error("ConditionalCheckFailedException", failed)
                }
                turn => turn,
            }
        };
        let (status, body) = match turn {
            Turn::FailedOnItself => return,
            Turn::Answer(body) => ("200 OK", body),
            Turn::Error(name, mut members) => {
                members["__type"] = json!(format!("com.amazonaws.dynamodb.v20120810#{name}"));
                let is_its_own_fault = name == "InternalServerError";
                let status =
                    if is_its_own_fault { "500 Internal Server Error" } else { "400 Bad Request" };
                (status, members)
            }
            Turn::Silence => {
                tokio::time::sleep(Duration::from_mins(1)).await;
                return;
            }
        };
        let body = body.to_string();
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/x-amz-json-1.0\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        if connection.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The target and the body of the next request.
async fn read_request(connection: &mut TcpStream) -> Option<(String, Value)> {
    let mut received = Vec::new();
    loop {
        if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).to_lowercase();
            let header = |name: &str| {
                let line = head.lines().find_map(|line| line.strip_prefix(name));
                line.map(|value| value.trim().to_owned())
            };
            let length: usize = header("content-length:")?.parse().ok()?;
            let body_start = end + 4;
            if received.len() >= body_start + length {
                let head = String::from_utf8_lossy(&received[..end]).into_owned();
                let target = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    name.eq_ignore_ascii_case("x-amz-target").then(|| value.trim().to_owned())
                })?;
                let target = target.rsplit('.').next()?.to_owned();
                let body = serde_json::from_slice(&received[body_start..body_start + length]);
                return Some((target, body.ok()?));
            }
        }
        if connection.read_buf(&mut received).await.ok()? == 0 {
            return None;
        }
    }
}

/// A cancelled transaction, one reason per action.
pub fn cancelled(reasons: &[&str]) -> Turn {
    let reasons: Vec<Value> = reasons.iter().map(|code| json!({ "Code": code })).collect();
    Turn::Error(
        "TransactionCanceledException",
        json!({ "message": "Transaction cancelled", "CancellationReasons": reasons }),
    )
}

/// A key that [`access`] lets in.
pub const KEY: &str = "wm_AAAABBBBCCCC0001_0123456789abcdefghijABCDEFGHIJ0123456789xyz0zL89M";

/// The answer to `BatchGetItem` that lets [`KEY`] in, with all scopes, and knows [`PROJECT`].
pub fn access() -> Turn {
    Turn::Answer(json!({"Responses": {
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
pub async fn reply_under(script: fn(&str, usize) -> Turn, call: Call) -> (Reply, ScriptedDynamoDb) {
    let dynamodb = ScriptedDynamoDb::start(script).await;
    let (app, _) = app_over(&dynamodb.endpoint);
    let started = Instant::now();
    let reply = call.send(&app).await;
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    (reply, dynamodb)
}
