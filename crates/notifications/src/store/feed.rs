//! Feeds, in table `notifications`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `shard#SHARD` | `feed#ORGANIZATION#head` | how far the feed goes, and how far it was told |
//! | `shard#SHARD` | `feed#ORGANIZATION#step#NUMBER` | what happened |
//! | `shard#SHARD` | `feed#ORGANIZATION#user#USER` | what was sent to a user in the last hour |
//! | `shard#SHARD` | `confirm#ORGANIZATION/USER` | that a user is to be asked for a confirmation |

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, item_at, key, n, s};
use shared::dynamodb::request::IntoAction;
use shared::projects::api_key::UserId;
use shared::projects::project::Organization;
use shared::timestamp::Timestamp;

use super::addresses::{CONFIRMATIONS, UserName, confirmation_key};
use super::dispatch::{Shard, read_domain_events, write_domain_events};
use super::{NotificationStore, TABLE};
use crate::address::UserAddress;
use crate::delivery_state::{BatchWindow, DeliveryState};
use crate::domain_event::DomainEventKind;
use crate::feed::{FeedEntry, FeedHead};
use crate::store::outbox::shard_pk;

const FEEDS: &str = "feed#";

/// How far a run came that had no time for all users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedCheckpoint {
    /// Of which steps its users were to be told: those up to this one.
    pub last: u64,
    /// The last user, by name, of all who were told of them or are not to be.
    pub user: UserId,
}

/// The feed of an organization, and what was sent of it lately.
#[derive(Debug, Clone, Default)]
pub struct Feed {
    /// How far it goes.
    pub head: FeedHead,
    /// How far the last run came, if it had no time for all users.
    pub looked: Option<FeedCheckpoint>,
    /// What is kept of it, the earliest first.
    pub steps: Vec<FeedEntry>,
    /// What was sent, by user.
    pub mailboxes: BTreeMap<String, DeliveryState>,
    /// The users of whom it cannot be read what was sent, since it is damaged.
    pub unreadable: BTreeSet<String>,
}

impl Feed {
    /// Since when something waits at `now` that could have been sent: what nobody was told of yet, and
    /// what was gathered in windows that have ended.
    pub fn waiting_since(&self, now: Timestamp) -> Option<Timestamp> {
        let new = self.steps.iter().filter(|step| step.number > self.head.told);
        let gathered = self.mailboxes.iter().flat_map(|(user, mailbox)| {
            let user = UserId::parse(user).ok();
            let ended = mailbox.windows.iter().filter(move |(_, window)| window.until <= now);
            ended.flat_map(move |(kind, window)| {
                let user = user.clone();
                let is_for_them = move |step: &&FeedEntry| {
                    let concerned = user.as_ref().is_some_and(|user| step.concerns(user));
                    step.number > window.covered && step.kind() == Some(*kind) && concerned
                };
                let steps = self.steps.iter().filter(is_for_them);
                steps.map(|step| step.since.max(window.until))
            })
        });
        new.map(|step| step.since).chain(gathered).min()
    }
}

