//! Taking what happened out of the outbox: into a step of a feed, and into batches of events.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `shard#SHARD` | `events#SCENE#ID` | up to ten happenings that EventBridge is to be told of |
//! | `leases` | shard | who works on a shard, and until when |

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, item_at, key, n, s, sort_key_at_end};
use shared::dynamodb::request::IntoAction;
use shared::projects::project::Organization;
use shared::timestamp::Timestamp;

use super::feed::write_step;
use super::{NotificationStore, TABLE};
use crate::domain_event::DomainEvent;
use crate::feed::FeedEntry;
use crate::store::outbox::{
    OUTBOX, SHARDS, numbered_shard_pk, outbox_key, read_domain_event, scene_pk, write_domain_event,
};

/// How many happenings are taken at a time: with a step, a head and eight batches they are 90 actions of
/// the 100 that a transaction takes.
pub const TAKEN_AT_ONCE: usize = 80;
/// How many events EventBridge takes at a time.
pub const EVENTS_AT_ONCE: usize = 10;
/// For how long a shard is left to who leased it, if it is not leased again.
pub const LEASE: Duration = Duration::from_secs(20);

pub(super) const EVENTS: &str = "events#";
const LEASES: &str = "leases";

/// A part of what is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard(u32);

impl Shard {
    /// All shards.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..SHARDS).map(Self)
    }

    pub(super) fn pk(self) -> String {
        numbered_shard_pk(self.0)
    }
}

/// Where what happened is to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channels {
    /// By mails.
    pub mails: bool,
    /// On EventBridge.
    pub events: bool,
}

/// What is in the outbox of a scene.
#[derive(Debug, Default)]
pub struct OutboxPage {
    /// At most [`TAKEN_AT_ONCE`].
    pub domain_events: Vec<DomainEvent>,
    /// Whether there may be more.
    pub has_more: bool,
}

/// Batches of a shard that were read at once.
#[derive(Debug)]
pub struct BatchPage {
    /// The batches.
    pub batches: Vec<EventBatch>,
    /// Where they end, if more may follow.
    pub last: Option<String>,
}

/// Happenings that EventBridge is to be told of.
#[derive(Debug, Clone, PartialEq)]
pub struct EventBatch {
    /// In which organization they happened.
    pub organization: Organization,
    /// What happened.
    pub domain_events: Vec<DomainEvent>,
    sk: String,
}

