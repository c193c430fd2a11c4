//! A network between functions and the engine that loses, delays and rejects requests, by a seed.
//! It records the history of one item, with the operation that caused each change.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as StdMutex};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::BeforeTransmitInterceptorContextMut;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::types::AttributeValue;
use local::environment::table_prefix;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use shared::app::{App, Clock, Ids};
use shared::dynamodb::{Store, client};
use shared::http::CursorKey;
use tests::proxy::Upstream;
use tests::wire::{self, Request};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

/// A stored item.
pub(crate) type Item = std::collections::HashMap<String, AttributeValue>;

/// Timeout of functions in these tests.
const ATTEMPT: Duration = Duration::from_millis(300);
/// Delay of late requests in milliseconds: longer than a timeout, and mostly longer than all
/// attempts of a request.
const LATE: std::ops::Range<u64> = 320..1_200;

/// A fault on the way of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InjectedFault {
    /// The request is never delivered.
    RequestLost,
    /// The request is executed, but its response is lost.
    ResponseLost,
    /// The request is executed after the client gave up.
    DeliveredLate,
    /// The response arrives after the client gave up.
    RespondedLate,
    /// Another transaction holds the item.
    Conflict,
}

const FAULTS: [InjectedFault; 5] = [
    InjectedFault::RequestLost,
    InjectedFault::ResponseLost,
    InjectedFault::DeliveredLate,
    InjectedFault::RespondedLate,
    InjectedFault::Conflict,
];

/// An event in the item's history.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// An operation began.
    Began(usize),
    /// An operation changed the item to this state.
    Changed(usize, Option<Item>),
    /// An operation ended.
    Ended(usize),
}

/// The watched item and its history.
#[derive(Default)]
pub(crate) struct History {
    watched: Option<(String, Item)>,
    /// The item at the beginning.
    pub(crate) first: Option<Item>,
    latest: Option<Item>,
    /// The events since then, in order.
    pub(crate) events: Vec<Event>,
}

/// The network in front of an engine.
pub(crate) struct Network {
    upstream: Upstream,
    direct: Client,
    operations: AtomicUsize,
    /// The history. Locked during the delivery of a write, so that changes are in order.
    pub(crate) history: Mutex<History>,
    lines: AtomicUsize,
    seed: u64,
}

/// A function's connection to the engine.
pub(crate) struct Line {
    /// The function's app.
    pub(crate) app: App,
    /// The current operation.
    current: Arc<AtomicUsize>,
}

