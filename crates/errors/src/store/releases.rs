//! The releases that events and tools named, and their deploys, in table `errors`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `releases#PROJECT` | `name#RELEASE` | when the release was first seen |
//! | `releases#PROJECT` | `seen#TIME#RELEASE` | lists it by time |
//! | `releases#PROJECT` | `deploy#ID` | a deploy that has its markers |
//! | `releases#PROJECT` | `count#DAY` | the numbers of registrations on a day |
//!
//! A DSN holder can invent releases. So a project gets at most [`MAX_NEW_RELEASES`] a day, with a
//! number of its own for each [`Registrar`]: made-up releases must not stop the tools.

use aws_sdk_dynamodb::types::TransactWriteItem;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{Item, ItemReader, key, n, range_key, read_time_key, s, time_key};
use shared::dynamodb::transaction::Transaction;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;
use uuid::Uuid;

use super::ErrorStore;
use super::errors::TABLE;
use super::fingerprints::is_kept;
use crate::log::day::{COUNT_RETENTION, Day};

/// Maximum releases of a project that a [`Registrar`] registers on one day (UTC), and maximum
/// deploys.
pub const MAX_NEW_RELEASES: u32 = 100;
/// Most attempts at a registration. Another one follows if a collection of markers changed.
const MAX_ATTEMPTS: u32 = 4;

/// The sender of a release's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registrar {
    /// An SDK, with an event.
    Event,
    /// A tool with an API key.
    Tool,
}

impl Registrar {
    /// Returns the attribute that counts the registrations of a day.
    fn counter(self) -> &'static str {
        match self {
            Self::Event => "releases",
            Self::Tool => "toolReleases",
        }
    }
}

/// A release and when it was first seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRelease {
    /// The release.
    pub release: String,
    /// The time at which its first event was received.
    pub first_seen: Timestamp,
}

/// The newest releases, and the number of the others.
#[derive(Debug)]
pub struct NewestReleases {
    /// The releases, newest first.
    pub releases: Vec<SeenRelease>,
    /// The number of further releases.
    pub left_out: u64,
    /// `false` if there can be more of them.
    pub is_exact: bool,
}

impl ErrorStore<'_> {
    /// Returns when a release was first seen.
    pub async fn find_release(
        self,
        project: ProjectId,
        release: &str,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        let name = key(&releases_pk(project), &format!("name#{release}"));
        let found = self.db.get(TABLE, name).await?.filter(|item| is_kept(item, now));
        found.as_ref().map(first_seen).transpose()
    }

    /// Registers a release, once, together with its `markers`. Returns when it was first seen, or
    /// `None` if the limit of the day is reached.
    pub async fn see_release<M: Future<Output = Result<Vec<TransactWriteItem>, StoreError>>>(
        self,
        project: ProjectId,
        release: &str,
        registrar: Registrar,
        markers: impl Fn() -> M,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        let pk = releases_pk(project);
        let mut name = key(&pk, &format!("name#{release}"));
        name.insert("firstSeen".to_owned(), n(now.as_millis()));
        let seen = key(&pk, &format!("seen#{}#{release}", time_key(now)));
        let items = (name, Some(seen));
        let found = self.register(project, items, registrar.counter(), markers, now).await?;
        found.as_ref().map(first_seen).transpose()
    }

    /// Registers a deploy, once, together with its `markers`. Returns `false` if the limit of the
    /// day is reached.
    pub async fn see_deploy<M: Future<Output = Result<Vec<TransactWriteItem>, StoreError>>>(
        self,
        project: ProjectId,
        deploy: Uuid,
        markers: impl Fn() -> M,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let deploy = key(&releases_pk(project), &format!("deploy#{deploy}"));
        Ok(self.register(project, (deploy, None), "deploys", markers, now).await?.is_some())
    }

    /// Puts an item and another one, unless the first is there, counts it in `counter`, and adds its
    /// markers. Returns the first item, or `None` if the limit of the day is reached.
    async fn register<M: Future<Output = Result<Vec<TransactWriteItem>, StoreError>>>(
        self,
        project: ProjectId,
        (mut item, mut listing): (Item, Option<Item>),
        counter: &str,
        markers: impl Fn() -> M,
        now: Timestamp,
    ) -> Result<Option<Item>, StoreError> {
        let own_key = item.iter().filter(|(name, _)| ["pk", "sk"].contains(&name.as_str()));
        let own_key: Item = own_key.map(|(name, value)| (name.clone(), value.clone())).collect();
        for item in [Some(&mut item), listing.as_mut()].into_iter().flatten() {
            item.insert("expiresAt".to_owned(), n(now.plus(COUNT_RETENTION).as_seconds()));
        }
        for _ in 0..MAX_ATTEMPTS {
            let found = self.db.get(TABLE, own_key.clone()).await?;
            if let Some(found) = found.filter(|item| is_kept(item, now)) {
                return Ok(Some(found));
            }
            let mut transaction = Transaction::default();
            transaction.add("item", self.register_once(item.clone(), now))?;
            if let Some(listing) = &listing {
                transaction.add("listing", self.db.put(TABLE, listing.clone()))?;
            }
            let day = key(&releases_pk(project), &format!("count#{}", Day::of(now)));
            transaction.add("count", self.count_of_day(day, counter, MAX_NEW_RELEASES, now))?;
            for marker in markers().await? {
                transaction.add("marker", marker)?;
            }
            match self.db.commit_all(transaction).await? {
                None => return Ok(Some(item)),
                // A concurrent request registered it.
                Some(cancelled) if cancelled.failed("item") => {}
                Some(cancelled) if cancelled.failed("count") => return Ok(None),
                // A collection of markers changed.
                Some(cancelled) if cancelled.failed("marker") => {}
                Some(cancelled) => return Err(cancelled.into_error()),
            }
        }
        Err(StoreError::Contended("the collections of the markers kept changing".into()))
    }

    /// Returns up to `limit` releases that were first seen from `from` until before `to`, in
    /// milliseconds. Eventually consistent.
    pub async fn newest_releases(
        self,
        project: ProjectId,
        (from, to): (i64, i64),
        limit: u32,
        now: Timestamp,
    ) -> Result<NewestReleases, StoreError> {
        let query = self
            .db
            .query(TABLE)
            .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
            .filter_expression("expiresAt > :now")
            .expression_attribute_values(":pk", s(releases_pk(project)))
            .expression_attribute_values(":from", s(format!("seen#{}", range_key(from))))
            .expression_attribute_values(":to", s(format!("seen#{}", range_key(to))))
            .expression_attribute_values(":now", n(now.as_seconds()));
        let newest = self.db.newest(query, limit).await?;
        let releases = self.db.undamaged(&newest.items, |item| {
            ItemReader { table: TABLE, item }.parsed("sk", read_seen)
        })?;
        Ok(NewestReleases { releases, left_out: newest.left_out, is_exact: newest.is_exact })
    }
}

fn releases_pk(project: ProjectId) -> String {
    format!("releases#{project}")
}

fn first_seen(item: &Item) -> Result<Timestamp, StoreError> {
    ItemReader { table: TABLE, item }.millis("firstSeen")
}

fn read_seen(sk: &str) -> Option<SeenRelease> {
    let (time, release) = sk.strip_prefix("seen#")?.split_once('#')?;
    Some(SeenRelease { release: release.to_owned(), first_seen: read_time_key(time)? })
}
