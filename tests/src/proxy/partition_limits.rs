//! A proxy that limits each partition key of a table or index to DynamoDB's documented throughput,
//! and throttles like DynamoDB. Partitions are never split, and unused capacity lasts only one
//! second. DynamoDB is at least as generous.

use std::collections::HashMap;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Proxy, ProxyResponse, Upstream, rejection, with_unprocessed};
use crate::wire::Request;

/// Capacity units of a partition per second.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html>
const WRITE_UNITS: f64 = 1_000.0;
const READ_UNITS: f64 = 3_000.0;

/// The kind of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Read,
    Write,
}

/// A partition key of a table, or of a global index with its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Partition {
    table_or_index: String,
    key: String,
}

/// The remaining capacity of a partition.
#[derive(Debug)]
struct Bucket {
    units: f64,
    at: Instant,
}

/// The attributes that identify partitions of a table.
#[derive(Debug)]
struct Keys {
    /// Hash attribute of the table.
    hash: String,
    /// Name, hash attribute and range attribute of each global index.
    indexes: Vec<(String, String, Option<String>)>,
}

/// The proxy.
pub struct PartitionLimits {
    upstream: Upstream,
    tables: HashMap<String, Keys>,
    /// Share of DynamoDB's limits.
    share: f64,
    /// Additional latency of each call.
    latency: Duration,
    buckets: StdMutex<HashMap<(Kind, Partition), Bucket>>,
    throttled: AtomicUsize,
}

impl PartitionLimits {
    /// Returns a proxy in front of an engine. Partitions have a share of DynamoDB's limits, and
    /// calls take at least `latency`.
    pub fn before(engine: &str, share: f64, latency: Duration) -> Self {
        let tables = crate::tables().into_iter().map(|table| (table.name, keys(&table.create)));
        Self {
            upstream: Upstream::new(engine),
            tables: tables.collect(),
            share,
            latency,
            buckets: StdMutex::default(),
            throttled: AtomicUsize::new(0),
        }
    }

    /// Returns the number of throttled requests since the last call.
    pub fn take_refused(&self) -> usize {
        self.throttled.swap(0, Ordering::Relaxed)
    }

    /// `true` if the partition has capacity now.
    fn takes(&self, kind: Kind, partition: &Partition) -> bool {
        self.with_bucket(kind, partition, |bucket| bucket.units > 0.0)
    }

    fn charge(&self, kind: Kind, partition: &Partition, units: f64) {
        self.with_bucket(kind, partition, |bucket| bucket.units -= units);
    }

    fn with_bucket<T>(
        &self,
        kind: Kind,
        partition: &Partition,
        work: impl FnOnce(&mut Bucket) -> T,
    ) -> T {
        let a_second = match kind {
            Kind::Read => READ_UNITS * self.share,
            Kind::Write => WRITE_UNITS * self.share,
        };
        let mut buckets = self.buckets.lock().expect("not poisoned");
        let now = Instant::now();
        let bucket = buckets
            .entry((kind, partition.clone()))
            .or_insert_with(|| Bucket { units: a_second, at: now });
        let gained = now.duration_since(bucket.at).as_secs_f64() * a_second;
        bucket.units = (bucket.units + gained).min(a_second);
        bucket.at = now;
        work(bucket)
    }

    fn throttle(&self, name: &str, members: Value) -> ProxyResponse {
        self.throttled.fetch_add(1, Ordering::Relaxed);
        rejection(name, members)
    }

    /// Returns the partition of an item or key in its table.
    fn partition(&self, table: &str, item: &Value) -> Partition {
        let hash = self.tables.get(table).map(|keys| &*keys.hash).unwrap_or_default();
        Partition { table_or_index: table.to_owned(), key: item[hash].to_string() }
    }

