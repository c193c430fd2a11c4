//! Feeds, in table `notifications`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `shard#SHARD` | `feed#ORGANIZATION#head` | feed progress and checkpoint |
//! | `shard#SHARD` | `feed#ORGANIZATION#step#NUMBER` | feed entry |
//! | `shard#SHARD` | `feed#ORGANIZATION#user#USER` | delivery state of a user |
//! | `shard#SHARD` | `confirm#ORGANIZATION/USER` | request for a confirmation or security email |

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::TransactWriteItem;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, count, item_at, key, n, s};
use shared::dynamodb::request::IntoAction;
use shared::projects::api_key::UserId;
use shared::projects::project::Organization;
use shared::timestamp::Timestamp;

use super::addresses::{CONFIRMATION_PREFIX, UserName, confirmation_key};
use super::dispatch::{Shard, read_domain_events, write_domain_events};
use super::{NotificationStore, TABLE};
use crate::address::UserAddress;
use crate::delivery_state::{BatchWindow, DeliveryState};
use crate::domain_event::DomainEventKind;
use crate::feed::{FeedEntry, FeedHead};
use crate::store::outbox::shard_pk;

const FEEDS: &str = "feed#";

/// The position at which an invocation ran out of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedCheckpoint {
    /// The number of the last entry to deliver.
    pub last: u64,
    /// The last completed user. Users are processed by name.
    pub user: UserId,
}

/// The feed of an organization.
#[derive(Debug, Clone, Default)]
pub struct Feed {
    /// The progress of the feed.
    pub head: FeedHead,
    /// The position at which the last invocation ran out of time, if it did.
    pub checkpoint: Option<FeedCheckpoint>,
    /// The stored entries, earliest first.
    pub entries: Vec<FeedEntry>,
    /// Delivery states by user.
    pub delivery_states: BTreeMap<String, DeliveryState>,
    /// Users with an unreadable delivery state.
    pub unreadable: BTreeSet<String>,
}

impl Feed {
    /// Returns the time since which an email is overdue at `now`. Undelivered entries are due since
    /// their events, batched entries since the end of their window.
    pub fn waiting_since(&self, now: Timestamp) -> Option<Timestamp> {
        let new = self.entries.iter().filter(|entry| entry.number > self.head.delivered);
        let batched = self.delivery_states.iter().flat_map(|(user, state)| {
            let user = UserId::parse(user).ok();
            let ended = state.windows.iter().filter(move |(_, window)| window.until <= now);
            ended.flat_map(move |(kind, window)| {
                let user = user.clone();
                let is_batched = move |entry: &&FeedEntry| {
                    let concerned = user.as_ref().is_some_and(|user| entry.concerns(user));
                    entry.number > window.covered && entry.kind() == Some(*kind) && concerned
                };
                let entries = self.entries.iter().filter(is_batched);
                entries.map(|entry| entry.since.max(window.until))
            })
        });
        new.map(|entry| entry.since).chain(batched).min()
    }
}

