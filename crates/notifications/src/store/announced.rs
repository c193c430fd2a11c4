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
use super::outbox::{OUTBOX_TABLE, read_happening, write_happening};
use crate::happening::{Happening, HappeningKind, Scene};

/// What partition keys of what was announced begin with.
pub(crate) const ANNOUNCED: &str = "announced#";
/// For how long it is remembered: for longer than anything rests.
const KEPT: Duration = Duration::from_hours(90 * 24);

impl NotificationStore<'_> {
    /// Announces happenings of one kind in one scene, all of them or none: none if the first of them was
    /// announced at its occasion, or at one less than `rest` before that. Answers whether they were.
    pub async fn announce_once(
        self,
        happenings: &[Happening],
        rest: u64,
    ) -> Result<bool, StoreError> {
        let Some(first) = happenings.first() else { return Ok(false) };
        let mut item = announced_key(first);
        item.extend(write_happening(first));
        item.insert("expiresAt".to_owned(), n(first.at.plus(KEPT).as_seconds()));
        let before = first.occasion.saturating_sub(rest);
        let put = self
            .db
            .put(OUTBOX_TABLE, item)
            .condition_expression("attribute_not_exists(pk) OR occasion <= :before")
            .expression_attribute_values(":before", n(i64::try_from(before).unwrap_or(i64::MAX)));
        let mut actions = vec![put.into_action()?];
        for happening in happenings {
            actions.push(self.announce(happening)?);
        }
        Ok(self.db.commit_all(actions).await?.is_none())
    }

    /// What of a kind was announced in a scene in some time, unless its subject was again since. What somebody
    /// announces at the moment may be missing.
    pub async fn announced_in(
        self,
        scene: &Scene,
        kind: HappeningKind,
        time: &Range<Timestamp>,
    ) -> Result<Vec<Happening>, StoreError> {
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
            let happening = self.db.unless_damaged(&item, read_happening(&item))?;
            found.extend(happening.filter(|happening| time.contains(&happening.at)));
        }
        Ok(found)
    }
}

fn announced_pk(scene: &Scene) -> String {
    format!("{ANNOUNCED}{scene}")
}

fn announced_key(happening: &Happening) -> Item {
    let Happening { kind, scene, subject, .. } = happening;
    key(&announced_pk(scene), &format!("{}#{subject}", kind.as_str()))
}
