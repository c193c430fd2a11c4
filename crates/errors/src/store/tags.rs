//! The tags of a project that are categories, in table `errors`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `tags#PROJECT` | `keys` | the keys that are categories, and the events of each key by day |
//! | `tags#PROJECT` | `count#DAY#KEY` | the number of values first seen on a day |
//! | `tag-values#PROJECT` | `HASH` | key and value of a hash in rows |
//!
//! A DSN holder can invent keys and values. So a project has at most [`MAX_TAG_KEYS`] keys, and a key gets at
//! most [`MAX_NEW_VALUES`] values a day.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use shared::dynamodb::StoreError;
use shared::dynamodb::immutable_items::place;
use shared::dynamodb::item::{Item, ItemReader, key, n, s};
use shared::dynamodb::transaction::Transaction;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::errors::TABLE;
use super::rows::LogRow;
use crate::log::day::{COUNT_RETENTION, Day, MINUTES_PER_DAY};
use crate::query::event_query::EventQuery;
use crate::tag::{MAX_TAG_KEYS, OTHER_VALUE, TagHash, TagKey};

/// Maximum values of a key that are first seen on one day (UTC).
pub const MAX_NEW_VALUES: u32 = 500;
/// Days whose events rank keys.
const RANKED_DAYS: i64 = 30;
/// Maximum keys with a number of events. The rarest are dropped.
const MAX_RANKED_KEYS: usize = 60;
/// Retention of a value after it was last written: that of rows, and more than the time until it is written
/// again.
const VALUE_RETENTION: Duration = Duration::from_hours(150 * 24);
/// Remaining retention below which a used value is written again.
const FEWEST_LEFT: Duration = Duration::from_hours(120 * 24);
/// Maximum attempts to change the keys.
const MAX_ATTEMPTS: usize = 4;

/// The events of each key by day, counted from the Unix epoch.
type Usage = BTreeMap<String, BTreeMap<i64, u64>>;

/// The stored keys of a project.
#[derive(Debug, Default)]
struct StoredKeys {
    /// The keys that are categories, the most frequent first.
    keys: Vec<TagKey>,
    usage: Usage,
    /// `None` if they are not stored yet.
    revision: Option<u64>,
}

impl StoredKeys {
    fn count(&mut self, key: TagKey, day: i64, events: u64) {
        let counted = self.usage.entry(key.to_string()).or_default().entry(day).or_default();
        *counted = counted.saturating_add(events);
    }

    /// Ranks the keys by their events of the last days. A key replaces another one if it has a quarter more
    /// events, so keys with similar numbers do not alternate.
    fn rank(&mut self, today: i64) {
        for days in self.usage.values_mut() {
            days.retain(|day, _| *day > today - RANKED_DAYS);
        }
        let mut ranked: Vec<(u64, TagKey)> = Vec::new();
        for (text, days) in &self.usage {
            let Some(key) = TagKey::parse(text).filter(|_| !days.is_empty()) else { continue };
            let events = days.values().fold(0_u64, |sum, events| sum.saturating_add(*events));
            let weight = if self.keys.contains(&key) { 5 } else { 4 };
            ranked.push((events.saturating_mul(weight), key));
        }
        ranked.sort_unstable_by_key(|(events, key)| (Reverse(*events), *key));
        ranked.truncate(MAX_RANKED_KEYS);
        let kept: BTreeSet<String> = ranked.iter().map(|(_, key)| key.to_string()).collect();
        self.usage.retain(|key, _| kept.contains(key));
        self.keys = ranked.into_iter().take(MAX_TAG_KEYS).map(|(_, key)| key).collect();
    }
}

