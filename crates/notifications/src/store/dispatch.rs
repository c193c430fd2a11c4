//! Dispatch of domain events from the outbox into feed entries and event batches.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `shard#SHARD` | `events#VISIBILITY#ID` | up to ten domain events for EventBridge |
//! | `leases` | shard | lease of a shard: owner and end |

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, item_at, key, n, s, sort_key_at_end};
use shared::dynamodb::request::IntoAction;
use shared::projects::project::Organization;
use shared::timestamp::Timestamp;

use super::feed::write_entry;
use super::{NotificationStore, TABLE};
use crate::domain_event::DomainEvent;
use crate::feed::FeedEntry;
use crate::store::outbox::{
    OUTBOX, SHARDS, numbered_shard_pk, outbox_key, read_domain_event, visibility_pk,
    write_domain_event,
};

/// Maximum domain events per dispatch. With a feed entry, a feed head and eight batches they need
/// 90 of the 100 actions of a transaction.
pub const OUTBOX_PAGE_SIZE: usize = 80;
/// Maximum events per request to EventBridge.
pub const EVENT_BATCH_SIZE: usize = 10;
/// Duration of a shard's lease.
pub const LEASE: Duration = Duration::from_secs(20);

pub(super) const EVENTS: &str = "events#";
const LEASES: &str = "leases";

/// A shard of the outbox, batches and feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard(u32);

impl Shard {
    /// Returns all shards.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..SHARDS).map(Self)
    }

    pub(super) fn pk(self) -> String {
        numbered_shard_pk(self.0)
    }
}

/// The enabled channels of notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channels {
    /// Emails.
    pub emails: bool,
    /// EventBridge events.
    pub events: bool,
}

/// A page of the outbox of one visibility.
#[derive(Debug, Default)]
pub struct OutboxPage {
    /// At most [`OUTBOX_PAGE_SIZE`] events.
    pub domain_events: Vec<DomainEvent>,
    /// `true` if more can follow.
    pub has_more: bool,
}

/// A page of a shard's event batches.
#[derive(Debug)]
pub struct BatchPage {
    /// The readable batches.
    pub batches: Vec<EventBatch>,
    /// The sort key of the last batch, if more can follow.
    pub last: Option<String>,
}

/// Domain events for one EventBridge request.
#[derive(Debug, Clone, PartialEq)]
pub struct EventBatch {
    /// The organization of the events.
    pub organization: Organization,
    /// The events to publish.
    pub domain_events: Vec<DomainEvent>,
    sk: String,
}

