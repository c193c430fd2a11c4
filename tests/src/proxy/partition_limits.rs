//! A proxy that lets each partition key of a table or an index take no more than DynamoDB says that it
//! takes, and refuses the rest as DynamoDB does. Partitions are never divided, and what a partition did
//! not use is left to it for a second only: DynamoDB is at least as generous.

use std::collections::HashMap;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Proxy, ProxyResponse, Upstream, refusal, with_unprocessed};
use crate::wire::Request;

/// What a partition takes in a second.
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html>
const WRITE_UNITS: f64 = 1_000.0;
const READ_UNITS: f64 = 3_000.0;

/// Reading or writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Read,
    Write,
}

/// A partition key of a table, or of a global index by its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Partition {
    table_or_index: String,
    key: String,
}

/// What a partition has left.
#[derive(Debug)]
struct Bucket {
    units: f64,
    at: Instant,
}

/// The attributes that tell partitions of a table.
#[derive(Debug)]
struct Keys {
    /// The table's.
    hash: String,
    /// Of each global index its name, its hash attribute, and its range attribute.
    indexes: Vec<(String, String, Option<String>)>,
}

/// The proxy.
pub struct PartitionLimits {
    upstream: Upstream,
    tables: HashMap<String, Keys>,
    /// Which part of DynamoDB's limits partitions have.
    share: f64,
    /// How long each call takes besides.
    latency: Duration,
    buckets: StdMutex<HashMap<(Kind, Partition), Bucket>>,
    refused: AtomicUsize,
}

impl PartitionLimits {
    /// A proxy in front of an engine, whose partitions take a share of what DynamoDB's take, and whose
    /// calls take this long at least.
    pub fn before(engine: &str, share: f64, latency: Duration) -> Self {
        let tables = crate::tables().into_iter().map(|table| (table.name, keys(&table.create)));
        Self {
            upstream: Upstream::new(engine),
            tables: tables.collect(),
            share,
            latency,
            buckets: StdMutex::default(),
            refused: AtomicUsize::new(0),
        }
    }

    /// How often something was refused since this was last asked.
    pub fn take_refused(&self) -> usize {
        self.refused.swap(0, Ordering::Relaxed)
    }