    /// Returns the index partitions of an item.
    fn index_partitions(&self, table: &str, item: &Value) -> Vec<Partition> {
        let indexes = self.tables.get(table).map(|keys| keys.indexes.iter());
        let has = |(_, hash, range): &&(String, String, Option<String>)| {
            !item[hash].is_null() && range.as_ref().is_none_or(|range| !item[range].is_null())
        };
        let partition = |(name, hash, _): &(String, String, Option<String>)| Partition {
            table_or_index: format!("{table}/{name}"),
            key: item[hash].to_string(),
        };
        indexes.into_iter().flatten().filter(has).map(partition).collect()
    }

    /// Reads one item, or several of one partition.
    async fn read(&self, request: &Request, mut body: Value) -> ProxyResponse {
        let table = body["TableName"].as_str().expect("the read names a table").to_owned();
        let partition = match &body["KeyConditionExpression"] {
            Value::String(condition) => {
                // The first condition is on the hash attribute.
                let name = condition.split_once("= :").map(|(_, rest)| rest);
                let name = name.and_then(|rest| rest.split_whitespace().next());
                let value = &body["ExpressionAttributeValues"]
                    [format!(":{}", name.expect("the query names a partition"))];
                let index = body["IndexName"].as_str().map(|index| format!("{table}/{index}"));
                Partition { table_or_index: index.unwrap_or(table), key: value.to_string() }
            }
            _ => self.partition(&table, &body["Key"]),
        };
        if !self.takes(Kind::Read, &partition) {
            return self.throttle("ProvisionedThroughputExceededException", json!({}));
        }
        body["ReturnConsumedCapacity"] = json!("TOTAL");
        let (status, response) = self.upstream.forward_as(request, &body).await;
        self.charge(Kind::Read, &partition, consumed(&response));
        (status, response)
    }

    /// Reads a batch. Items of throttled partitions stay unprocessed.
    async fn read_batch(&self, request: &Request, mut body: Value) -> ProxyResponse {
        let mut unprocessed = json!({});
        let mut partitions = Vec::new();
        let tables = body["RequestItems"].as_object_mut().expect("the batch has tables");
        for (table, wanted) in tables.iter_mut() {
            let keys = wanted["Keys"].as_array().cloned().unwrap_or_default();
            let (taken, left): (Vec<Value>, Vec<Value>) = keys
                .into_iter()
                .partition(|key| self.takes(Kind::Read, &self.partition(table, key)));
            partitions.extend(taken.iter().map(|key| self.partition(table, key)));
            if !left.is_empty() {
                self.throttled.fetch_add(left.len(), Ordering::Relaxed);
                unprocessed[table] = wanted.clone();
                unprocessed[table]["Keys"] = json!(left);
            }
            wanted["Keys"] = json!(taken);
        }
        tables.retain(|_, wanted| wanted["Keys"].as_array().is_some_and(|keys| !keys.is_empty()));
        if partitions.is_empty() {
            return self.throttle("ProvisionedThroughputExceededException", json!({}));
        }
        body["ReturnConsumedCapacity"] = json!("TOTAL");
        let (status, response) = self.upstream.forward_as(request, &body).await;
        self.charge_evenly(Kind::Read, &partitions, consumed(&response));
        (status, with_unprocessed(response, "UnprocessedKeys", &unprocessed))
    }

    /// Writes one item.
    async fn write(&self, request: &Request, mut body: Value) -> ProxyResponse {
        let table = body["TableName"].as_str().expect("the write names a table").to_owned();
        let item = if body["Item"].is_null() { &body["Key"] } else { &body["Item"] };
        let mut partitions = self.index_partitions(&table, item);
        partitions.push(self.partition(&table, item));
        if !partitions.iter().all(|partition| self.takes(Kind::Write, partition)) {
            return self.throttle("ThrottlingException", json!({}));
        }
        body["ReturnConsumedCapacity"] = json!("TOTAL");
        let (status, response) = self.upstream.forward_as(request, &body).await;
        // A failed condition costs the same.
        self.charge_evenly(Kind::Write, &partitions, consumed(&response).max(1.0));
        (status, response)
    }