impl NotificationStore<'_> {
    /// The organizations of a shard whose feeds hold something.
    pub async fn busy_feeds(self, shard: Shard) -> Result<Vec<Organization>, StoreError> {
        let names = self.distinct(shard, FEEDS).await?;
        Ok(names.iter().filter_map(|name| Organization::parse(name).ok()).collect())
    }

    /// The feed of an organization. Strongly consistent: who was told of what must not be forgotten.
    pub async fn find_feed(self, organization: &Organization) -> Result<Feed, StoreError> {
        let mut items = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk AND begins_with(sk, :feed)")
            .expression_attribute_values(":pk", s(shard_pk(organization.as_str())))
            .expression_attribute_values(":feed", s(format!("{FEEDS}{organization}#")))
            .into_paginator()
            .items()
            .send();
        let mut feed = Feed::default();
        while let Some(item) = items.next().await {
            let item = item?;
            let sk = ItemReader { table: TABLE, item: &item }.text("sk")?;
            let mut parts = sk.splitn(4, '#').skip(2);
            match (parts.next(), parts.next()) {
                (Some("head"), None) => {
                    feed.head = read_head(&item)?;
                    let looked = self.db.unless_damaged(&item, read_looked(&item))?.flatten();
                    feed.looked = looked.filter(|looked| looked.last > feed.head.told);
                }
                (Some("step"), Some(_)) => {
                    feed.steps.extend(self.db.unless_damaged(&item, read_step(&item))?);
                }
                (Some("user"), Some(user)) => {
                    // It is not as if nothing had been sent: the same would go out every minute.
                    match self.db.unless_damaged(&item, read_mailbox(&item))? {
                        Some(mailbox) => {
                            feed.mailboxes.insert(user.to_owned(), mailbox);
                        }
                        None => {
                            feed.unreadable.insert(user.to_owned());
                        }
                    }
                }
                _ => self.db.report_damaged(TABLE, &item, "sk"),
            }
        }
        Ok(feed)
    }

    /// How far a feed goes; none if there is nothing in it.
    pub(super) async fn find_feed_head(
        self,
        organization: &Organization,
    ) -> Result<Option<FeedHead>, StoreError> {
        let found = self.db.get(TABLE, feed_key(organization, "head")).await?;
        found.as_ref().map(read_head).transpose()
    }

    /// The action that lets a feed go as far as `last`, if it is as it was read.
    pub(super) fn lengthen_feed(
        self,
        organization: &Organization,
        read: Option<FeedHead>,
        last: u64,
    ) -> Result<TransactWriteItem, StoreError> {
        let update = self
            .db
            .update(TABLE, feed_key(organization, "head"))
            .update_expression("SET #last = :last, told = if_not_exists(told, :none)")
            .expression_attribute_names("#last", "last")
            .expression_attribute_values(":last", count(last))
            .expression_attribute_values(":none", n(0));
        match read {
            None => update.condition_expression("attribute_not_exists(pk)"),
            Some(head) => update
                .condition_expression("#last = :read")
                .expression_attribute_values(":read", count(head.last)),
        }
        .into_action()
    }

    /// Notes what was sent to a user, if nobody noted anything else since it was read. Answers whether it
    /// is stored.
    pub async fn replace_mailbox(
        self,
        name: &UserName,
        mailbox: &DeliveryState,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let place = mailbox_key(name);
        if mailbox.is_idle(now) {
            let delete = self.db.delete(TABLE, place).condition_expression("revision = :read");
            let delete = delete.expression_attribute_values(":read", count(mailbox.revision));
            return if mailbox.revision == 0 { Ok(true) } else { self.db.write_if(delete).await };
        }
        let put = self.db.put(TABLE, write_mailbox(place, mailbox));
        self.db
            .write_if(match mailbox.revision {
                0 => put.condition_expression("attribute_not_exists(pk)"),
                revision => put
                    .condition_expression("revision = :read")
                    .expression_attribute_values(":read", count(revision)),
            })
            .await
    }

    /// Notes that everybody was told of the steps up to `told`, and removes those up to `needless`, which
    /// nobody waits for any more.
    pub async fn tell_feed(
        self,
        organization: &Organization,
        feed: &Feed,
        told: u64,
        needless: u64,
    ) -> Result<(), StoreError> {
        if told != feed.head.told {
            let update = self
                .db
                .update(TABLE, feed_key(organization, "head"))
                .condition_expression("told = :read")
                .update_expression("SET told = :told REMOVE lookedUser, lookedLast")
                .expression_attribute_values(":read", count(feed.head.told))
                .expression_attribute_values(":told", count(told));
            if !self.db.write_if(update).await? {
                return Ok(());
            }
        }
        let needless = feed.steps.iter().filter(|step| step.number <= needless);
        let keys: Vec<Item> = needless.map(|step| step_key(organization, step.number)).collect();
        if keys.is_empty() { Ok(()) } else { self.db.delete_all(TABLE, keys).await }
    }

    /// Notes how far a run came that had no time for all users, or that the next one is to begin with the first
    /// user again; unless everybody was told meanwhile.
    pub async fn note_looked(
        self,
        organization: &Organization,
        told: u64,
        looked: Option<&FeedCheckpoint>,
    ) -> Result<(), StoreError> {
        let update = self
            .db
            .update(TABLE, feed_key(organization, "head"))
            .condition_expression("told = :told")
            .expression_attribute_values(":told", count(told));
        self.db
            .write_if(match looked {
                None => update.update_expression("REMOVE lookedUser, lookedLast"),
                Some(looked) => update
                    .update_expression("SET lookedUser = :user, lookedLast = :last")
                    .expression_attribute_values(":user", s(&looked.user))
                    .expression_attribute_values(":last", count(looked.last)),
            })
            .await
            .map(drop)
    }

    /// Removes what is left of a feed of which everybody was told, if nothing came to it.
    pub async fn end_feed(self, organization: &Organization, last: u64) -> Result<(), StoreError> {
        let end = self
            .db
            .delete(TABLE, feed_key(organization, "head"))
            .condition_expression("#last = :last AND told = :last")
            .expression_attribute_names("#last", "last")
            .expression_attribute_values(":last", count(last));
        self.db.write_if(end).await.map(drop)
    }

    /// Some users of a shard who are to be asked for a confirmation. Strongly consistent.
    pub async fn users_to_ask(self, shard: Shard) -> Result<Vec<UserName>, StoreError> {
        let answer = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk AND begins_with(sk, :confirm)")
            .expression_attribute_values(":pk", s(shard.pk()))
            .expression_attribute_values(":confirm", s(CONFIRMATIONS))
            .send()
            .await?;
        let read = |item: &Item| {
            ItemReader { table: TABLE, item }.parsed("sk", |sk| {
                let (organization, user) = sk.strip_prefix(CONFIRMATIONS)?.split_once('/')?;
                let organization = Organization::parse(organization).ok()?;
                Some(UserName { organization, user: UserId::parse(user).ok()? })
            })
        };
        self.db.undamaged(&answer.items.unwrap_or_default(), read)
    }

    /// Notes where a user gets mail, now that the user was asked for a confirmation. If the address was
    /// changed since it was read, the user is asked again. Answers whether it was not.
    pub async fn finish_asking(
        self,
        name: &UserName,
        address: &UserAddress,
    ) -> Result<bool, StoreError> {
        let asked = self.db.delete(TABLE, confirmation_key(name)).into_action()?;
        Ok(self.db.commit_all(vec![asked, self.put_address(name, address)?]).await?.is_none())
    }

    /// Notes that a user need not be asked for a confirmation, unless the address was changed since it was
    /// read: that may be a request of its own. Answers whether it was not.
    pub async fn forget_asking(
        self,
        name: &UserName,
        read: &UserAddress,
    ) -> Result<bool, StoreError> {
        let asked = self.db.delete(TABLE, confirmation_key(name)).into_action()?;
        Ok(self.db.commit_all(vec![asked, self.check_address(name, read)?]).await?.is_none())
    }
}