impl NotificationStore<'_> {
    /// Returns `true` if a shard has items. Strongly consistent.
    pub async fn is_shard_busy(self, shard: Shard) -> Result<bool, StoreError> {
        let first = self.db.partition(TABLE, shard.pk()).projection_expression("pk").limit(1);
        Ok(!first.send().await?.items.unwrap_or_default().is_empty())
    }

    /// Acquires or renews the lease of a shard. Returns `false` if another owner holds it.
    pub async fn lease_shard(
        self,
        shard: Shard,
        owner: Uuid,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let lease = self
            .db
            .update(TABLE, key(LEASES, &shard.0.to_string()))
            .condition_expression(
                "attribute_not_exists(leaseUntil) OR leaseUntil < :now OR leaseOwner = :owner",
            )
            .update_expression("SET leaseOwner = :owner, leaseUntil = :until")
            .expression_attribute_values(":owner", s(owner))
            .expression_attribute_values(":now", n(now.as_millis()))
            .expression_attribute_values(":until", n(now.plus(LEASE).as_millis()));
        self.db.write_if(lease).await
    }

    /// Releases the lease of a shard, so that the next invocation need not wait for its end.
    pub async fn release_shard(self, shard: Shard, owner: Uuid) -> Result<(), StoreError> {
        let release = self
            .db
            .update(TABLE, key(LEASES, &shard.0.to_string()))
            .condition_expression("leaseOwner = :owner")
            .update_expression("REMOVE leaseOwner, leaseUntil")
            .expression_attribute_values(":owner", s(owner));
        self.db.write_if(release).await.map(drop)
    }

    /// Returns the visibilities with outbox items, as texts of their keys.
    pub async fn outbox_visibilities(self, shard: Shard) -> Result<Vec<String>, StoreError> {
        self.distinct(shard, OUTBOX).await
    }

    /// Returns the distinct texts between a prefix and the next `#` of a shard's sort keys, with
    /// one read per text. Strongly consistent.
    pub(super) async fn distinct(
        self,
        shard: Shard,
        prefix: &str,
    ) -> Result<Vec<String>, StoreError> {
        let mut found: Vec<String> = Vec::new();
        loop {
            // Skips the keys of `last`: `~` sorts after all characters that can follow a `#`.
            let after = found.last().map_or(prefix.to_owned(), |last| format!("{prefix}{last}#~"));
            let response = self
                .db
                .query(TABLE)
                .consistent_read(true)
                .key_condition_expression("pk = :pk AND sk BETWEEN :after AND :end")
                .expression_attribute_values(":pk", s(shard.pk()))
                .expression_attribute_values(":after", s(after))
                .expression_attribute_values(":end", s(format!("{prefix}~")))
                .projection_expression("sk")
                .limit(1)
                .send()
                .await?;
            let items = response.items.unwrap_or_default();
            let Some(item) = items.first() else { return Ok(found) };
            let sk = ItemReader { table: TABLE, item }.text("sk")?;
            let rest = sk.strip_prefix(prefix).unwrap_or_default();
            found.push(rest.split('#').next().unwrap_or_default().to_owned());
        }
    }

    /// Returns the first page of a visibility's outbox. Strongly consistent: dispatched events are
    /// not returned again. Skips unreadable items, which stay in the outbox.
    pub async fn outbox_page(
        self,
        shard: Shard,
        visibility: &str,
    ) -> Result<OutboxPage, StoreError> {
        let mut start = None;
        let mut page = OutboxPage::default();
        loop {
            let response = self
                .db
                .partition_from(TABLE, shard.pk(), format!("{OUTBOX}{visibility}#"))
                .limit(
                    i32::try_from(OUTBOX_PAGE_SIZE - page.domain_events.len()).unwrap_or(i32::MAX),
                )
                .set_exclusive_start_key(start)
                .send()
                .await?;
            let items = response.items.unwrap_or_default();
            let read: Vec<DomainEvent> = self.db.undamaged(&items, read_domain_event)?;
            page.domain_events.extend(read);
            page.has_more = response.last_evaluated_key.is_some();
            if !page.has_more || page.domain_events.len() >= OUTBOX_PAGE_SIZE {
                return Ok(page);
            }
            start = response.last_evaluated_key;
        }
    }

    /// Moves domain events that can batch from the outbox into a feed and event batches, in one
    /// transaction. Without a target, only removes them. `new_id` returns the id of a batch.
    ///
    /// Returns `false` and moves nothing if a concurrent invocation moved an event or extended the
    /// feed.
    pub async fn dispatch(
        self,
        target: Option<(&Organization, Channels)>,
        domain_events: &[DomainEvent],
        new_id: impl Fn() -> Uuid,
    ) -> Result<bool, StoreError> {
        let mut actions = Vec::with_capacity(OUTBOX_PAGE_SIZE + EVENT_BATCH_SIZE);
        if let Some((organization, Channels { emails: true, .. })) = target {
            let head = self.find_feed_head(organization).await?;
            let next = head.map_or(0, |head| head.last).saturating_add(1);
            let Some(entry) = FeedEntry::of(next, domain_events) else { return Ok(true) };
            actions.push(self.extend_feed(organization, head, next)?);
            actions.push(self.db.put(TABLE, write_entry(organization, &entry)).into_action()?);
        }
        if let Some((organization, Channels { events: true, .. })) = target {
            let published = domain_events.iter().filter(|it| it.kind.detail_type().is_some());
            let published: Vec<DomainEvent> = published.cloned().collect();
            for batch in published.chunks(EVENT_BATCH_SIZE) {
                let item = write_batch(organization, batch, new_id());
                actions.push(self.db.put(TABLE, item).into_action()?);
            }
        }
        for domain_event in domain_events {
            let delete = self.db.delete(TABLE, outbox_key(domain_event));
            actions.push(delete.condition_expression("attribute_exists(pk)").into_action()?);
        }
        Ok(self.db.commit_all(actions).await?.is_none())
    }

    /// Returns a page of a shard's event batches. Strongly consistent: deleted batches are not
    /// published again.
    pub async fn event_batches(
        self,
        shard: Shard,
        after: Option<&str>,
        limit: i32,
    ) -> Result<BatchPage, StoreError> {
        let response = self
            .db
            .partition_from(TABLE, shard.pk(), EVENTS)
            .limit(limit)
            .set_exclusive_start_key(after.map(|after| key(&shard.pk(), after)))
            .send()
            .await?;
        let last = sort_key_at_end(TABLE, response.last_evaluated_key.as_ref())?;
        let batches = self.db.undamaged(&response.items.unwrap_or_default(), read_batch)?;
        Ok(BatchPage { batches, last })
    }

    /// Stores the remaining events of a partially accepted batch, unless the batch was deleted.
    pub async fn replace_event_batch(
        self,
        shard: Shard,
        batch: &EventBatch,
    ) -> Result<(), StoreError> {
        let update = self
            .db
            .update(TABLE, key(&shard.pk(), &batch.sk))
            .condition_expression("attribute_exists(pk)")
            .update_expression("SET domainEvents = :left")
            .expression_attribute_values(":left", write_domain_events(&batch.domain_events));
        self.db.write_if(update).await.map(drop)
    }

    /// Deletes a published batch.
    pub async fn delete_event_batch(
        self,
        shard: Shard,
        batch: &EventBatch,
    ) -> Result<(), StoreError> {
        self.db.delete_all(TABLE, vec![key(&shard.pk(), &batch.sk)]).await
    }
}