impl NotificationStore<'_> {
    /// Whether anything is on its way in a shard. Strongly consistent: what just happened is seen.
    pub async fn is_shard_busy(self, shard: Shard) -> Result<bool, StoreError> {
        let first = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", s(shard.pk()))
            .projection_expression("pk")
            .limit(1);
        Ok(!first.send().await?.items.unwrap_or_default().is_empty())
    }

    /// Takes or renews the lease of a shard. False if another one holds it.
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

    /// Gives up the lease of a shard, so that the next one need not wait for its end.
    pub async fn release_shard(self, shard: Shard, owner: Uuid) -> Result<(), StoreError> {
        let release = self
            .db
            .update(TABLE, key(LEASES, &shard.0.to_string()))
            .condition_expression("leaseOwner = :owner")
            .update_expression("REMOVE leaseOwner, leaseUntil")
            .expression_attribute_values(":owner", s(owner));
        self.db.write_if(release).await.map(drop)
    }

    /// The scenes of which something is in the outbox, as they are written in its keys.
    pub async fn waiting_scenes(self, shard: Shard) -> Result<Vec<String>, StoreError> {
        self.distinct(shard, OUTBOX).await
    }

    /// What the sort keys of a shard that begin with a prefix have next, up to a `#`: each once. One read
    /// for each of them, whatever there is of it. Strongly consistent.
    pub(super) async fn distinct(
        self,
        shard: Shard,
        prefix: &str,
    ) -> Result<Vec<String>, StoreError> {
        let mut found: Vec<String> = Vec::new();
        loop {
            // `~` sorts after all that follows a `#`, and `$` after the `#` itself.
            let after = found.last().map_or(prefix.to_owned(), |last| format!("{prefix}{last}#~"));
            let answer = self
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
            let items = answer.items.unwrap_or_default();
            let Some(item) = items.first() else { return Ok(found) };
            let sk = ItemReader { table: TABLE, item }.text("sk")?;
            let rest = sk.strip_prefix(prefix).unwrap_or_default();
            found.push(rest.split('#').next().unwrap_or_default().to_owned());
        }
    }

    /// Some of what is in the outbox of a scene. Strongly consistent: what was taken is not there. What is
    /// damaged stays there, and is passed over.
    pub async fn waiting_domain_events(
        self,
        shard: Shard,
        scene: &str,
    ) -> Result<OutboxPage, StoreError> {
        let mut start = None;
        let mut waiting = OutboxPage::default();
        loop {
            let answer = self
                .db
                .query(TABLE)
                .consistent_read(true)
                .key_condition_expression("pk = :pk AND begins_with(sk, :scene)")
                .expression_attribute_values(":pk", s(shard.pk()))
                .expression_attribute_values(":scene", s(format!("{OUTBOX}{scene}#")))
                .limit(
                    i32::try_from(TAKEN_AT_ONCE - waiting.domain_events.len()).unwrap_or(i32::MAX),
                )
                .set_exclusive_start_key(start)
                .send()
                .await?;
            let items = answer.items.unwrap_or_default();
            let read: Vec<DomainEvent> = self.db.undamaged(&items, read_domain_event)?;
            waiting.domain_events.extend(read);
            waiting.has_more = answer.last_evaluated_key.is_some();
            if !waiting.has_more || waiting.domain_events.len() >= TAKEN_AT_ONCE {
                return Ok(waiting);
            }
            start = answer.last_evaluated_key;
        }
    }

    /// Takes happenings that belong together out of the outbox, into the feed of an organization and
    /// into batches of events, as far as they are to be told, all of it or nothing. `new_id` names each batch.
    /// False if somebody else took some of them, or wrote to the feed at the same time.
    pub async fn take(
        self,
        told: Option<(&Organization, Channels)>,
        domain_events: &[DomainEvent],
        new_id: impl Fn() -> Uuid,
    ) -> Result<bool, StoreError> {
        let mut actions = Vec::with_capacity(TAKEN_AT_ONCE + EVENTS_AT_ONCE);
        if let Some((organization, Channels { mails: true, .. })) = told {
            let head = self.find_feed_head(organization).await?;
            let next = head.map_or(0, |head| head.last).saturating_add(1);
            let Some(step) = FeedEntry::of(next, domain_events) else { return Ok(true) };
            actions.push(self.lengthen_feed(organization, head, next)?);
            actions.push(self.db.put(TABLE, write_step(organization, &step)).into_action()?);
        }
        if let Some((organization, Channels { events: true, .. })) = told {
            // They are of one kind.
            let told = domain_events.iter().filter(|it| it.kind.detail_type().is_some());
            let told: Vec<DomainEvent> = told.cloned().collect();
            for batch in told.chunks(EVENTS_AT_ONCE) {
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

    /// Some batches of events of a shard, those after a page. Strongly consistent: what was deleted is not sent
    /// again.
    pub async fn event_batches(
        self,
        shard: Shard,
        after: Option<&str>,
        limit: i32,
    ) -> Result<BatchPage, StoreError> {
        let answer = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk AND begins_with(sk, :events)")
            .expression_attribute_values(":pk", s(shard.pk()))
            .expression_attribute_values(":events", s(EVENTS))
            .limit(limit)
            .set_exclusive_start_key(after.map(|after| key(&shard.pk(), after)))
            .send()
            .await?;
        let last = sort_key_at_end(TABLE, answer.last_evaluated_key.as_ref())?;
        let batches = self.db.undamaged(&answer.items.unwrap_or_default(), read_batch)?;
        Ok(BatchPage { batches, last })
    }

    /// Stores what is left of a batch of which EventBridge has the rest, unless somebody else deleted it.
    pub async fn replace_batch_of_events(
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

    /// Deletes a batch that EventBridge has.
    pub async fn delete_batch_of_events(
        self,
        shard: Shard,
        batch: &EventBatch,
    ) -> Result<(), StoreError> {
        self.db.delete_all(TABLE, vec![key(&shard.pk(), &batch.sk)]).await
    }
}

fn write_batch(organization: &Organization, domain_events: &[DomainEvent], id: Uuid) -> Item {
    let scene = domain_events.first().map(|it| &it.scene);
    let (pk, scene) = scene.map_or_else(Default::default, |it| (scene_pk(it), it.to_string()));
    item_at(
        key(&pk, &format!("{EVENTS}{scene}#{id}")),
        [("organization", s(organization)), ("domainEvents", write_domain_events(domain_events))],
    )
}

/// Happenings as an attribute.
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

/// A list of happenings that an attribute holds.
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
