//! An app with its own engine, a project and a key.

use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::interceptors::{
    BeforeSerializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
};
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use local::demo;
use local::engine::Engine;
use local::environment::table_prefix;
use local::template::Table;
use serde_json::Value;
use shared::app::{App, Clock, Ids, Operation};
use shared::dynamodb::client::{self, ClientError};
use shared::dynamodb::{DamagedItem, Store};
use shared::http::CursorKey;
use shared::projects::api_key::{ApiKey, ApiKeyRecord, KeyId, Scope, UserId};
use shared::projects::project::{Organization, ProjectId};
use shared::timestamp::Timestamp;

use crate::call::Call;
use crate::permissions;
use crate::proxy::{self, Proxy};

/// An item of a table.
pub type Item = HashMap<String, AttributeValue>;

/// Slug of the project in every test app.
pub const PROJECT: &str = "shop";

/// Start time of every test: 2026-11-21T04:16:00.000Z.
pub const START: u64 = 1_795_234_560_000;

/// Timeout of requests to tables with [`StoreTimeouts::Long`].
pub const TEST_TIMEOUT: Duration = Duration::from_mins(1);

/// Timeouts of an app's requests to its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreTimeouts {
    /// The timeouts of functions.
    AsFunctionsDo,
    /// Longer than a busy computer can stall a process.
    Long,
}

/// The environment of an operation. Only time and identifiers are fake.
pub struct TestApp {
    /// The app under test.
    pub app: App,
    /// The tables behind it.
    pub engine: Engine,
    /// A client for the tables that fills, inspects and changes them without function timeouts.
    pub client: Client,
    /// The id of the project [`PROJECT`].
    pub project_id: ProjectId,
    /// A key with all scopes for all projects.
    pub key: String,
    round_trips: Arc<AtomicUsize>,
}

impl TestApp {
    /// Starts an engine in memory and fills it.
    pub async fn start() -> Self {
        Self::start_with(&crate::tables()).await
    }

    /// Starts an engine in memory with the given tables, which include those of the template.
    pub async fn start_with(tables: &[Table]) -> Self {
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let engine = Engine::start(address, None, tables).expect("the engine starts");
        let client =
            client_of(&engine.endpoint(), StoreTimeouts::Long).expect("the client is created");
        let store = Store::new(client.clone(), table_prefix());
        let project_id =
            demo::ensure_project(&store, PROJECT, "Shop").await.expect("the project is created");
        let key = demo::create_key(&store, with_all_scopes).await.expect("the key is created");
        let (app, round_trips) = app_waiting(&engine.endpoint(), StoreTimeouts::Long);
        Self { app, engine, client, project_id, key, round_trips }
    }

    /// Creates a key that differs from the default one.
    pub async fn key_with(&self, adjust: impl FnOnce(ApiKeyRecord) -> ApiKeyRecord) -> String {
        let adjust = |record| adjust(with_all_scopes(record));
        demo::create_key(&self.app.store, adjust).await.expect("the key is created")
    }

    /// Creates a key of a user of the default organization.
    pub async fn key_of(&self, user: &str) -> String {
        let user = UserId::parse(user).expect("the user is valid");
        self.key_with(|key| ApiKeyRecord { user, ..key }).await
    }

    /// Creates the project `other` in the same organization.
    pub async fn other_project(&self) -> ProjectId {
        let other = demo::ensure_project(&self.patient_store(), "other", "Other").await;
        other.expect("the project is created")
    }

    /// Returns a call in the tests' project, with the key.
    pub fn call(&self, operation: &'static Operation) -> Call {
        Call::of(operation).parameter("idOrSlug", PROJECT).key(&self.key)
    }

    /// Returns projects with keys that cannot access them: projects of another organization,
    /// projects outside the key's list, and missing projects.
    pub async fn unseen_projects(&self, other: ProjectId) -> Vec<(&'static str, String)> {
        let organization = Organization::parse("foreign").expect("the name is valid");
        let foreign = self.key_with(|key| ApiKeyRecord { organization, ..key }).await;
        let elsewhere =
            self.key_with(|key| ApiKeyRecord { projects: Some([other].into()), ..key }).await;
        vec![
            (PROJECT, foreign),
            (PROJECT, elsewhere),
            ("missing", self.key.clone()),
            ("Not a slug", self.key.clone()),
            ("01902f3c-0000-7000-8000-000000000000", self.key.clone()),
        ]
    }

    /// Returns all pages of a list, in order.
    pub async fn pages(&self, call: &Call, limit: usize) -> Vec<Vec<Value>> {
        pages(&self.app, call, limit).await
    }

    /// Sends the app's requests through a proxy, with the timeouts of functions.
    pub async fn put_behind(&mut self, proxy: impl Proxy) {
        self.put_behind_waiting(proxy, StoreTimeouts::AsFunctionsDo).await;
    }

