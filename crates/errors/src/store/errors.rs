//! Errors, in table `errors`, key `pk` / `sk`. [`super::fingerprints`] maps events to errors,
//! [`super::events`] stores events, and [`super::rows`] and [`super::columns`] store their counted
//! parts.
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `errors#PROJECT` | `ID` | an error |

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use aws_sdk_dynamodb::types::AttributeValue;

use notifications::domain_event::{DomainEvent, DomainEventKind};
use notifications::store::NotificationStore;
use shared::dynamodb::item::{Item, ItemReader, b, count, item_at, key, n, s, time_key};
use shared::dynamodb::request::IntoAction;
use shared::dynamodb::transaction::Transaction;
use shared::dynamodb::{ConflictRetry, StoreError};
use shared::page::{Page, PageRequest};
use shared::projects::api_key::UserId;
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::ErrorStore;
use super::error_hours::listed_range;
use super::fingerprints::{FingerprintEntry, fingerprint_key, is_kept, read_fingerprint};
use crate::grouping::Fingerprint;
use crate::query::errors::ErrorCounts;
use crate::query::event_query::EventQuery;
use crate::{ErrorDescription, ErrorId, ErrorRecord, ErrorStatus, NewError, Resolution};

pub(super) const TABLE: &str = "errors";

impl ErrorStore<'_> {
    /// Creates the error of a counted event if it does not exist, and stores when it was first
    /// seen. Reopens the error if it was resolved before the event occurred. For a packed event,
    /// also stores when the error was last seen: ingestion leaves that to packing.
    ///
    /// Idempotent. `new_id` is the ID of a new error. Returns `None` if the event was deleted with
    /// its error. Strongly consistent: an error that was just resolved must reopen.
    pub async fn see_error(
        self,
        project: ProjectId,
        known: Option<ErrorId>,
        description: &ErrorDescription,
        seen: &SeenEvent,
        new_id: ErrorId,
    ) -> Result<Option<ErrorId>, StoreError> {
        let &SeenEvent { occurred_at: at, received_at, release_seen, is_packed, now } = seen;
        let mut known = known;
        let mut retry = ConflictRetry::default();
        while retry.next_attempt().await {
            let Some(current) = known else {
                let entry = self.find_fingerprint(project, description.fingerprint, now).await?;
                known = entry.error;
                if known.is_some() {
                    continue;
                }
                if entry.deleted_at.is_some_and(|deleted_at| received_at < deleted_at) {
                    return Ok(None);
                }
                let (description, events_since) = (description.clone(), entry.deleted_at);
                let new = NewError { id: new_id, description, events_since };
                let mut transaction = Transaction::default();
                self.create_error(project, &new, at, now, &mut transaction)?;
                if self.db.commit_all(transaction).await?.is_none() {
                    return Ok(Some(new_id));
                }
                continue;
            };
            let Some(error) = self.find_error(project, current, now).await? else {
                // The error was deleted or expired since it was read or cached.
                known = None;
                continue;
            };
            if error.events_since.is_some_and(|since| received_at < since) {
                return Ok(None);
            }
            let is_stored = if is_packed {
                error.has_seen(at, received_at)
            } else {
                !error.is_changed_by(at, release_seen)
            };
            if is_stored {
                return Ok(Some(error.id));
            }
            let seen = error.clone().seen_at(at, received_at, release_seen);
            // Here, only an event can change the status.
            let reopened = (seen.status != error.status)
                .then(|| seen.domain_event(DomainEventKind::ErrorReopened, project, now));
            if self.replace_error(project, &error, &seen, reopened.as_ref()).await? {
                return Ok(Some(seen.id));
            }
        }
        Err(StoreError::Contended("the error kept changing".into()))
    }

    /// Returns the errors of these fingerprints, without missing and unreadable ones. Strongly
    /// consistent: an error that was just created is found.
    pub(super) async fn find_errors_of(
        self,
        project: ProjectId,
        fingerprints: impl Iterator<Item = Fingerprint>,
        now: Timestamp,
    ) -> Result<HashMap<Fingerprint, ErrorRecord>, StoreError> {
        let keys = fingerprints.map(|fingerprint| fingerprint_key(project, fingerprint)).collect();
        let items = self.db.get_all(TABLE, keys).await?;
        let kept = items.iter().filter(|item| is_kept(item, now));
        let entries: Vec<FingerprintEntry> = self.db.undamaged(kept, read_fingerprint)?;
        let ids = entries.iter().filter_map(|entry| entry.error);
        let errors = self.find_errors(project, ids, now).await?.into_values();
        Ok(errors.map(|error| (error.description.fingerprint, error)).collect())
    }

    /// Returns the existing errors with these IDs. Strongly consistent.
    pub(super) async fn find_errors(
        self,
        project: ProjectId,
        ids: impl Iterator<Item = ErrorId>,
        now: Timestamp,
    ) -> Result<HashMap<ErrorId, ErrorRecord>, StoreError> {
        let keys = ids.map(|id| error_key(project, id)).collect();
        let items = self.db.get_all(TABLE, keys).await?;
        let kept = items.iter().filter(|item| is_kept(item, now));
        let errors: Vec<ErrorRecord> = self.db.undamaged(kept, read_error)?;
        Ok(errors.into_iter().map(|error| (error.id, error)).collect())
    }

    /// Returns the IDs of errors that exist, including damaged ones. Strongly consistent: a new
    /// error must not appear deleted.
    pub async fn existing_errors(
        self,
        project: ProjectId,
        ids: &[String],
        now: Timestamp,
    ) -> Result<HashSet<String>, StoreError> {
        let keys = ids.iter().map(|id| key(&errors_pk(project), id)).collect();
        let items = self.db.get_all(TABLE, keys).await?;
        let kept = items.iter().filter(|item| is_kept(item, now));
        let read = |item: &Item| Ok(ItemReader { table: TABLE, item }.text("sk")?.to_owned());
        kept.map(read).collect()
    }

    /// Adds the actions that create an error and its fingerprint, and announce it. They fail if the
    /// fingerprint has an error.
    pub(super) fn create_error(
        self,
        project: ProjectId,
        new: &NewError,
        at: Timestamp,
        now: Timestamp,
        transaction: &mut Transaction,
    ) -> Result<(), StoreError> {
        let error = ErrorRecord::new(new, at, now);
        let put = self
            .db
            .put(TABLE, write_error(project, &error))
            .condition_expression("attribute_not_exists(pk)");
        let created = error.domain_event(DomainEventKind::ErrorCreated, project, now);
        transaction.add("fingerprint", self.put_fingerprint(project, new, &error, now)?)?;
        transaction.add("error", put)?;
        transaction.add("announcement", NotificationStore::new(self.db).announce(&created)?)
    }

    /// Returns an error. Strongly consistent: later writes depend on it.
    pub async fn find_error(
        self,
        project: ProjectId,
        id: ErrorId,
        now: Timestamp,
    ) -> Result<Option<ErrorRecord>, StoreError> {
        let found = self.db.get(TABLE, error_key(project, id)).await?;
        let found = found.filter(|item| is_kept(item, now));
        found.as_ref().map(read_error).transpose()
    }

    /// Replaces an error and announces the domain event, if any. Returns `false` if the error
    /// changed since it was read.
    pub async fn replace_error(
        self,
        project: ProjectId,
        read: &ErrorRecord,
        error: &ErrorRecord,
        domain_event: Option<&DomainEvent>,
    ) -> Result<bool, StoreError> {
        let put = self
            .db
            .put(TABLE, write_error(project, error))
            .condition_expression(
                "version = :version AND firstSeen = :firstSeen AND lastSeen = :lastSeen \
                 AND expiresAt = :expiresAt",
            )
            .expression_attribute_values(":version", count(read.version))
            .expression_attribute_values(":firstSeen", s(read.first_seen))
            .expression_attribute_values(":lastSeen", s(read.last_seen))
            .expression_attribute_values(":expiresAt", n(read.expires_at.as_seconds()));
        let mut actions = vec![put.into_action()?];
        if error.expires_at != read.expires_at {
            // The error and its fingerprint must expire together.
            let renew = self
                .update_fingerprint(project, error)
                .update_expression("SET expiresAt = :expiresAt")
                .expression_attribute_values(":expiresAt", n(error.expires_at.as_seconds()));
            actions.push(renew.into_action()?);
        }
        if let Some(domain_event) = domain_event {
            actions.push(NotificationStore::new(self.db).announce(domain_event)?);
        }
        Ok(self.db.commit_all(actions).await?.is_none())
    }

    /// Lists errors of a project, the last seen first, and their numbers of events. Strongly
    /// consistent.
    pub async fn list_errors(
        self,
        project: ProjectId,
        status: Option<ErrorStatus>,
        page_request: &PageRequest,
        now: Timestamp,
    ) -> Result<Page<(ErrorRecord, u64)>, StoreError> {
        let query = EventQuery { status, ..EventQuery::all(listed_range(now)) };
        let mut counts = ErrorCounts::of_stored();
        let stored = self.count_project(project, &query, &mut counts, now).await?.stored;
        let mut listed: Vec<(ErrorRecord, u64)> =
            (0..).zip(stored).map(|(number, error)| (error, counts.events_of(number))).collect();
        if let Some(after) = &page_request.after {
            listed.retain(|(error, _)| position(error) < *after);
        }
        listed.sort_unstable_by_key(|(error, _)| Reverse((error.last_seen, error.id)));
        let limit = usize::try_from(page_request.limit).unwrap_or(usize::MAX);
        let has_more = listed.len() > limit;
        listed.truncate(limit);
        let end = listed.last().filter(|_| has_more).map(|(error, _)| position(error));
        Ok(Page { items: listed, end })
    }

    /// Returns the errors of a project for which `matches` is `true`. Strongly consistent: a status
    /// that was just set counts.
    pub(super) async fn find_errors_where(
        self,
        project: ProjectId,
        matches: impl Fn(&ErrorRecord) -> bool,
        now: Timestamp,
    ) -> Result<Vec<ErrorRecord>, StoreError> {
        let mut items = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk")
            .filter_expression("expiresAt > :now")
            .expression_attribute_values(":pk", s(errors_pk(project)))
            .expression_attribute_values(":now", n(now.as_seconds()))
            .into_paginator()
            .items()
            .send();
        let mut found = Vec::new();
        while let Some(item) = items.next().await {
            let item = item?;
            // Skip a damaged error instead of failing the query.
            found.extend(self.db.unless_damaged(&item, read_error(&item))?.filter(&matches));
        }
        Ok(found)
    }
}

