//! What was announced that no write makes happen, in table `notifications`: whoever looks for it finds it
//! again and again, and announces it once.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `announced#SCENE` | `KIND#SUBJECT` | what was last announced of a subject |

use std::ops::Range;
use std::time::Duration;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, key, n, s};
use shared::dynamodb::request::IntoAction;
use shared::timestamp::Timestamp;

use super::NotificationStore;
use super::outbox::{OUTBOX_TABLE, read_domain_event, write_domain_event};
use crate::domain_event::{DomainEvent, DomainEventKind, Visibility};

/// What partition keys of what was announced begin with.
pub(crate) const ANNOUNCED: &str = "announced#";
/// For how long it is remembered: for longer than anything rests.
const RETENTION: Duration = Duration::from_hours(90 * 24);

impl NotificationStore<'_> {
    /// Announces happenings of one kind in one scene, all of them or none: none if the first of them was
    /// announced at its occasion, or at one less than `rest` before that. Answers whether they were.
    pub async fn announce_once(
        self,
        domain_events: &[DomainEvent],
        rest: u64,
    ) -> Result<bool, StoreError> {
        let Some(first) = domain_events.first() else { return Ok(false) };
        let mut item = announced_key(first);
        item.extend(write_domain_event(first));
        item.insert("expiresAt".to_owned(), n(first.at.plus(RETENTION).as_seconds()));
        let before = first.instance.saturating_sub(rest);
        let put = self
            .db
            .put(OUTBOX_TABLE, item)
            .condition_expression("attribute_not_exists(pk) OR occasion <= :before")
            .expression_attribute_values(":before", n(i64::try_from(before).unwrap_or(i64::MAX)));
        let mut actions = vec![put.into_action()?];
        for domain_event in domain_events {
            actions.push(self.announce(domain_event)?);
        }
        Ok(self.db.commit_all(actions).await?.is_none())
    }

    /// What of a kind was announced in a scene in some time, unless its subject was again since. What somebody
    /// announces at the moment may be missing.
    pub async fn announced_in(
        self,
        scene: &Visibility,
        kind: DomainEventKind,
        time: &Range<Timestamp>,
    ) -> Result<Vec<DomainEvent>, StoreError> {
        let mut items = self
            .db
            .query(OUTBOX_TABLE)
            .key_condition_expression("pk = :pk AND begins_with(sk, :kind)")
            .expression_attribute_values(":pk", s(announced_pk(scene)))
            .expression_attribute_values(":kind", s(format!("{}#", kind.as_str())))
            .into_paginator()
            .items()
            .send();
        let mut found = Vec::new();
        while let Some(item) = items.next().await {
            let item = item?;
            let domain_event = self.db.unless_damaged(&item, read_domain_event(&item))?;
            found.extend(domain_event.filter(|domain_event| time.contains(&domain_event.at)));
        }
        Ok(found)
    }
}

fn announced_pk(scene: &Visibility) -> String {
    format!("{ANNOUNCED}{scene}")
}

fn announced_key(domain_event: &DomainEvent) -> Item {
    let DomainEvent { kind, scene, subject, .. } = domain_event;
    key(&announced_pk(scene), &format!("{}#{subject}", kind.as_str()))
}