    /// Writes a batch, item by item.
    async fn write_batch(&self, request: &Request, mut body: Value) -> ProxyResponse {
        let mut unprocessed = json!({});
        let mut partitions = Vec::new();
        let tables = body["RequestItems"].as_object_mut().expect("the batch has tables");
        for (table, writes) in tables.iter_mut() {
            let of = |write: &Value| {
                let put = &write["PutRequest"]["Item"];
                let item = if put.is_null() { &write["DeleteRequest"]["Key"] } else { put };
                self.partition(table, item)
            };
            let all = writes.as_array().cloned().unwrap_or_default();
            let (taken, left): (Vec<Value>, Vec<Value>) =
                all.into_iter().partition(|write| self.takes(Kind::Write, &of(write)));
            partitions.extend(taken.iter().map(of));
            if !left.is_empty() {
                self.throttled.fetch_add(left.len(), Ordering::Relaxed);
                unprocessed[table] = json!(left);
            }
            *writes = json!(taken);
        }
        tables.retain(|_, writes| writes.as_array().is_some_and(|writes| !writes.is_empty()));
        if partitions.is_empty() {
            return self.throttle("ProvisionedThroughputExceededException", json!({}));
        }
        body["ReturnConsumedCapacity"] = json!("TOTAL");
        let (status, response) = self.upstream.forward_as(request, &body).await;
        self.charge_evenly(Kind::Write, &partitions, consumed(&response));
        (status, with_unprocessed(response, "UnprocessedItems", &unprocessed))
    }

    fn charge_evenly(&self, kind: Kind, partitions: &[Partition], units: f64) {
        #[allow(clippy::cast_precision_loss)] // At most a hundred partitions.
        let each = units / partitions.len().max(1) as f64;
        for partition in partitions {
            self.charge(kind, partition, each);
        }
    }

    /// Executes a transaction. If a partition of one of its items is throttled, the transaction is
    /// canceled, and that item has the reason. A canceled transaction costs the other items half of
    /// an executed one.
    async fn transact(&self, request: &Request, body: &Value) -> ProxyResponse {
        let actions = body["TransactItems"].as_array().expect("the transaction has actions");
        let mut costs: Vec<Vec<(Partition, f64)>> = Vec::with_capacity(actions.len());
        for action in actions {
            costs.push(self.costs_of_action(request, action).await);
        }
        let is_taken = |costs: &Vec<(Partition, f64)>| {
            costs.iter().all(|(partition, _)| self.takes(Kind::Write, partition))
        };
        let taken: Vec<bool> = costs.iter().map(is_taken).collect();
        let all_taken = taken.iter().all(|taken| *taken);
        for (costs, taken) in costs.iter().zip(&taken) {
            for (partition, units) in costs.iter().filter(|_| *taken) {
                self.charge(Kind::Write, partition, if all_taken { *units } else { units / 2.0 });
            }
        }
        if all_taken {
            return self.upstream.forward(request).await;
        }
        let reason =
            |taken: &bool| json!({"Code": if *taken { "None" } else { "ThrottlingError" }});
        let reasons: Vec<Value> = taken.iter().map(reason).collect();
        let members = json!({"Message": "Transaction cancelled", "CancellationReasons": reasons});
        self.throttle("TransactionCanceledException", members)
    }

    /// Returns the cost of a transaction's action for each partition.
    async fn costs_of_action(&self, request: &Request, action: &Value) -> Vec<(Partition, f64)> {
        let action = action.as_object().and_then(|action| action.values().next());
        let action = action.expect("the action has a kind");
        let table = action["TableName"].as_str().expect("the action names a table");
        let item = if action["Item"].is_null() {
            let get = json!({"TableName": table, "Key": action["Key"], "ConsistentRead": true});
            let get_request =
                Request { headers: with_target(&request.headers, "GetItem"), ..request.clone() };
            let (_, response) = self.upstream.forward_as(&get_request, &get).await;
            let response: Value = serde_json::from_slice(&response).unwrap_or_default();
            if response["Item"].is_null() {
                action["Key"].clone()
            } else {
                response["Item"].clone()
            }
        } else {
            action["Item"].clone()
        };
        // The update adds its values to the item.
        let more = action.get("ExpressionAttributeValues").map_or(0, size_of_item);
        let units = kilobytes(size_of_item(&item) + more);
        let mut costs = vec![(self.partition(table, &item), 2.0 * units)];
        costs.extend(self.index_partitions(table, &item).into_iter().map(|index| (index, units)));
        costs
    }
}