/// The times of an event, which its error stores.
#[derive(Debug, Clone, Copy)]
pub struct SeenEvent {
    /// The time of the event.
    pub occurred_at: Timestamp,
    /// The time of receipt in the event's row.
    pub received_at: Timestamp,
    /// The time when the event's release was first seen, if it is known.
    pub release_seen: Option<Timestamp>,
    /// `true` if the event is being packed, so readers will no longer find its row.
    pub is_packed: bool,
    /// The current time.
    pub now: Timestamp,
}

pub(super) fn errors_pk(project: ProjectId) -> String {
    format!("errors#{project}")
}

pub(super) fn error_key(project: ProjectId, id: ErrorId) -> Item {
    key(&errors_pk(project), &id.to_string())
}

/// Returns the position of an error in a list: the time when it was last seen, and its ID.
fn position(error: &ErrorRecord) -> String {
    format!("{}#{}", time_key(error.last_seen), error.id)
}

fn write_error(project: ProjectId, error: &ErrorRecord) -> Item {
    let ErrorDescription { fingerprint, title, error_type, message, culprit } = &error.description;
    let mut item = item_at(
        error_key(project, error.id),
        [
            ("fingerprint", b(&fingerprint.0)),
            ("title", s(title)),
            ("type", s(error_type)),
            ("message", s(message)),
            ("culprit", s(culprit)),
            ("status", s(error.status.as_str())),
            ("version", count(error.version)),
            ("firstSeen", s(error.first_seen)),
            ("lastSeen", s(error.last_seen)),
            ("expiresAt", n(error.expires_at.as_seconds())),
        ],
    );
    if let Some(resolution) = &error.resolution {
        item.insert("resolvedAt".to_owned(), s(resolution.at));
        item.extend(resolution.by.as_ref().map(|by| ("resolvedBy".to_owned(), s(by))));
        if resolution.in_next_release {
            item.insert("inNextRelease".to_owned(), AttributeValue::Bool(true));
        }
    }
    item.extend(error.assignee.as_ref().map(|user| ("assignee".to_owned(), s(user))));
    if let Some(events_since) = error.events_since {
        item.insert("eventsSince".to_owned(), n(events_since.as_millis()));
    }
    item
}