impl ErrorStore<'_> {
    /// Returns the keys of projects that are categories, the most frequent of each project first.
    pub async fn tag_keys(self, projects: &[ProjectId]) -> Result<Vec<TagKey>, StoreError> {
        let keys = projects.iter().map(|project| keys_key(*project)).collect();
        let mut found: Vec<TagKey> = Vec::new();
        for item in self.db.get_all(TABLE, keys).await? {
            let more = self.read_tag_keys(&item)?;
            found.extend(more.into_iter().filter(|key| !found.contains(key)).collect::<Vec<_>>());
        }
        Ok(found)
    }

    /// Reads the search of a query again if it depends on the tags of these projects.
    pub async fn recognize_tags(
        self,
        projects: &[ProjectId],
        query: &mut EventQuery,
    ) -> Result<(), StoreError> {
        if query.search.names_tags() {
            query.recognize_tags(&self.tag_keys(projects).await?);
        }
        Ok(())
    }

    /// Reads the keys of an item. Damaged keys are none.
    pub(super) fn read_tag_keys(self, item: &Item) -> Result<Vec<TagKey>, StoreError> {
        let read = read_keys(item).map(|stored| stored.keys);
        Ok(self.db.unless_damaged(item, read)?.unwrap_or_default())
    }

    /// Adds keys to the categories until the project has the maximum. Returns the keys that are categories.
    pub async fn add_tag_keys(
        self,
        project: ProjectId,
        new: &[TagKey],
        now: Timestamp,
    ) -> Result<Vec<TagKey>, StoreError> {
        for _ in 0..MAX_ATTEMPTS {
            let mut stored = self.find_stored_keys(project).await?.unwrap_or_default();
            let left = MAX_TAG_KEYS.saturating_sub(stored.keys.len());
            let added = new.iter().filter(|key| !stored.keys.contains(key)).take(left);
            let added: Vec<TagKey> = added.copied().collect();
            if added.is_empty() {
                return Ok(stored.keys);
            }
            for key in &added {
                stored.count(*key, day_number(now), 1);
            }
            stored.keys.extend(added);
            if self.put_keys(project, &stored, now).await? {
                return Ok(stored.keys);
            }
        }
        Err(StoreError::Contended("the keys of tags kept changing".into()))
    }

    /// Adds each key's events and ranks the keys. Call it once the events are packed: if it fails or is
    /// killed, only the ranking lacks them.
    pub(super) async fn rank_tag_keys(
        self,
        project: ProjectId,
        events: &BTreeMap<TagKey, u64>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for _ in 0..MAX_ATTEMPTS {
            // Only ingestion creates the item: a deleted project must not get one again.
            let Some(mut stored) = self.find_stored_keys(project).await? else { return Ok(()) };
            for (key, events) in events {
                stored.count(*key, day_number(now), *events);
            }
            stored.rank(day_number(now));
            if self.put_keys(project, &stored, now).await? {
                break;
            }
        }
        Ok(())
    }

    async fn find_stored_keys(self, project: ProjectId) -> Result<Option<StoredKeys>, StoreError> {
        let Some(item) = self.db.get(TABLE, keys_key(project)).await? else { return Ok(None) };
        let read = self.db.unless_damaged(&item, read_keys(&item))?;
        let revision = ItemReader { table: TABLE, item: &item }.optional_count("revision");
        // Damaged keys are replaced.
        let replacement =
            || StoredKeys { revision: revision.ok().flatten(), ..StoredKeys::default() };
        Ok(Some(read.unwrap_or_else(replacement)))
    }

    async fn put_keys(
        self,
        project: ProjectId,
        stored: &StoredKeys,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let texts: Vec<&str> = stored.keys.iter().map(TagKey::as_str).collect();
        let usage = serde_json::to_string(&stored.usage).unwrap_or_default();
        let revision = i64::try_from(stored.revision.unwrap_or_default()).unwrap_or_default();
        let mut item = keys_key(project);
        item.insert("keys".to_owned(), s(texts.join(" ")));
        item.insert("usage".to_owned(), s(usage));
        item.insert("revision".to_owned(), n(revision.saturating_add(1)));
        item.insert("expiresAt".to_owned(), n(now.plus(COUNT_RETENTION).as_seconds()));
        let put = self.db.put(TABLE, item);
        let put = match stored.revision {
            None => put.condition_expression("attribute_not_exists(revision)"),
            Some(_) => put
                .condition_expression("revision = :revision")
                .expression_attribute_values(":revision", n(revision)),
        };
        self.db.write_if(put).await
    }

    /// Returns which of these tags are registered.
    pub async fn registered_tags(
        self,
        project: ProjectId,
        tags: &[(TagKey, &str)],
        now: Timestamp,
    ) -> Result<Vec<bool>, StoreError> {
        if tags.is_empty() {
            return Ok(Vec::new());
        }
        let hashes: Vec<TagHash> =
            tags.iter().map(|(key, value)| TagHash::of(*key, value)).collect();
        // A DSN holder can find tags with equal hashes, and DynamoDB rejects duplicate keys.
        let distinct: BTreeSet<TagHash> = hashes.iter().copied().collect();
        let keys = distinct.into_iter().map(|hash| value_key(project, hash)).collect();
        let items = self.db.get_all(TABLE, keys).await?;
        let mut found = HashMap::new();
        for item in &items {
            let reader = ItemReader { table: TABLE, item };
            let expiry = reader.count("expiresAt").ok().and_then(|it| i64::try_from(it).ok());
            found.insert(reader.text("sk")?.to_owned(), expiry.unwrap_or_default());
        }
        let mut registered = Vec::with_capacity(tags.len());
        for ((key, value), hash) in tags.iter().zip(hashes) {
            let expires_at = found.get(&hash.to_string());
            let is_kept = expires_at.is_some_and(|at| *at > now.as_seconds());
            if is_kept && expires_at.is_some_and(|at| *at < now.plus(FEWEST_LEFT).as_seconds()) {
                self.db.put_over(TABLE, value_item(project, *key, value, now)).await?;
            }
            registered.push(is_kept);
        }
        Ok(registered)
    }

    /// Registers the value of a tag. Returns `false` if the key's limit of the day is reached.
    pub async fn register_tag(
        self,
        project: ProjectId,
        tag_key: TagKey,
        value: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let item = value_item(project, tag_key, value, now);
        if value == OTHER_VALUE {
            self.db.put_over(TABLE, item).await?;
            return Ok(true);
        }
        let day = key(&tags_pk(project), &format!("count#{}#{tag_key}", Day::of(now)));
        let mut transaction = Transaction::default();
        transaction.add("value", self.register_once(item, now))?;
        transaction.add("count", self.count_of_day(day, "newValues", MAX_NEW_VALUES, now))?;
        Ok(match self.db.commit_all(transaction).await? {
            None => true,
            // A concurrent request registered it.
            Some(cancelled) if cancelled.failed("value") => true,
            Some(cancelled) if cancelled.failed("count") => false,
            Some(cancelled) => return Err(cancelled.into_error()),
        })
    }

    /// Sets the tags of rows by their hashes: all, or those with one of these keys.
    pub(super) async fn resolve_tags(
        self,
        project: ProjectId,
        rows: &mut [LogRow],
        keys: Option<&[TagKey]>,
    ) -> Result<(), StoreError> {
        let is_needed =
            |hash: &TagHash| keys.is_none_or(|keys| keys.iter().any(|key| hash.may_be_of(*key)));
        let hashes: BTreeSet<TagHash> =
            rows.iter().flat_map(|row| &row.tags).copied().filter(is_needed).collect();
        if hashes.is_empty() {
            return Ok(());
        }
        let items = hashes.iter().map(|hash| value_key(project, *hash)).collect();
        let found = self.db.get_all_unchanging(TABLE, items).await?;
        let mut tags: BTreeMap<TagHash, (TagKey, Arc<Item>)> = BTreeMap::new();
        for hash in hashes {
            let Some(item) = found.get(&place(&value_key(project, hash))) else { continue };
            let reader = ItemReader { table: TABLE, item };
            let read = reader.parsed("key", TagKey::parse);
            if let Some(key) = self.db.unless_damaged(item, read)? {
                tags.insert(hash, (key, Arc::clone(item)));
            }
        }
        for row in rows {
            for (key, item) in row.tags.iter().filter_map(|hash| tags.get(hash)) {
                let value = ItemReader { table: TABLE, item }.text("value")?;
                if keys.is_none_or(|keys| keys.contains(key)) {
                    row.row.attributes.set_tag(*key, value.to_owned());
                }
            }
        }
        Ok(())
    }
}