    /// Whether a partition takes anything now.
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
        let mut buckets = self.buckets.lock().expect("nobody panicked");
        let now = Instant::now();
        let bucket = buckets
            .entry((kind, partition.clone()))
            .or_insert_with(|| Bucket { units: a_second, at: now });
        let gained = now.duration_since(bucket.at).as_secs_f64() * a_second;
        bucket.units = (bucket.units + gained).min(a_second);
        bucket.at = now;
        work(bucket)
    }

    fn refuse(&self, name: &str, members: Value) -> ProxyResponse {
        self.refused.fetch_add(1, Ordering::Relaxed);
        refusal(name, members)
    }

    /// The partition of an item, or of a key, in its table.
    fn partition(&self, table: &str, item: &Value) -> Partition {
        let hash = self.tables.get(table).map(|keys| &*keys.hash).unwrap_or_default();
        Partition { table_or_index: table.to_owned(), key: item[hash].to_string() }
    }

    /// The partitions of indexes that an item is in.
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

    /// A read of one item, or of many of one partition.
    async fn read(&self, request: &Request, mut body: Value) -> ProxyResponse {
        let table = body["TableName"].as_str().expect("a read is of a table").to_owned();
        let partition = match &body["KeyConditionExpression"] {
            Value::String(condition) => {
                // The first condition is that on the hash attribute.
                let name = condition.split_once("= :").map(|(_, rest)| rest);
                let name = name.and_then(|rest| rest.split_whitespace().next());
                let value = &body["ExpressionAttributeValues"]
                    [format!(":{}", name.expect("a query is of one partition"))];
                let index = body["IndexName"].as_str().map(|index| format!("{table}/{index}"));
                Partition { table_or_index: index.unwrap_or(table), key: value.to_string() }
            }
            _ => self.partition(&table, &body["Key"]),
        };
        if !self.takes(Kind::Read, &partition) {
            return self.refuse("ProvisionedThroughputExceededException", json!({}));
        }
        body["ReturnConsumedCapacity"] = json!("TOTAL");
        let (status, answer) = self.upstream.forward_as(request, &body).await;
        self.charge(Kind::Read, &partition, consumed(&answer));
        (status, answer)
    }

    /// A read of many items: those whose partitions take no more are left unprocessed.
    async fn read_batch(&self, request: &Request, mut body: Value) -> ProxyResponse {
        let mut unprocessed = json!({});
        let mut partitions = Vec::new();
        let tables = body["RequestItems"].as_object_mut().expect("a batch has tables");
        for (table, wanted) in tables.iter_mut() {
            let keys = wanted["Keys"].as_array().cloned().unwrap_or_default();
            let (taken, left): (Vec<Value>, Vec<Value>) = keys
                .into_iter()
                .partition(|key| self.takes(Kind::Read, &self.partition(table, key)));
            partitions.extend(taken.iter().map(|key| self.partition(table, key)));
            if !left.is_empty() {
                self.refused.fetch_add(left.len(), Ordering::Relaxed);
                unprocessed[table] = wanted.clone();
                unprocessed[table]["Keys"] = json!(left);
            }
            wanted["Keys"] = json!(taken);
        }
        tables.retain(|_, wanted| wanted["Keys"].as_array().is_some_and(|keys| !keys.is_empty()));
        if partitions.is_empty() {
            return self.refuse("ProvisionedThroughputExceededException", json!({}));
        }
        body["ReturnConsumedCapacity"] = json!("TOTAL");
        let (status, answer) = self.upstream.forward_as(request, &body).await;
        self.charge_evenly(Kind::Read, &partitions, consumed(&answer));
        (status, with_unprocessed(answer, "UnprocessedKeys", &unprocessed))
    }

    /// A write of one item.
    async fn write(&self, request: &Request, mut body: Value) -> ProxyResponse {
        let table = body["TableName"].as_str().expect("a write is of a table").to_owned();
        let item = if body["Item"].is_null() { &body["Key"] } else { &body["Item"] };
        let mut partitions = self.index_partitions(&table, item);
        partitions.push(self.partition(&table, item));
        if !partitions.iter().all(|partition| self.takes(Kind::Write, partition)) {
            return self.refuse("ThrottlingException", json!({}));
        }
        body["ReturnConsumedCapacity"] = json!("TOTAL");
        let (status, answer) = self.upstream.forward_as(request, &body).await;
        // A condition that fails costs as much.
        self.charge_evenly(Kind::Write, &partitions, consumed(&answer).max(1.0));
        (status, answer)
    }

    /// Writes of many items, each for itself.
    async fn write_batch(&self, request: &Request, mut body: Value) -> ProxyResponse {
        let mut unprocessed = json!({});
        let mut partitions = Vec::new();
        let tables = body["RequestItems"].as_object_mut().expect("a batch has tables");
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
                self.refused.fetch_add(left.len(), Ordering::Relaxed);
                unprocessed[table] = json!(left);
            }
            *writes = json!(taken);
        }
        tables.retain(|_, writes| writes.as_array().is_some_and(|writes| !writes.is_empty()));
        if partitions.is_empty() {
            return self.refuse("ProvisionedThroughputExceededException", json!({}));
        }
        body["ReturnConsumedCapacity"] = json!("TOTAL");
        let (status, answer) = self.upstream.forward_as(request, &body).await;
        self.charge_evenly(Kind::Write, &partitions, consumed(&answer));
        (status, with_unprocessed(answer, "UnprocessedItems", &unprocessed))
    }

    fn charge_evenly(&self, kind: Kind, partitions: &[Partition], units: f64) {
        #[allow(clippy::cast_precision_loss)] // There are at most a hundred.
        let each = units / partitions.len().max(1) as f64;
        for partition in partitions {
            self.charge(kind, partition, each);
        }
    }

    /// A transaction: if a partition of one of its items takes no more, it is cancelled, and that item's
    /// reason says so. What is cancelled costs the other items half of what it costs to carry it out.
    async fn transact(&self, request: &Request, body: &Value) -> ProxyResponse {
        let actions = body["TransactItems"].as_array().expect("a transaction has actions");
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
        self.refuse("TransactionCanceledException", members)
    }

    /// What an action of a transaction costs each partition.
    async fn costs_of_action(&self, request: &Request, action: &Value) -> Vec<(Partition, f64)> {
        let action = action.as_object().and_then(|action| action.values().next());
        let action = action.expect("an action has a kind");
        let table = action["TableName"].as_str().expect("an action is of a table");
        let item = if action["Item"].is_null() {
            let get = json!({"TableName": table, "Key": action["Key"], "ConsistentRead": true});
            let get_request =
                Request { headers: with_target(&request.headers, "GetItem"), ..request.clone() };
            let (_, answer) = self.upstream.forward_as(&get_request, &get).await;
            let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
            if answer["Item"].is_null() { action["Key"].clone() } else { answer["Item"].clone() }
        } else {
            action["Item"].clone()
        };
        // It grows by what it is given.
        let more = action.get("ExpressionAttributeValues").map_or(0, size_of_item);
        let units = kilobytes(size_of_item(&item) + more);
        let mut costs = vec![(self.partition(table, &item), 2.0 * units)];
        costs.extend(self.index_partitions(table, &item).into_iter().map(|index| (index, units)));
        costs
    }
}