impl NotificationStore<'_> {
    /// Returns a shard's organizations with a feed.
    pub async fn organizations_with_feed(
        self,
        shard: Shard,
    ) -> Result<Vec<Organization>, StoreError> {
        let names = self.distinct(shard, FEEDS).await?;
        Ok(names.iter().filter_map(|name| Organization::parse(name).ok()).collect())
    }

    /// Returns the feed of an organization. Strongly consistent: a stale delivery state would cause
    /// duplicate emails.
    pub async fn find_feed(self, organization: &Organization) -> Result<Feed, StoreError> {
        let (pk, prefix) = (shard_pk(organization.as_str()), format!("{FEEDS}{organization}#"));
        let mut feed = Feed::default();
        for item in self.db.all(self.db.partition_from(TABLE, pk, prefix)).await? {
            let sk = ItemReader { table: TABLE, item: &item }.text("sk")?;
            let mut parts = sk.splitn(4, '#').skip(2);
            match (parts.next(), parts.next()) {
                (Some("head"), None) => {
                    feed.head = read_head(&item)?;
                    let checkpoint =
                        self.db.unless_damaged(&item, read_checkpoint(&item))?.flatten();
                    feed.checkpoint =
                        checkpoint.filter(|checkpoint| checkpoint.last > feed.head.delivered);
                }
                (Some("step"), Some(_)) => {
                    feed.entries.extend(self.db.unless_damaged(&item, read_entry(&item))?);
                }
                (Some("user"), Some(user)) => {
                    // An empty delivery state instead would send the same email every minute.
                    match self.db.unless_damaged(&item, read_delivery_state(&item))? {
                        Some(state) => {
                            feed.delivery_states.insert(user.to_owned(), state);
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

    /// Returns the progress of a feed, or `None` if it does not exist.
    pub(super) async fn find_feed_head(
        self,
        organization: &Organization,
    ) -> Result<Option<FeedHead>, StoreError> {
        let found = self.db.get(TABLE, feed_key(organization, "head")).await?;
        found.as_ref().map(read_head).transpose()
    }

    /// Returns the action that sets a feed's last number, if it is still `read`.
    pub(super) fn extend_feed(
        self,
        organization: &Organization,
        read: Option<FeedHead>,
        last: u64,
    ) -> Result<TransactWriteItem, StoreError> {
        let update = self
            .db
            .update(TABLE, feed_key(organization, "head"))
            .update_expression("SET #last = :last, delivered = if_not_exists(delivered, :none)")
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

    /// Stores a delivery state, or deletes an idle one, if its revision is unchanged. Returns
    /// `false` otherwise.
    pub async fn replace_delivery_state(
        self,
        name: &UserName,
        state: &DeliveryState,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let item_key = delivery_state_key(name);
        if state.is_idle(now) {
            let delete = self.db.delete(TABLE, item_key).condition_expression("revision = :read");
            let delete = delete.expression_attribute_values(":read", count(state.revision));
            return if state.revision == 0 { Ok(true) } else { self.db.write_if(delete).await };
        }
        let put = self.db.put(TABLE, write_delivery_state(item_key, state));
        self.db
            .write_if(match state.revision {
                0 => put.condition_expression("attribute_not_exists(pk)"),
                revision => put
                    .condition_expression("revision = :read")
                    .expression_attribute_values(":read", count(revision)),
            })
            .await
    }

    /// Sets the number of the last delivered entry and removes the checkpoint. Deletes entries up
    /// to `obsolete`. Writes nothing if another invocation advanced the feed.
    pub async fn advance_feed(
        self,
        organization: &Organization,
        feed: &Feed,
        delivered: u64,
        obsolete: u64,
    ) -> Result<(), StoreError> {
        if delivered != feed.head.delivered {
            let update = self
                .db
                .update(TABLE, feed_key(organization, "head"))
                .condition_expression("delivered = :read")
                .update_expression(
                    "SET delivered = :delivered REMOVE checkpointUser, checkpointLast",
                )
                .expression_attribute_values(":read", count(feed.head.delivered))
                .expression_attribute_values(":delivered", count(delivered));
            if !self.db.write_if(update).await? {
                return Ok(());
            }
        }
        let obsolete = feed.entries.iter().filter(|entry| entry.number <= obsolete);
        let keys: Vec<Item> = obsolete.map(|entry| entry_key(organization, entry.number)).collect();
        if keys.is_empty() { Ok(()) } else { self.db.delete_all(TABLE, keys).await }
    }

    /// Stores or removes the checkpoint, unless another invocation advanced the feed.
    pub async fn save_checkpoint(
        self,
        organization: &Organization,
        delivered: u64,
        checkpoint: Option<&FeedCheckpoint>,
    ) -> Result<(), StoreError> {
        let update = self
            .db
            .update(TABLE, feed_key(organization, "head"))
            .condition_expression("delivered = :delivered")
            .expression_attribute_values(":delivered", count(delivered));
        self.db
            .write_if(match checkpoint {
                None => update.update_expression("REMOVE checkpointUser, checkpointLast"),
                Some(checkpoint) => update
                    .update_expression("SET checkpointUser = :user, checkpointLast = :last")
                    .expression_attribute_values(":user", s(&checkpoint.user))
                    .expression_attribute_values(":last", count(checkpoint.last)),
            })
            .await
            .map(drop)
    }

    /// Deletes the head of a delivered feed, unless it has new entries.
    pub async fn delete_feed_head(
        self,
        organization: &Organization,
        last: u64,
    ) -> Result<(), StoreError> {
        let end = self
            .db
            .delete(TABLE, feed_key(organization, "head"))
            .condition_expression("#last = :last AND delivered = :last")
            .expression_attribute_names("#last", "last")
            .expression_attribute_values(":last", count(last));
        self.db.write_if(end).await.map(drop)
    }

    /// Returns a shard's users with a confirmation request. Strongly consistent.
    pub async fn pending_confirmations(self, shard: Shard) -> Result<Vec<UserName>, StoreError> {
        let query = self.db.partition_from(TABLE, shard.pk(), CONFIRMATION_PREFIX);
        let read = |item: &Item| {
            ItemReader { table: TABLE, item }.parsed("sk", |sk| {
                let (organization, user) = sk.strip_prefix(CONFIRMATION_PREFIX)?.split_once('/')?;
                let organization = Organization::parse(organization).ok()?;
                Some(UserName { organization, user: UserId::parse(user).ok()? })
            })
        };
        self.db.undamaged(&self.db.all(query).await?, read)
    }

    /// Deletes a user's confirmation request, and stores the address if `is_changed`. Returns
    /// `false` and writes nothing if the address was changed since it was read: the change can have
    /// its own request.
    pub async fn end_confirmation_request(
        self,
        name: &UserName,
        address: &UserAddress,
        is_changed: bool,
    ) -> Result<bool, StoreError> {
        let delete_request = self.db.delete(TABLE, confirmation_key(name)).into_action()?;
        let of_address = if is_changed {
            self.put_address(name, address)?
        } else {
            self.check_address(name, address)?
        };
        Ok(self.db.commit_all(vec![delete_request, of_address]).await?.is_none())
    }
}

fn feed_key(organization: &Organization, suffix: &str) -> Item {
    key(&shard_pk(organization.as_str()), &format!("{FEEDS}{organization}#{suffix}"))
}

/// Mark of a deferred email in a stored window. The time since which it waits follows.
const DEFERRED_MARK: &str = "held";

pub(super) fn delivery_state_key(name: &UserName) -> Item {
    feed_key(&name.organization, &format!("user#{}", name.user))
}

/// Returns the key of an entry. Its number has a fixed width, so that keys sort by number.
fn entry_key(organization: &Organization, number: u64) -> Item {
    feed_key(organization, &format!("step#{number:020}"))
}

fn read_head(item: &Item) -> Result<FeedHead, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(FeedHead { last: reader.count("last")?, delivered: reader.count("delivered")? })
}

fn read_checkpoint(item: &Item) -> Result<Option<FeedCheckpoint>, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let user = reader.optional_parsed("checkpointUser", |text| UserId::parse(text).ok())?;
    let Some(user) = user else { return Ok(None) };
    Ok(Some(FeedCheckpoint { last: reader.count("checkpointLast")?, user }))
}

pub(super) fn write_entry(organization: &Organization, entry: &FeedEntry) -> Item {
    item_at(
        entry_key(organization, entry.number),
        [
            ("count", count(entry.count)),
            ("since", n(entry.since.as_millis())),
            ("lines", write_domain_events(&entry.lines)),
        ],
    )
}

fn read_entry(item: &Item) -> Result<FeedEntry, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    Ok(FeedEntry {
        number: reader.parsed("sk", |sk| sk.rsplit('#').next()?.parse().ok())?,
        count: reader.count("count")?,
        since: reader.millis("since")?,
        lines: read_domain_events(item, "lines")?,
    })
}

/// Returns the item of a delivery state.
///
/// Each window is a text: kind, covered entry, end, and `held` with a time for a deferred email.
fn write_delivery_state(item_key: Item, state: &DeliveryState) -> Item {
    let windows: Vec<String> = state
        .windows
        .iter()
        .map(|(kind, it)| {
            let deferred =
                it.deferred_since.map(|since| format!(" {DEFERRED_MARK} {}", since.as_millis()));
            let (covered, until) = (it.covered, it.until.as_millis());
            format!("{} {covered} {until}{}", kind.as_str(), deferred.unwrap_or_default())
        })
        .collect();
    let sent: Vec<String> = state.sent.iter().map(|at| at.as_millis().to_string()).collect();
    item_at(
        item_key,
        [
            ("revision", count(state.revision.saturating_add(1))),
            ("windows", s(windows.join(","))),
            ("sent", s(sent.join(","))),
        ],
    )
}

fn read_delivery_state(item: &Item) -> Result<DeliveryState, StoreError> {
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
        let deferred_since = match parts.next() {
            Some(DEFERRED_MARK) => Some(Timestamp::from_millis(parts.next()?.parse().ok()?)),
            _ => None,
        };
        let window = BatchWindow { covered, until, deferred_since };
        // Skips kinds that a later release added.
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

    fn entry(number: u64, minutes: u64) -> FeedEntry {
        let visibility = Visibility::Project(ProjectId::new(uuid::Uuid::nil()));
        let domain_event = DomainEvent::new(KIND, visibility, number, "x", at(minutes));
        FeedEntry::of(number, &[domain_event]).unwrap()
    }

    #[test]
    fn emails_wait_from_event_or_window_end() {
        let mut feed = Feed {
            head: FeedHead { last: 3, delivered: 3 },
            entries: vec![entry(2, 1), entry(3, 12)],
            ..Feed::default()
        };
        assert_eq!(feed.waiting_since(at(30)), None, "all entries are delivered");
        let mut state = DeliveryState::default();
        state.note_sent(KIND, 1, at(0));
        feed.delivery_states.insert("mira".to_owned(), state.clone());
        assert_eq!(feed.waiting_since(at(9)), None, "the window is open");
        assert_eq!(feed.waiting_since(at(30)), Some(at(10)));
        state.note_sent(KIND, 2, at(0));
        feed.delivery_states.insert("mira".to_owned(), state.clone());
        assert_eq!(feed.waiting_since(at(30)), Some(at(12)));
        state.note_sent(KIND, 3, at(0));
        feed.delivery_states.insert("mira".to_owned(), state);
        assert_eq!(feed.waiting_since(at(30)), None);
        feed.head.delivered = 1;
        assert_eq!(feed.waiting_since(at(30)), Some(at(1)), "entry 2 is not delivered");
    }

    #[test]
    fn delivery_states_round_trip_without_unknown_kinds() {
        let mut state = DeliveryState { revision: 4, ..DeliveryState::default() };
        state.note_sent(KIND, 5, at(1));
        state.defer(DomainEventKind::FlagChanged, 7, at(60), at(2));
        let mut item = write_delivery_state(Item::new(), &state);
        state.revision = 5;
        assert_eq!(read_delivery_state(&item).unwrap(), state);
        let windows = item["windows"].as_s().unwrap().clone();
        item.insert("windows".to_owned(), s(format!("later_kind 3 5,{windows}")));
        assert_eq!(read_delivery_state(&item).unwrap(), state);
        item.insert("windows".to_owned(), s(format!("later_kind x 5,{windows}")));
        assert!(read_delivery_state(&item).is_err());
    }
}