fn feed_key(organization: &Organization, of_feed: &str) -> Item {
    key(&shard_pk(organization.as_str()), &format!("{FEEDS}{organization}#{of_feed}"))
}

/// What follows a window at whose end a mail waits for room.
const HELD: &str = "held";

/// Where it is noted what was sent to a user.
pub(super) fn mailbox_key(name: &UserName) -> Item {
    feed_key(&name.organization, &format!("user#{}", name.user))
}

/// A number has as many digits as any, so that it sorts among others.
fn step_key(organization: &Organization, number: u64) -> Item {
    feed_key(organization, &format!("step#{number:020}"))
}

/// A count that only grows, far below what a number may be.
fn count(value: u64) -> AttributeValue {
    n(i64::try_from(value).unwrap_or(i64::MAX))
}

fn read_head(item: &Item) -> Result<FeedHead, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(FeedHead { last: reader.count("last")?, told: reader.count("told")? })
}

fn read_looked(item: &Item) -> Result<Option<FeedCheckpoint>, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let user = reader.optional_parsed("lookedUser", |text| UserId::parse(text).ok())?;
    let Some(user) = user else { return Ok(None) };
    Ok(Some(FeedCheckpoint { last: reader.count("lookedLast")?, user }))
}

pub(super) fn write_step(organization: &Organization, step: &FeedEntry) -> Item {
    item_at(
        step_key(organization, step.number),
        [
            ("count", count(step.count)),
            ("since", n(step.since.as_millis())),
            ("lines", write_domain_events(&step.lines)),
        ],
    )
}

fn read_step(item: &Item) -> Result<FeedEntry, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(FeedEntry {
        number: reader.parsed("sk", |sk| sk.rsplit('#').next()?.parse().ok())?,
        count: reader.count("count")?,
        since: reader.millis("since")?,
        lines: read_domain_events(item, "lines")?,
    })
}

/// Windows are a text of kind, step and end each, and `held` with a time where a mail waits for room since then; as
/// many as there are kinds at most.
fn write_mailbox(place: Item, mailbox: &DeliveryState) -> Item {
    let windows: Vec<String> = mailbox
        .windows
        .iter()
        .map(|(kind, it)| {
            let held = it.held_since.map(|since| format!(" {HELD} {}", since.as_millis()));
            let (covered, until) = (it.covered, it.until.as_millis());
            format!("{} {covered} {until}{}", kind.as_str(), held.unwrap_or_default())
        })
        .collect();
    let sent: Vec<String> = mailbox.sent.iter().map(|at| at.as_millis().to_string()).collect();
    item_at(
        place,
        [
            ("revision", count(mailbox.revision.saturating_add(1))),
            ("windows", s(windows.join(","))),
            ("sent", s(sent.join(","))),
        ],
    )
}