fn tags_pk(project: ProjectId) -> String {
    format!("tags#{project}")
}

/// Returns the key of the item with a project's keys.
pub(super) fn keys_key(project: ProjectId) -> Item {
    key(&tags_pk(project), "keys")
}

fn value_key(project: ProjectId, hash: TagHash) -> Item {
    key(&format!("tag-values#{project}"), &hash.to_string())
}

fn value_item(project: ProjectId, tag_key: TagKey, value: &str, now: Timestamp) -> Item {
    let mut item = value_key(project, TagHash::of(tag_key, value));
    item.insert("key".to_owned(), s(tag_key));
    item.insert("value".to_owned(), s(value));
    item.insert("expiresAt".to_owned(), n(now.plus(VALUE_RETENTION).as_seconds()));
    item
}

fn read_keys(item: &Item) -> Result<StoredKeys, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let keys =
        |text: &str| text.split(' ').filter(|it| !it.is_empty()).map(TagKey::parse).collect();
    let usage = |text: &str| serde_json::from_str(text).ok();
    Ok(StoredKeys {
        keys: reader.parsed("keys", keys)?,
        usage: reader.parsed("usage", usage)?,
        revision: Some(reader.count("revision")?),
    })
}

/// Returns the day of `at`, counted from the Unix epoch.
fn day_number(at: Timestamp) -> i64 {
    Day::of(at).first_minute() / MINUTES_PER_DAY
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(text: &str) -> TagKey {
        TagKey::parse(text).unwrap()
    }

    fn ranked(events: &[(&str, i64, u64)], before: &[&str], today: i64) -> Vec<String> {
        let keys = before.iter().map(|key| tag(key)).collect();
        let mut stored = StoredKeys { keys, ..StoredKeys::default() };
        for (key, day, events) in events {
            stored.count(tag(key), *day, *events);
        }
        stored.rank(today);
        stored.keys.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn keys_rank_by_events_of_thirty_days() {
        let events = [("a", 100, 5), ("b", 100, 3), ("b", 101, 4), ("old", 70, 100)];
        assert_eq!(ranked(&events, &["old"], 101), ["b", "a"]);
        assert_eq!(ranked(&events, &["old"], 99), ["old", "b", "a"]);
    }

    #[test]
    fn clearly_more_frequent_keys_replace_others() {
        let names: Vec<String> = (0..MAX_TAG_KEYS).map(|number| format!("k{number}")).collect();
        let before: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut events: Vec<(&str, i64, u64)> = before.iter().map(|key| (*key, 100, 100)).collect();
        events[7].2 = 80;
        for (number, replaces) in [(99, false), (101, true)] {
            events.push(("new", 100, number));
            let after = ranked(&events, &before, 100);
            assert_eq!(after.len(), MAX_TAG_KEYS);
            assert_eq!(after.contains(&"new".to_owned()), replaces, "{number}");
            assert_eq!(after.contains(&"k7".to_owned()), !replaces, "{number}");
            events.pop();
        }
    }

    #[test]
    fn numbers_of_many_keys_are_dropped() {
        let mut stored = StoredKeys::default();
        for number in 0..200 {
            stored.count(tag(&format!("k{number}")), 100, number + 1);
        }
        stored.rank(100);
        assert_eq!((stored.usage.len(), stored.keys.len()), (MAX_RANKED_KEYS, MAX_TAG_KEYS));
        assert!(stored.usage.contains_key("k199") && !stored.usage.contains_key("k0"));
    }
}
