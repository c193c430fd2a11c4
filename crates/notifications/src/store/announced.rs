//! Announcements of scheduled detection, in table `notifications`. Repeated detections of a spike,
//! a trend or a week are announced once.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `announced#VISIBILITY` | `KIND#SUBJECT` | the last announced domain event of a subject |

use std::ops::Range;
use std::time::Duration;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, count, key, n};
use shared::dynamodb::request::IntoAction;
use shared::timestamp::Timestamp;

use super::NotificationStore;
use super::outbox::{OUTBOX_TABLE, read_domain_event, write_domain_event};
use crate::domain_event::{DomainEvent, DomainEventKind, Visibility};

/// Prefix of announcement partition keys.
pub(crate) const ANNOUNCED: &str = "announced#";
/// Retention of an announcement: longer than the minimum time between two of a subject.
const RETENTION: Duration = Duration::from_hours(90 * 24);

impl NotificationStore<'_> {
    /// Puts domain events with one kind and visibility into the outbox: all, or none. Returns
    /// `false` if the subject of the first event was announced less than `interval` instances
    /// earlier.
    pub async fn announce_once(
        self,
        domain_events: &[DomainEvent],
        interval: u64,
    ) -> Result<bool, StoreError> {
        let Some(first) = domain_events.first() else { return Ok(false) };
        let mut item = announced_key(first);
        item.extend(write_domain_event(first));
        item.insert("expiresAt".to_owned(), n(first.at.plus(RETENTION).as_seconds()));
        let before = first.instance.saturating_sub(interval);
        let put = self
            .db
            .put(OUTBOX_TABLE, item)
            .condition_expression("attribute_not_exists(pk) OR instance <= :before")
            .expression_attribute_values(":before", count(before));
        let mut actions = vec![put.into_action()?];
        for domain_event in domain_events {
            actions.push(self.announce(domain_event)?);
        }
        Ok(self.db.commit_all(actions).await?.is_none())
    }

    /// Returns the announcements of a kind in a time range. Each subject has only its latest
    /// announcement. Eventually consistent.
    pub async fn announced_in(
        self,
        visibility: &Visibility,
        kind: DomainEventKind,
        time: &Range<Timestamp>,
    ) -> Result<Vec<DomainEvent>, StoreError> {
        let prefix = format!("{}#", kind.as_str());
        let query = self.db.partition_from(OUTBOX_TABLE, announced_pk(visibility), prefix);
        let items = self.db.all(query.consistent_read(false)).await?;
        let mut found: Vec<DomainEvent> = self.db.undamaged(&items, read_domain_event)?;
        found.retain(|domain_event| time.contains(&domain_event.at));
        Ok(found)
    }
}

fn announced_pk(visibility: &Visibility) -> String {
    format!("{ANNOUNCED}{visibility}")
}

fn announced_key(domain_event: &DomainEvent) -> Item {
    let DomainEvent { kind, visibility, subject, .. } = domain_event;
    key(&announced_pk(visibility), &format!("{}#{subject}", kind.as_str()))
}