fn read_error(item: &Item) -> Result<ErrorRecord, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let user = |text: &str| UserId::parse(text).ok();
    let text = |name| reader.text(name).map(str::to_owned);
    let version = reader.optional_count("version")?;
    let expires_at = reader.optional_integer("expiresAt")?;
    let expires_at = expires_at.ok_or_else(|| reader.damaged("expiresAt"))?;
    Ok(ErrorRecord {
        id: reader.parsed("sk", ErrorId::parse)?,
        description: ErrorDescription {
            fingerprint: Fingerprint(reader.bytes("fingerprint")?),
            title: text("title")?,
            error_type: text("type")?,
            message: text("message")?,
            culprit: text("culprit")?,
        },
        status: reader.parsed("status", ErrorStatus::named)?,
        resolution: match reader.optional_time("resolvedAt")? {
            None => None,
            Some(at) => Some(Resolution {
                at,
                by: reader.optional_parsed("resolvedBy", user)?,
                in_next_release: reader.optional_boolean("inNextRelease")?.unwrap_or(false),
            }),
        },
        assignee: reader.optional_parsed("assignee", user)?,
        version: version.ok_or_else(|| reader.damaged("version"))?,
        first_seen: reader.time("firstSeen")?,
        last_seen: reader.time("lastSeen")?,
        events_since: reader.optional_millis("eventsSince")?,
        expires_at: Timestamp::from_millis(expires_at.saturating_mul(1_000)),
    })
}
