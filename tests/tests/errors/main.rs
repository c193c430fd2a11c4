//! Tests of error tracking with a real engine: events that SDKs deliver are listed and counted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod access;
mod bounds_of_errors;
mod breakdown_errors;
mod capacity;
mod compaction;
mod deletion;
mod duplicates;
mod encodings;
mod failures;
mod filter_loop;
mod ingest_error_events;
mod interpret_error_filters;
mod kills;
mod listing;
mod model;
mod noisy_neighbour;
mod packing;
mod partition_limits;
mod poison;
mod query_error_events;
mod query_error_timeseries;
mod query_errors;
mod quotas;
mod reproductions;
mod summarize_error;
mod tags;
mod update_error;

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::join_all;
use serde_json::{Value, json};

use errors::ErrorId;
use errors::log::manifest::{CompactionLimits, Run, RunId};
use errors::store::{ErrorStore, PackOutcome, PackingLimits, QueueEntry};
use local::demo;
use shared::app::{Deadline, Operation};
use shared::projects::project::{Project, ProjectId};
use shared::timestamp::Timestamp;
use tests::app::{Item, PROJECT, TestApp};
use tests::call::{Call, Reply};
use tests::errors::{SentEvent, project};

const TABLE: &str = "errors";
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Limits that pack without waiting for a minimum of rows.
const EVERYTHING: PackingLimits = PackingLimits {
    rows: 20_000,
    bytes: 4_000_000,
    waits: false,
    compaction: CompactionLimits {
        events: 1_000_000,
        bytes: 8_000_000,
        values: 32_000_000,
        fan_in: 16,
    },
};

/// The paths of ingest-error-events.
const ENVELOPE: &str = "/api/{ingestId}/envelope/";
const STORE: &str = "/api/{ingestId}/store/";
const LIST: &Operation = &list_errors::OPERATION;
const GET: &Operation = &get_error::OPERATION;
const UPDATE: &Operation = &::update_error::OPERATION;
const LIST_EVENTS: &Operation = &list_error_events::OPERATION;
const QUERY: &Operation = &::query_error_timeseries::OPERATION;
const QUERY_ERRORS: &Operation = &::query_errors::OPERATION;
const BREAKDOWN: &Operation = &::breakdown_errors::OPERATION;
const CATEGORIES: &Operation = &list_error_categories::OPERATION;

/// A test app whose project receives events.
struct Tracker {
    test: TestApp,
    project: Project,
}

/// Returns the runs of a manifest.
fn runs_of(manifest: &Item) -> Vec<Run> {
    let run = |(name, run): (&String, &AttributeValue)| {
        let id = RunId::parse(name.strip_prefix("r_")?).unwrap();
        Some(Run::from_bytes(id, run.as_b().unwrap().as_ref()).unwrap())
    };
    manifest.iter().filter_map(run).collect()
}

impl Tracker {
    async fn start() -> Self {
        let test = TestApp::start().await;
        let project = project(&test.patient_store(), test.project_id).await;
        Self { test, project }
    }

    /// Creates another project in the same organization.
    async fn other_project(&self, slug: &str) -> Project {
        let store = self.test.patient_store();
        let id = demo::ensure_project(&store, slug, slug).await.unwrap();
        project(&store, id).await
    }

    fn now(&self) -> Timestamp {
        self.test.app.clock.now()
    }

    fn ago(&self, time: Duration) -> Timestamp {
        self.now().minus(time)
    }

    /// Delivers an event to a project, in the form of official SDKs.
    async fn deliver_to(&self, project: &Project, event: &SentEvent) -> Reply {
        envelope(project, event).send(&self.test.app).await
    }

    /// Delivers an event to the tracker's project, and expects 200.
    async fn deliver(&self, event: &SentEvent) {
        let reply = self.deliver_to(&self.project, event).await;
        assert_eq!((reply.status, &reply.body), (200, &json!({ "id": event.id })));
    }

    /// Delivers events, four at a time, and expects 200 for each.
    async fn deliver_all(&self, events: &[SentEvent]) {
        for events in events.chunks(4) {
            join_all(events.iter().map(|event| self.deliver(event))).await;
        }
    }