impl Network {
    /// Returns a network in front of an engine.
    pub(crate) fn in_front_of(engine: &str, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            upstream: Upstream::new(engine),
            direct: client::for_endpoint(engine).unwrap(),
            operations: AtomicUsize::new(0),
            history: Mutex::default(),
            lines: AtomicUsize::new(0),
            seed,
        })
    }

    /// Watches an item from now on.
    pub(crate) async fn watch(&self, table: &str, key: Item) {
        let mut history = self.history.lock().await;
        history.watched = Some((format!("{}{table}", table_prefix()), key));
        let now = self.read_watched(&history).await;
        (history.first, history.latest) = (now.clone(), now);
    }

    /// Returns a new connection to the engine, with this fault rate in percent.
    pub(crate) async fn line(self: &Arc<Self>, percent: u32) -> Line {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let current = Arc::new(AtomicUsize::new(usize::MAX));
        let number = self.lines.fetch_add(1, Ordering::Relaxed);
        let rng = ChaCha8Rng::seed_from_u64(self.seed.wrapping_add(number as u64));
        let rng = Arc::new(StdMutex::new(rng));
        let network = Arc::clone(self);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (network, rng) = (Arc::clone(&network), Arc::clone(&rng));
                tokio::spawn(async move { network.carry(connection, &rng, percent).await });
            }
        });
        let client = client::for_endpoint(&endpoint).unwrap();
        let timeouts = TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT);
        let config = client.config().to_builder().timeout_config(timeouts.build());
        let config = config.interceptor(Sender(Arc::clone(&current))).build();
        let store = Store::new(Client::from_conf(config), table_prefix());
        Line { app: app(store), current }
    }

    /// Returns an app with a direct connection to the engine.
    pub(crate) fn direct_app(&self) -> App {
        app(Store::new(self.direct.clone(), table_prefix()))
    }

    /// Runs an operation on a connection, and returns its number.
    pub(crate) async fn run<T>(
        &self,
        line: &Line,
        operation: impl Future<Output = T>,
    ) -> (usize, T) {
        let number = self.operations.fetch_add(1, Ordering::Relaxed);
        line.current.store(number, Ordering::Relaxed);
        self.history.lock().await.events.push(Event::Began(number));
        let outcome = operation.await;
        self.history.lock().await.events.push(Event::Ended(number));
        (number, outcome)
    }

    async fn carry(&self, mut connection: TcpStream, rng: &StdMutex<ChaCha8Rng>, percent: u32) {
        while let Some(request) = wire::read_request(&mut connection).await {
            let by = sender(&request);
            let (fault, late) = {
                let mut rng = rng.lock().unwrap();
                let is_faulty = rng.random_range(0..100) < percent;
                let fault = FAULTS[rng.random_range(0..FAULTS.len())];
                (is_faulty.then_some(fault), Duration::from_millis(rng.random_range(LATE)))
            };
            let (status, body) = match fault {
                None => self.deliver(by, &request).await,
                Some(InjectedFault::RequestLost) => return,
                Some(InjectedFault::ResponseLost) => {
                    let before = self.changes().await;
                    self.deliver(by, &request).await;
                    if self.changes().await > before {
                        self.wait_for_a_rival().await;
                    }
                    return;
                }
                Some(InjectedFault::DeliveredLate) => {
                    tokio::time::sleep(late).await;
                    self.deliver(by, &request).await;
                    return;
                }
                Some(InjectedFault::RespondedLate) => {
                    self.deliver(by, &request).await;
                    tokio::time::sleep(late).await;
                    return;
                }
                Some(InjectedFault::Conflict) => match conflict(&request) {
                    Some(rejection) => (400, rejection.to_string().into_bytes()),
                    None => self.deliver(by, &request).await,
                },
            };
            if wire::write_response(&mut connection, status, &body).await.is_none() {
                return;
            }
        }
    }

    /// Forwards a request to the engine, and records the change.
    async fn deliver(&self, by: usize, request: &Request) -> (u16, Vec<u8>) {
        let is_read = matches!(&*request.target, "GetItem" | "BatchGetItem" | "Query");
        if is_read {
            return self.upstream.forward(request).await;
        }
        let mut history = self.history.lock().await;
        let response = self.upstream.forward(request).await;
        let now = self.read_watched(&history).await;
        if now != history.latest {
            history.events.push(Event::Changed(by, now.clone()));
            history.latest = now;
        }
        response
    }

    async fn changes(&self) -> usize {
        let history = self.history.lock().await;
        history.events.iter().filter(|event| matches!(event, Event::Changed(..))).count()
    }

    /// Waits until another client has also changed the item, but less than a timeout.
    async fn wait_for_a_rival(&self) {
        let changes = self.changes().await;
        let deadline = Instant::now() + ATTEMPT * 4 / 5;
        while Instant::now() < deadline && self.changes().await == changes {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn read_watched(&self, history: &History) -> Option<Item> {
        let (table, key) = history.watched.clone()?;
        let get = self.direct.get_item().table_name(table).set_key(Some(key));
        get.consistent_read(true).send().await.unwrap().item
    }
}

fn app(store: Store) -> App {
    let key = CursorKey::new("what these tests sign cursors with");
    App::new(store, Clock::System, Ids::Random).with_cursor_key(Some(key))
}

/// Adds the current operation's number to each request, since an abandoned request can arrive
/// during the next operation.
#[derive(Debug)]
struct Sender(Arc<AtomicUsize>);

const SENDER: &str = "x-operation";

impl Intercept for Sender {
    fn name(&self) -> &'static str {
        "Sender"
    }

    fn modify_before_retry_loop(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let operation = self.0.load(Ordering::Relaxed).to_string();
        context.request_mut().headers_mut().insert(SENDER, operation);
        Ok(())
    }
}

fn sender(request: &Request) -> usize {
    let header = request.headers.iter().find(|(name, _)| name == SENDER);
    header.and_then(|(_, operation)| operation.parse().ok()).expect("every request has the header")
}

/// Returns DynamoDB's rejection of a write while a transaction holds its item.
fn conflict(request: &Request) -> Option<Value> {
    let name = |name: &str| format!("com.amazonaws.dynamodb.v20120810#{name}");
    match &*request.target {
        "TransactWriteItems" => {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            let actions = body["TransactItems"].as_array().unwrap().len();
            let mut reasons = vec![json!({"Code": "None"}); actions];
            reasons[0] = json!({"Code": "TransactionConflict", "Message": "ongoing"});
            Some(json!({
                "__type": name("TransactionCanceledException"),
                "Message": "Transaction cancelled",
                "CancellationReasons": reasons,
            }))
        }
        "PutItem" | "UpdateItem" | "DeleteItem" => {
            Some(json!({"__type": name("TransactionConflictException"), "message": "ongoing"}))
        }
        _ => None,
    }
}