impl Proxy for PartitionLimits {
    async fn respond(&self, request: Request) -> ProxyResponse {
        tokio::time::sleep(self.latency).await;
        let body: Value = serde_json::from_slice(&request.body).expect("the request is JSON");
        match &*request.target {
            "GetItem" | "Query" => self.read(&request, body).await,
            "BatchGetItem" => self.read_batch(&request, body).await,
            "PutItem" | "UpdateItem" | "DeleteItem" => self.write(&request, body).await,
            "BatchWriteItem" => self.write_batch(&request, body).await,
            "TransactWriteItems" => self.transact(&request, &body).await,
            other => panic!("unknown capacity units of {other}"),
        }
    }
}

fn keys(create: &Value) -> Keys {
    let attribute = |schema: &Value, kind: &str| {
        let keys = schema.as_array()?.iter();
        let mut of_kind = keys.filter(|key| key["KeyType"] == kind);
        of_kind.next()?["AttributeName"].as_str().map(str::to_owned)
    };
    let hash = |schema: &Value| attribute(schema, "HASH").expect("the key has a hash attribute");
    let index = |index: &Value| {
        let name = index["IndexName"].as_str().expect("the index has a name").to_owned();
        let schema = &index["KeySchema"];
        (name, hash(schema), attribute(schema, "RANGE"))
    };
    let indexes = create["GlobalSecondaryIndexes"].as_array();
    let indexes = indexes.into_iter().flatten().map(index).collect();
    Keys { hash: hash(&create["KeySchema"]), indexes }
}

/// Returns the headers of a request with another target.
fn with_target(headers: &[(String, String)], target: &str) -> Vec<(String, String)> {
    let change = |(name, value): &(String, String)| match name.as_str() {
        "x-amz-target" => (name.clone(), format!("DynamoDB_20120810.{target}")),
        _ => (name.clone(), value.clone()),
    };
    headers.iter().map(change).collect()
}

/// Returns the capacity units in a response: one value, or one per table.
fn consumed(response: &[u8]) -> f64 {
    let response: Value = serde_json::from_slice(response).unwrap_or_default();
    let units = |capacity: &Value| capacity["CapacityUnits"].as_f64().unwrap_or_default();
    match &response["ConsumedCapacity"] {
        Value::Array(tables) => tables.iter().map(units).sum(),
        capacity => units(capacity),
    }
}

/// Returns the size of an item in bytes, as DynamoDB counts it.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html>
fn size_of_item(item: &Value) -> usize {
    let attributes = item.as_object().into_iter().flatten();
    attributes.map(|(name, value)| name.len() + size_of_value(value)).sum()
}

fn size_of_value(value: &Value) -> usize {
    let Some((kind, value)) = value.as_object().and_then(|value| value.iter().next()) else {
        return 0;
    };
    let length = value.as_str().map_or(0, str::len);
    match kind.as_str() {
        "S" => length,
        "N" => length.div_ceil(2) + 1,
        "B" => length / 4 * 3,
        "M" => 3 + size_of_item(value),
        "L" => 3 + value.as_array().into_iter().flatten().map(size_of_value).sum::<usize>(),
        "SS" => {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::len).sum()
        }
        _ => 1,
    }
}

fn kilobytes(bytes: usize) -> f64 {
    u32::try_from(bytes.div_ceil(1_000).max(1)).map_or(f64::INFINITY, f64::from)
}
