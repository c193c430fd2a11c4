//! Stores events and errors in the tables.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use futures_util::stream::{self, StreamExt, TryStreamExt};

use errors::grouping::Fingerprint;
use errors::log::manifest::{CompactionLimits, Run, RunId};
use errors::log::row::{EventRow, encode_attributes};
use errors::store::{ErrorStore, SeenEvent};
use errors::{ErrorDescription, ErrorId};
use local::environment;
use shared::app::Ids;
use shared::dynamodb::Store;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::data_set::ProjectDay;
use crate::Result;

/// The number of runs after which runs are compacted, for a packer without idle time.
const RUNS_OF_A_COMPACTION: usize = 16;
/// The number of puts of one request.
const PUTS: usize = 25;
/// The number of concurrent requests.
const AT_ONCE: usize = 4;

/// Stores events as packing and compaction would leave them at `now`: one run for each part of a
/// day. Returns the number of events.
pub(super) async fn put_runs(
    store: &Store,
    project: ProjectId,
    parts: impl Iterator<Item = ProjectDay>,
    now: Timestamp,
) -> Result<usize> {
    let (store, limits) = (ErrorStore::new(store), CompactionLimits::default());
    // A check an hour after a compaction deletes the replaced runs.
    let earlier = now.minus(Duration::from_hours(1));
    let mut events = 0;
    for (number, ProjectDay { day, rows }) in (1_usize..).zip(parts) {
        store.backfill_events(project, day, &rows).await?;
        events += rows.len();
        if number.is_multiple_of(RUNS_OF_A_COMPACTION) {
            store.compact_step(project, &limits, earlier).await?;
        }
    }
    for check in [earlier, now] {
        while store.compact_step(project, &limits, check).await? {}
    }
    Ok(events)
}

/// Puts rows received at `received` directly into the log. Delivering so many events would take too
/// long.
pub(super) async fn put_rows(
    client: &Client,
    project: ProjectId,
    rows: &[EventRow],
    received: Timestamp,
) -> Result<()> {
    let since_year_0 = received.as_millis() - Timestamp::MIN_MILLIS;
    let expires_at = received.plus(Duration::from_hours(24 * 90)).as_seconds();
    let number = |value: i64| AttributeValue::N(value.to_string());
    let bytes = |bytes: &[u8]| AttributeValue::B(Blob::new(bytes));
    let requests = rows.iter().enumerate().map(|(index, row)| {
        let put = PutRequest::builder()
            .item("pk", AttributeValue::S(format!("log#{project}#00")))
            .item("sk", AttributeValue::S(format!("{since_year_0:015}#{index:032x}")))
            .item("occurredAt", number(row.occurred_at.as_millis()))
            .item("fingerprint", bytes(&row.fingerprint.0))
            .item("attributes", bytes(&encode_attributes(&row.attributes)))
            .item("expiresAt", number(expires_at));
        Ok(WriteRequest::builder().put_request(put.build()?).build())
    });
    let requests: Vec<WriteRequest> = requests.collect::<Result<_>>()?;
    let puts = requests.chunks(PUTS).map(|requests| async {
        let write = client.batch_write_item().request_items(table(), requests.to_vec());
        let left = write.send().await?.unprocessed_items.unwrap_or_default();
        if left.is_empty() { Ok(()) } else { Err("DynamoDB left rows unprocessed".into()) }
    });
    stream::iter(puts).buffer_unordered(AT_ONCE).try_collect().await
}

/// Returns the size of a project's runs in bytes, from its manifests.
pub(super) async fn bytes_of_runs(client: &Client, project: ProjectId) -> Result<u64> {
    let query = client.query().table_name(table()).consistent_read(true);
    let query = query.key_condition_expression("pk = :pk");
    let pk = AttributeValue::S(format!("manifest#{project}"));
    let mut manifests =
        query.expression_attribute_values(":pk", pk).into_paginator().items().send();
    let mut bytes = 0;
    while let Some(manifest) = manifests.next().await {
        for (name, run) in &manifest? {
            let Some(id) = name.strip_prefix("r_").and_then(RunId::parse) else { continue };
            let run = run.as_b().map_err(|_| "a run is no bytes")?;
            bytes += Run::from_bytes(id, run.as_ref())?.bytes;
        }
    }
    Ok(bytes)
}

/// Creates the errors of fingerprints.
pub(super) async fn create_errors(
    store: &Store,
    project: ProjectId,
    fingerprints: BTreeSet<Fingerprint>,
    at: Timestamp,
) -> Result<Vec<(Fingerprint, ErrorId)>> {
    let created = fingerprints.into_iter().map(|fingerprint| async move {
        let message = format!("Cannot read properties of undefined (reading 'item-{fingerprint}')");
        let description = ErrorDescription {
            fingerprint,
            title: format!("TypeError: {message}"),
            error_type: "TypeError".to_owned(),
            message,
            culprit: "app/checkout/summary in renderLineItems".to_owned(),
        };
        let seen = SeenEvent {
            occurred_at: at,
            received_at: at,
            is_packed: true,
            release_seen: None,
            now: at,
        };
        let new = ErrorId::new(Ids::Random.new_uuid(at));
        ErrorStore::new(store).see_error(project, None, &description, &seen, new).await?;
        Ok((fingerprint, new))
    });
    stream::iter(created).buffer_unordered(AT_ONCE).try_collect().await
}

fn table() -> String {
    format!("{}errors", environment::table_prefix())
}