    /// Sends the app's requests through a proxy, with the given timeouts. Long ones suit proxies
    /// that never delay responses, because only a stalled computer causes delays.
    pub async fn put_behind_waiting(&mut self, proxy: impl Proxy, waits: StoreTimeouts) {
        let endpoint = proxy::serve(Arc::new(proxy)).await;
        (self.app, self.round_trips) = app_waiting(&endpoint, waits);
    }

    /// Counts the requests of another app, which replaces the own count.
    pub fn count_round_trips_by(&mut self, round_trips: Arc<AtomicUsize>) {
        self.round_trips = round_trips;
    }

    /// Returns the number of requests to DynamoDB since the last call.
    pub fn round_trips(&self) -> usize {
        self.round_trips.swap(0, Ordering::Relaxed)
    }

    /// Advances the clock.
    pub fn pass(&self, duration: Duration) {
        pass(&self.app, duration);
    }

    /// Sets the time.
    pub fn set_time(&self, at: Timestamp) {
        let Clock::Fixed(millis) = &self.app.clock else { unreachable!("a test's clock is fixed") };
        millis.store(millis_of(at), Ordering::Relaxed);
    }

    /// Returns an app for the same tables with another clock and random identifiers.
    pub fn app_at(&self, clock: Clock) -> App {
        let app = App::new(self.patient_store(), clock, Ids::Random);
        app.with_time_budget(TEST_TIMEOUT).with_cursor_key(Some(cursor_key()))
    }

    /// Returns a store of the same tables for setup and checks.
    pub fn patient_store(&self) -> Store {
        Store::new(self.client.clone(), table_prefix())
    }

    /// Returns all items of a table.
    pub async fn items(&self, table: &str) -> Vec<Item> {
        items(&self.client, table).await
    }

    /// Puts items directly into a table.
    pub async fn put(&self, table: &str, items: impl IntoIterator<Item = Item>) {
        let put = |item| {
            let put = PutRequest::builder().set_item(Some(item)).build();
            WriteRequest::builder().put_request(put.expect("an item")).build()
        };
        let requests: Vec<WriteRequest> = items.into_iter().map(put).collect();
        for batch in requests.chunks(25) {
            let table = format!("{}{table}", table_prefix());
            let write = self.client.batch_write_item().request_items(table, batch.to_vec());
            let left = write.send().await.expect("the items are put").unprocessed_items;
            assert!(left.unwrap_or_default().is_empty());
        }
    }

    /// Deletes an item directly from a table.
    pub async fn remove<const N: usize>(&self, table: &str, key: [(&str, &str); N]) {
        let delete = self.client.delete_item().table_name(format!("{}{table}", table_prefix()));
        delete.set_key(Some(texts(key))).send().await.expect("the item is deleted");
    }

    /// Returns an app whose function dies after this number of transactions.
    pub fn dying_after(&self, transactions: usize) -> App {
        let dies = Dies { transactions, sent: AtomicUsize::new(0) };
        let config = self.client.config().to_builder().interceptor(dies).build();
        let mut app = app_with(Client::from_conf(config));
        // Otherwise it would reuse IDs of the tests' own app.
        app.ids = Ids::Random;
        app
    }

    /// Sets an attribute of an item directly in the table.
    pub async fn tamper<const N: usize>(
        &self,
        table: &str,
        key: [(&str, &str); N],
        attribute: &str,
        value: AttributeValue,
    ) {
        self.client
            .update_item()
            .table_name(format!("{}{table}", table_prefix()))
            .set_key(Some(texts(key)))
            .update_expression("SET #attribute = :value")
            .expression_attribute_names("#attribute", attribute)
            .expression_attribute_values(":value", value)
            .send()
            .await
            .expect("the item is updated");
    }
}

/// Adds the scopes that a key does not have unless they are named.
fn with_all_scopes(record: ApiKeyRecord) -> ApiKeyRecord {
    ApiKeyRecord { scopes: Scope::ALL.into(), ..record }
}

/// Returns all pages of a list from an app, in order.
pub async fn pages(app: &App, call: &Call, limit: usize) -> Vec<Vec<Value>> {
    let mut pages = Vec::new();
    let mut cursor = None;
    loop {
        let mut call = call.clone().query("limit", limit);
        if let Some(cursor) = &cursor {
            call = call.query("cursor", cursor);
        }
        let reply = call.send_until_response(app).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let items = reply.body["items"].as_array().expect("the list has items").clone();
        assert!(items.len() <= limit);
        pages.push(items);
        match &reply.body["nextCursor"] {
            Value::String(next) => cursor = Some(next.clone()),
            last => {
                assert!(last.is_null());
                return pages;
            }
        }
    }
}