    /// Runs pack-error-log once, as the schedule does.
    async fn run_schedule(&self) {
        let deadline = Deadline::after(Duration::from_mins(1));
        (pack_error_log::JOB.run)(&self.test.app, deadline).await.unwrap();
    }

    /// Packs all rows of the project, with a clock two minutes ahead. Returns the number of pack
    /// steps.
    async fn pack(&self) -> usize {
        self.pack_within(&EVERYTHING).await
    }

    async fn pack_within(&self, limits: &PackingLimits) -> usize {
        let mut steps = 0;
        loop {
            match self.pack_step(self.project.id, limits, self.now().plus(2 * MINUTE)).await {
                PackOutcome::Packed { has_more, .. } => {
                    steps += 1;
                    if !has_more {
                        return steps;
                    }
                }
                PackOutcome::Left(_) => return steps,
                PackOutcome::Lost => {}
                PackOutcome::ProjectGone => panic!("the project is gone"),
            }
        }
    }

    async fn pack_step(
        &self,
        project: ProjectId,
        limits: &PackingLimits,
        now: Timestamp,
    ) -> PackOutcome {
        let app = &self.test.app;
        let new_id = || ErrorId::new(app.ids.new_uuid(app.clock.now()));
        ErrorStore::new(&app.store).pack_step(project, limits, &new_id, now).await.unwrap()
    }

    /// Compacts the project's runs until no compaction is left.
    async fn merge_within(&self, limits: &CompactionLimits) {
        let store = &self.test.app.store;
        while ErrorStore::new(store)
            .compact_step(self.project.id, limits, self.now())
            .await
            .unwrap()
        {}
    }

    /// Returns the manifests' sort keys, and the number of runs in each manifest.
    async fn runs(&self) -> Vec<(String, usize)> {
        let mut manifests = self.items_of(&format!("manifest#{}", self.project.id)).await;
        manifests.sort_by_key(|item| text(item, "sk").to_owned());
        let runs = |item: &Item| item.keys().filter(|name| name.starts_with("r_")).count();
        manifests.iter().map(|item| (text(item, "sk").to_owned(), runs(item))).collect()
    }

    /// Returns the project's queue entry.
    async fn queued(&self) -> Option<QueueEntry> {
        let queue = ErrorStore::new(&self.test.app.store).list_packing_queue().await.unwrap();
        queue.into_iter().find(|entry| entry.project == self.project.id)
    }

    async fn query(&self, body: &Value) -> Reply {
        let call = Call::of(QUERY).key(&self.test.key).json(body);
        call.send_until_response(&self.test.app).await
    }

    /// Sends a query, expects 200, and returns its buckets: start, events, errors.
    async fn buckets(&self, body: &Value) -> Vec<(String, u64, u64)> {
        let reply = self.query(body).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let bucket = |bucket: &Value| {
            let start = bucket["bucketStart"].as_str().unwrap();
            let date = bucket["date"].as_str().unwrap();
            assert!(start.starts_with(date) && date.len() == 10, "{bucket}");
            let count = |name: &str| bucket[name].as_u64().unwrap();
            (start.to_owned(), count("errors"), count("uniqueErrors"))
        };
        reply.body.as_array().unwrap().iter().map(bucket).collect()
    }

    /// Returns the buckets with events. Their starts end at the minute.
    async fn filled(&self, body: &Value) -> Vec<(String, u64, u64)> {
        let buckets = self.buckets(body).await;
        let filled = buckets.into_iter().filter(|(_, events, errors)| events + errors > 0);
        filled.map(|(start, events, errors)| (start[..16].to_owned(), events, errors)).collect()
    }

    /// Returns a query body for the project: from `time` ago until two minutes from now.
    fn since(&self, time: Duration) -> Value {
        let to = self.now().plus(2 * MINUTE).as_millis();
        json!({"projectIds": [PROJECT], "from": self.ago(time).as_millis(), "to": to})
    }