fn read_mailbox(item: &Item) -> Result<DeliveryState, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let parts = |attribute| {
        let text = reader.text(attribute)?;
        Ok::<_, StoreError>(text.split(',').filter(|part| !part.is_empty()))
    };
    let window = |text: &str| {
        let mut parts = text.split(' ');
        let kind = parts.next()?;
        let covered = parts.next()?.parse().ok()?;
        let until = Timestamp::from_millis(parts.next()?.parse().ok()?);
        let held_since = match parts.next() {
            Some(HELD) => Some(Timestamp::from_millis(parts.next()?.parse().ok()?)),
            _ => None,
        };
        let window = BatchWindow { covered, until, held_since };
        // A later release may know more kinds, of which this one tells nobody.
        Some(DomainEventKind::parse(kind).map(|kind| (kind, window)))
    };
    let windows = parts("windows")?.map(window).collect::<Option<Vec<_>>>();
    let windows = windows.map(|windows| windows.into_iter().flatten().collect());
    let sent = parts("sent")?.map(|at| at.parse().ok().map(Timestamp::from_millis));
    Ok(DeliveryState {
        windows: windows.ok_or_else(|| reader.damaged("windows"))?,
        sent: sent.collect::<Option<_>>().ok_or_else(|| reader.damaged("sent"))?,
        revision: reader.count("revision")?,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain_event::{DomainEvent, Visibility};
    use shared::projects::project::ProjectId;

    const KIND: DomainEventKind = DomainEventKind::ErrorCreated;

    fn at(minutes: u64) -> Timestamp {
        Timestamp::from_millis(0).plus(Duration::from_mins(minutes))
    }

    fn step(number: u64, minutes: u64) -> FeedEntry {
        let scene = Visibility::Project(ProjectId::new(uuid::Uuid::nil()));
        let domain_event = DomainEvent::new(KIND, scene, number, "x", at(minutes));
        FeedEntry::of(number, &[domain_event]).unwrap()
    }

    #[test]
    fn what_waits_could_have_been_sent_when_it_happened_or_when_its_window_ended() {
        let mut feed = Feed {
            head: FeedHead { last: 3, told: 3 },
            steps: vec![step(2, 1), step(3, 12)],
            ..Feed::default()
        };
        assert_eq!(feed.waiting_since(at(30)), None, "all were told");
        let mut mailbox = DeliveryState::default();
        mailbox.note_sent(KIND, 1, at(0));
        feed.mailboxes.insert("mira".to_owned(), mailbox.clone());
        assert_eq!(feed.waiting_since(at(9)), None, "they are gathered");
        assert_eq!(feed.waiting_since(at(30)), Some(at(10)));
        mailbox.note_sent(KIND, 2, at(0));
        feed.mailboxes.insert("mira".to_owned(), mailbox.clone());
        assert_eq!(feed.waiting_since(at(30)), Some(at(12)));
        mailbox.note_sent(KIND, 3, at(0));
        feed.mailboxes.insert("mira".to_owned(), mailbox);
        assert_eq!(feed.waiting_since(at(30)), None);
        feed.head.told = 1;
        assert_eq!(feed.waiting_since(at(30)), Some(at(1)), "nobody was told of it");
    }

    #[test]
    fn a_mailbox_is_read_as_it_was_written_without_windows_of_kinds_that_are_unknown() {
        let mut mailbox = DeliveryState { revision: 4, ..DeliveryState::default() };
        mailbox.note_sent(KIND, 5, at(1));
        mailbox.defer(DomainEventKind::FlagChanged, 7, at(60), at(2));
        let mut item = write_mailbox(Item::new(), &mailbox);
        mailbox.revision = 5;
        assert_eq!(read_mailbox(&item).unwrap(), mailbox);
        let windows = item["windows"].as_s().unwrap().clone();
        item.insert("windows".to_owned(), s(format!("later_kind 3 5,{windows}")));
        assert_eq!(read_mailbox(&item).unwrap(), mailbox);
        item.insert("windows".to_owned(), s(format!("later_kind x 5,{windows}")));
        assert!(read_mailbox(&item).is_err());
    }
}