/// Returns a clock that does not advance.
pub fn clock_at(at: Timestamp) -> Clock {
    Clock::Fixed(millis_of(at).into())
}

fn millis_of(at: Timestamp) -> u64 {
    u64::try_from(at.as_millis()).expect("the time is after 1970")
}

/// Advances an app's clock.
pub fn pass(app: &App, duration: Duration) {
    let Clock::Fixed(millis) = &app.clock else { unreachable!("a test's clock is fixed") };
    let passed = u64::try_from(duration.as_millis()).expect("the duration fits");
    millis.fetch_add(passed, Ordering::Relaxed);
}

/// Unreadable items that the stores of this process skipped.
static LEFT_OUT: Mutex<Vec<DamagedItem>> = Mutex::new(Vec::new());

fn note_damage(item: &DamagedItem) {
    LEFT_OUT.lock().expect("the lock is not poisoned").push(item.clone());
}

/// Returns table and attribute of each skipped item whose key contains a text.
pub fn left_out(part_of_key: &str) -> BTreeSet<(&'static str, &'static str)> {
    let items = LEFT_OUT.lock().expect("the lock is not poisoned");
    let named = items.iter().filter(|item| item.key.contains(part_of_key));
    named.map(|item| (item.table, item.attribute)).collect()
}

/// Returns all items of a table.
pub async fn items(client: &Client, table: &str) -> Vec<Item> {
    let scan = client.scan().table_name(format!("{}{table}", table_prefix()));
    let mut pages = scan.consistent_read(true).into_paginator().items().send();
    let mut items = Vec::new();
    while let Some(item) = pages.next().await {
        items.push(item.expect("the table can be read"));
    }
    items
}

/// Returns an app with its DynamoDB at `endpoint`, and a counter of its requests.
pub fn app_over(endpoint: &str) -> (App, Arc<AtomicUsize>) {
    app_waiting(endpoint, StoreTimeouts::AsFunctionsDo)
}

fn app_waiting(endpoint: &str, waits: StoreTimeouts) -> (App, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let client = client_of(endpoint, waits).expect("the client is created");
    let counting = RoundTrips(Arc::clone(&count));
    let config = client.config().to_builder().interceptor(counting).build();
    let app = app_with(Client::from_conf(config));
    match waits {
        StoreTimeouts::AsFunctionsDo => (app, count),
        StoreTimeouts::Long => (app.with_time_budget(TEST_TIMEOUT), count),
    }
}

fn client_of(endpoint: &str, waits: StoreTimeouts) -> Result<Client, ClientError> {
    let client = client::for_endpoint(endpoint)?;
    if waits == StoreTimeouts::AsFunctionsDo {
        return Ok(client);
    }
    let timeouts = TimeoutConfig::builder()
        .operation_attempt_timeout(Duration::from_secs(20))
        .operation_timeout(TEST_TIMEOUT);
    let config = client.config().to_builder().timeout_config(timeouts.build());
    Ok(Client::from_conf(config.build()))
}

/// Returns an app with the given client.
pub fn app_with(client: Client) -> App {
    let store = Store::new(client, table_prefix()).reporting_damage(note_damage);
    let clock = Clock::Fixed(AtomicU64::new(START));
    let app = App::new(store, clock, Ids::Sequential(AtomicU64::new(1)));
    app.with_cursor_key(Some(cursor_key()))
}

fn cursor_key() -> CursorKey {
    CursorKey::new("key of the tests for cursors")
}

/// Returns the id of a key.
pub fn key_id(key: &str) -> KeyId {
    ApiKey::parse(key).expect("the key is valid").key_id().clone()
}

/// Returns attributes that are texts.
pub fn texts<const N: usize>(attributes: [(&str, &str); N]) -> Item {
    attributes.map(|(name, value)| (name.to_owned(), AttributeValue::S(value.to_owned()))).into()
}

/// Lets some transactions through, and fails later ones as if the function died between them.
#[derive(Debug)]
struct Dies {
    transactions: usize,
    sent: AtomicUsize,
}

impl Intercept for Dies {
    fn name(&self) -> &'static str {
        "Dies"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let target = context.request().headers().get("x-amz-target").unwrap_or_default();
        let is_write = target.ends_with("TransactWriteItems");
        if is_write && self.sent.fetch_add(1, Ordering::Relaxed) >= self.transactions {
            return Err("the function died".into());
        }
        Ok(())
    }
}

/// Counts requests, including retries, and records the permissions that they need.
#[derive(Debug)]
struct RoundTrips(Arc<AtomicUsize>);

impl Intercept for RoundTrips {
    fn name(&self) -> &'static str {
        "RoundTrips"
    }

    fn read_before_execution(
        &self,
        context: &BeforeSerializationInterceptorContextRef<'_>,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        permissions::note(context.input());
        Ok(())
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