fn write_batch(organization: &Organization, domain_events: &[DomainEvent], id: Uuid) -> Item {
    let visibility = domain_events.first().map(|it| &it.visibility);
    let (pk, visibility) =
        visibility.map_or_else(Default::default, |it| (visibility_pk(it), it.to_string()));
    item_at(
        key(&pk, &format!("{EVENTS}{visibility}#{id}")),
        [("organization", s(organization)), ("domainEvents", write_domain_events(domain_events))],
    )
}

/// Returns domain events as an attribute.
pub(super) fn write_domain_events(domain_events: &[DomainEvent]) -> AttributeValue {
    AttributeValue::L(
        domain_events.iter().map(|it| AttributeValue::M(write_domain_event(it))).collect(),
    )
}

fn read_batch(item: &Item) -> Result<EventBatch, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(EventBatch {
        organization: reader.parsed("organization", |text| Organization::parse(text).ok())?,
        domain_events: read_domain_events(item, "domainEvents")?,
        sk: reader.text("sk")?.to_owned(),
    })
}

/// Returns the domain events of an attribute.
pub(super) fn read_domain_events(
    item: &Item,
    attribute: &'static str,
) -> Result<Vec<DomainEvent>, StoreError> {
    let damaged = || ItemReader { table: TABLE, item }.damaged(attribute);
    let Some(AttributeValue::L(list)) = item.get(attribute) else { return Err(damaged()) };
    let read = list.iter().map(|it| match it {
        AttributeValue::M(map) => read_domain_event(map),
        _ => Err(damaged()),
    });
    read.collect()
}