impl Proxy for PartitionLimits {
    async fn answer(&self, request: Request) -> ProxyResponse {
        tokio::time::sleep(self.latency).await;
        let body: Value = serde_json::from_slice(&request.body).expect("a request is JSON");
        match &*request.target {
            "GetItem" | "Query" => self.read(&request, body).await,
            "BatchGetItem" => self.read_batch(&request, body).await,
            "PutItem" | "UpdateItem" | "DeleteItem" => self.write(&request, body).await,
            "BatchWriteItem" => self.write_batch(&request, body).await,
            "TransactWriteItems" => self.transact(&request, &body).await,
            other => panic!("nobody knows what {other} takes of a partition"),
        }
    }
}

fn keys(create: &Value) -> Keys {
    let attribute = |schema: &Value, kind: &str| {
        let keys = schema.as_array()?.iter();
        let mut of_kind = keys.filter(|key| key["KeyType"] == kind);
        of_kind.next()?["AttributeName"].as_str().map(str::to_owned)
    };
    let hash = |schema: &Value| attribute(schema, "HASH").expect("a key has a hash attribute");
    let index = |index: &Value| {
        let name = index["IndexName"].as_str().expect("an index has a name").to_owned();
        let schema = &index["KeySchema"];
        (name, hash(schema), attribute(schema, "RANGE"))
    };
    let indexes = create["GlobalSecondaryIndexes"].as_array();
    let indexes = indexes.into_iter().flatten().map(index).collect();
    Keys { hash: hash(&create["KeySchema"]), indexes }
}

/// The headers of a request with another target.
fn with_target(headers: &[(String, String)], target: &str) -> Vec<(String, String)> {
    let change = |(name, value): &(String, String)| match name.as_str() {
        "x-amz-target" => (name.clone(), format!("DynamoDB_20120810.{target}")),
        _ => (name.clone(), value.clone()),
    };
    headers.iter().map(change).collect()
}

/// The capacity units that an answer tells of: one figure, or one for each table.
fn consumed(answer: &[u8]) -> f64 {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let units = |capacity: &Value| capacity["CapacityUnits"].as_f64().unwrap_or_default();
    match &answer["ConsumedCapacity"] {
        Value::Array(tables) => tables.iter().map(units).sum(),
        capacity => units(capacity),
    }
}

/// The bytes of an item, as DynamoDB counts them.
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
