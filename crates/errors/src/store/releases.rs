//! The releases that events named, in table `errors`.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `releases#PROJECT` | `name#RELEASE` | when the release was first seen |
//! | `releases#PROJECT` | `seen#TIME#RELEASE` | lists it by time |
//! | `releases#PROJECT` | `count#DAY` | the number of releases first seen on a day |
//!
//! A DSN holder can invent releases. So a project gets at most [`MAX_NEW_RELEASES`] a day.

use std::time::Duration;

use aws_sdk_dynamodb::types::TransactWriteItem;

use shared::dynamodb::StoreError;
use shared::dynamodb::item::{ItemReader, key, n, range_key, read_time_key, s, time_key};
use shared::dynamodb::transaction::Transaction;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::errors::TABLE;
use super::fingerprints::is_kept;
use crate::log::day::{COUNT_RETENTION, Day};

/// Maximum releases of a project that are first seen on one day (UTC).
pub const MAX_NEW_RELEASES: u32 = 100;
/// Time after which the number of a day is removed.
const DAY_RETENTION: Duration = Duration::from_hours(48);

/// The outcome of registering a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseRegistration {
    /// The release was first seen now.
    Registered,
    /// The release was registered before, perhaps by a concurrent request.
    Known,
    /// The project's limit of the day is reached.
    LimitReached,
    /// One of the other actions failed.
    Outdated,
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
        let read = |item| ItemReader { table: TABLE, item }.millis("firstSeen");
        found.as_ref().map(read).transpose()
    }

    /// Registers a release, once, together with other actions.
    pub async fn register_release(
        self,
        project: ProjectId,
        release: &str,
        others: Vec<TransactWriteItem>,
        now: Timestamp,
    ) -> Result<ReleaseRegistration, StoreError> {
        let pk = releases_pk(project);
        let expires_at = now.plus(COUNT_RETENTION);
        let mut name = key(&pk, &format!("name#{release}"));
        let mut seen = key(&pk, &format!("seen#{}#{release}", time_key(now)));
        name.insert("firstSeen".to_owned(), n(now.as_millis()));
        for item in [&mut name, &mut seen] {
            item.insert("expiresAt".to_owned(), n(expires_at.as_seconds()));
        }
        let put = self.db.put(TABLE, name);
        let put = put
            .condition_expression("attribute_not_exists(pk) OR expiresAt <= :now")
            .expression_attribute_values(":now", n(now.as_seconds()));
        let count = self
            .db
            .update(TABLE, key(&pk, &format!("count#{}", Day::of(now))))
            .condition_expression("attribute_not_exists(releases) OR releases < :most")
            .update_expression("ADD releases :one SET expiresAt = :expiresAt")
            .expression_attribute_values(":most", n(MAX_NEW_RELEASES))
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":expiresAt", n(now.plus(DAY_RETENTION).as_seconds()));
        let mut transaction = Transaction::default();
        transaction.add("release", put)?;
        transaction.add("seen", self.db.put(TABLE, seen))?;
        transaction.add("count", count)?;
        for other in others {
            transaction.add("other", other)?;
        }
        Ok(match self.db.commit_all(transaction).await? {
            None => ReleaseRegistration::Registered,
            Some(cancelled) if cancelled.failed("release") => ReleaseRegistration::Known,
            Some(cancelled) if cancelled.failed("count") => ReleaseRegistration::LimitReached,
            Some(cancelled) if cancelled.failed("other") => ReleaseRegistration::Outdated,
            Some(cancelled) => return Err(cancelled.into_error()),
        })
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

fn read_seen(sk: &str) -> Option<SeenRelease> {
    let (time, release) = sk.strip_prefix("seen#")?.split_once('#')?;
    Some(SeenRelease { release: release.to_owned(), first_seen: read_time_key(time)? })
}