    /// Returns the number of events in the last 31 days that match `more`, further query fields.
    async fn total(&self, more: &Value) -> u64 {
        let mut body = self.since(31 * DAY);
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.buckets(&body).await.iter().map(|(_, events, _)| events).sum()
    }

    /// Returns all errors of the project, in list order.
    async fn errors(&self) -> Vec<Value> {
        self.pages(&self.call(LIST), 100).await.concat()
    }

    /// Returns the only error of the project.
    async fn the_error(&self) -> Value {
        let errors = self.errors().await;
        let [error] = &errors[..] else { panic!("{} errors", errors.len()) };
        error.clone()
    }

    /// Returns the ids of all events of an error, latest first.
    async fn event_ids(&self, error: &Value) -> Vec<String> {
        let pages = self.pages(&self.call_for(LIST_EVENTS, error), 100).await;
        column(&pages.concat(), "eventId")
    }

    fn call(&self, operation: &'static Operation) -> Call {
        self.test.call(operation)
    }

    /// Returns a call for one error.
    fn call_for(&self, operation: &'static Operation, error: &Value) -> Call {
        self.call(operation).parameter("errorId", error["errorId"].as_str().unwrap())
    }

    async fn get(&self, error: &Value) -> Reply {
        let reply = self.call_for(GET, error).send(&self.test.app).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply
    }

    async fn set_status(&self, error: &Value, status: &str) -> Reply {
        let body = json!({ "status": status });
        let reply = self.call_for(UPDATE, error).json(&body).send(&self.test.app).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply
    }

    /// Returns all pages of a list.
    async fn pages(&self, call: &Call, limit: usize) -> Vec<Vec<Value>> {
        self.test.pages(call, limit).await
    }

    /// Returns all items of the table whose partition key starts with `prefix`.
    async fn items_of(&self, prefix: &str) -> Vec<Item> {
        let items = self.test.items(TABLE).await;
        items.into_iter().filter(|item| text(item, "pk").starts_with(prefix)).collect()
    }

    /// Returns all items of a partition of the table.
    async fn items_of_partition(&self, pk: &str) -> Vec<Item> {
        let table = format!("{}{TABLE}", local::environment::table_prefix());
        let query = self.test.client.query().table_name(table).consistent_read(true);
        let query = query.key_condition_expression("pk = :pk");
        let query = query.expression_attribute_values(":pk", AttributeValue::S(pk.to_owned()));
        let mut items = query.into_paginator().items().send();
        let mut found = Vec::new();
        while let Some(item) = items.next().await {
            found.push(item.unwrap());
        }
        found
    }

    /// Sets an attribute of an item directly in the table.
    async fn tamper(&self, item: &Item, attribute: &str, value: AttributeValue) {
        let key = [("pk", text(item, "pk")), ("sk", text(item, "sk"))];
        self.test.tamper(TABLE, key, attribute, value).await;
    }

    /// Puts an item directly into the table.
    async fn put(&self, item: &Item) {
        self.test.put(TABLE, [item.clone()]).await;
    }

    /// Deletes an item directly from the table.
    async fn remove(&self, item: &Item) {
        self.test.remove(TABLE, ["pk", "sk"].map(|name| (name, text(item, name)))).await;
    }
}

/// Returns the delivery of an event, in the form of official SDKs.
fn envelope(project: &Project, event: &SentEvent) -> Call {
    delivery(project, ENVELOPE).bytes(event.envelope())
}

/// Returns a delivery to a project, without a body.
fn delivery(project: &Project, path: &str) -> Call {
    Call::of(&::ingest_error_events::OPERATION)
        .path(path)
        .parameter("ingestId", project.ingest_id)
        .query("sentry_key", project.public_key)
}

/// Returns a field of each item, in list order.
fn column(items: &[Value], field: &str) -> Vec<String> {
    items.iter().map(|item| item[field].as_str().unwrap().to_owned()).collect()
}

fn text<'i>(item: &'i Item, attribute: &str) -> &'i str {
    item[attribute].as_s().unwrap()
}

fn number(value: i64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

fn etag(reply: &Reply) -> &str {
    reply.headers["etag"].to_str().unwrap()
}
