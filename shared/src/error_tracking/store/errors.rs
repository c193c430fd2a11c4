//! Table `errors`, key `pk` / `sk`: errors and the fingerprints that belong to them. Events are in
//! [`super::events`], what is counted of them in [`super::rows`] and [`super::columns`].
//!
//! | pk | sk | item |
//! | --- | --- | --- |
//! | `errors#PROJECT` | `ID` | an error |
//! | `fingerprints#PROJECT` | `FINGERPRINT` | the error that it belongs to |

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::error_tracking::log::row::Fingerprint;
use crate::error_tracking::{ErrorDescription, ErrorId, ErrorRecord, ErrorStatus};
use crate::page::{Page, PageRequest};
use crate::projects::project::ProjectId;
use crate::timestamp::Timestamp;

use crate::dynamodb::item::{Item, ItemReader, b, item_at, key, s, time_key};
use crate::dynamodb::page::one_more_than;
use crate::dynamodb::request::IntoAction;
use crate::dynamodb::transaction::ConflictRetry;
use crate::dynamodb::{Store, StoreError};

pub(super) const TABLE: &str = "errors";
/// The index of a project's errors by when they were last seen.
const BY_LAST_SEEN: (&str, &str) = ("byLastSeen", "lastSeenKey");
/// The index of a project's errors by status and when they were last seen.
const BY_STATUS: (&str, &str) = ("byStatus", "statusKey");
impl Store {
    /// Makes sure that the error of a counted event exists, was seen at `at`, and is open if it was
    /// resolved before that. May be repeated. `known` is the error's id where that is remembered,
    /// `new` what it becomes if there is none. Answers the error's id. Strongly consistent: an error
    /// that was resolved a moment ago must open.
    pub async fn see_error(
        &self,
        project: ProjectId,
        known: Option<ErrorId>,
        new: ErrorId,
        description: &ErrorDescription,
        at: Timestamp,
    ) -> Result<ErrorId, StoreError> {
        let mut known = known;
        let mut retry = ConflictRetry::default();
        while retry.next_attempt().await {
            if known.is_none() {
                known = self.find_error_id(project, description.fingerprint).await?;
            }
            let Some(id) = known else {
                if self.create_error(project, new, description, at).await? {
                    return Ok(new);
                }
                continue;
            };
            let Some(error) = self.find_error(project, id).await? else {
                // The error and what leads to it were written together.
                return Err(StoreError::Damaged { table: TABLE, attribute: "errorId" });
            };
            if error.has_seen(at) {
                return Ok(id);
            }
            if self.replace_error(project, &error, &error.clone().seen_at(at)).await? {
                return Ok(id);
            }
        }
        Err(StoreError::Contended("the error kept changing".into()))
    }

    /// The errors of those of these fingerprints that have one. Strongly consistent: an error that
    /// was just created is there.
    pub(super) async fn find_errors_of(
        &self,
        project: ProjectId,
        fingerprints: impl Iterator<Item = Fingerprint>,
    ) -> Result<HashMap<Fingerprint, ErrorRecord>, StoreError> {
        let keys = fingerprints.map(|fingerprint| fingerprint_key(project, fingerprint)).collect();
        let items = self.get_all(TABLE, keys).await?;
        let ids: Result<Vec<_>, _> = items.iter().map(read_error_id).collect();
        let keys = ids?.into_iter().map(|id| error_key(project, id)).collect();
        let items = self.get_all(TABLE, keys).await?;
        let errors = items.iter().map(read_error);
        errors.map(|error| error.map(|error| (error.description.fingerprint, error))).collect()
    }

    async fn find_error_id(
        &self,
        project: ProjectId,
        fingerprint: Fingerprint,
    ) -> Result<Option<ErrorId>, StoreError> {
        let found = self.get(TABLE, fingerprint_key(project, fingerprint)).await?;
        found.as_ref().map(read_error_id).transpose()
    }

    /// False if somebody else has just created the error of the fingerprint.
    async fn create_error(
        &self,
        project: ProjectId,
        id: ErrorId,
        description: &ErrorDescription,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let error = ErrorRecord {
            id,
            description: description.clone(),
            status: ErrorStatus::Open,
            resolved_at: None,
            version: 1,
            first_seen: at,
            last_seen: at,
        };
        let mut fingerprint = fingerprint_key(project, description.fingerprint);
        fingerprint.insert("errorId".to_owned(), s(id));
        let mut actions = Vec::with_capacity(2);
        for item in [fingerprint, write_error(project, &error)] {
            actions.push(
                self.put(TABLE, item)
                    .condition_expression("attribute_not_exists(pk)")
                    .into_action()?,
            );
        }
        Ok(self.commit_all(actions).await?.is_none())
    }

    /// An error. Strongly consistent: what is written next rests on it.
    pub async fn find_error(
        &self,
        project: ProjectId,
        id: ErrorId,
    ) -> Result<Option<ErrorRecord>, StoreError> {
        let found = self.get(TABLE, error_key(project, id)).await?;
        found.as_ref().map(read_error).transpose()
    }

    /// Replaces an error, if it is still stored as it was read.
    pub async fn replace_error(
        &self,
        project: ProjectId,
        read: &ErrorRecord,
        error: &ErrorRecord,
    ) -> Result<bool, StoreError> {
        let put = self
            .put(TABLE, write_error(project, error))
            .condition_expression(
                "version = :version AND firstSeen = :firstSeen AND lastSeen = :lastSeen",
            )
            .expression_attribute_values(":version", version_number(read.version))
            .expression_attribute_values(":firstSeen", s(read.first_seen))
            .expression_attribute_values(":lastSeen", s(read.last_seen));
        self.write_if(put).await
    }

    /// Errors of a project, the one last seen latest first. Eventually consistent, as an index is:
    /// an error of a moment ago may be missing.
    pub async fn list_errors(
        &self,
        project: ProjectId,
        status: Option<ErrorStatus>,
        page_request: &PageRequest,
    ) -> Result<Page<ErrorRecord>, StoreError> {
        let (index, attribute) = if status.is_some() { BY_STATUS } else { BY_LAST_SEEN };
        let prefix = status.map_or_else(String::new, |status| format!("{}#", status.as_str()));
        let mut query = self
            .query(TABLE)
            .index_name(index)
            .scan_index_forward(false)
            .expression_attribute_values(":pk", s(errors_pk(project)))
            .limit(one_more_than(page_request.limit));
        query = if status.is_some() {
            query
                .key_condition_expression(format!("pk = :pk AND begins_with({attribute}, :status)"))
                .expression_attribute_values(":status", s(&prefix))
        } else {
            query.key_condition_expression("pk = :pk")
        };
        if let Some((after, id)) = page_request.after.as_deref().and_then(read_position) {
            let mut start = error_key(project, id);
            start.insert(attribute.to_owned(), s(format!("{prefix}{after}")));
            query = query.set_exclusive_start_key(Some(start));
        }
        let answer = query.send().await?;
        let more = answer.last_evaluated_key.is_some();
        let end_of =
            |item: &Item| ItemReader { table: TABLE, item }.text(BY_LAST_SEEN.1).map(str::to_owned);
        self.page(answer.items.unwrap_or_default(), more, page_request.limit, end_of, read_error)
    }

    /// The errors of a project that are `wanted`, by their fingerprints. Strongly consistent: a status
    /// that was just set counts.
    pub(super) async fn find_errors_that(
        &self,
        project: ProjectId,
        wanted: impl Fn(&ErrorRecord) -> bool,
    ) -> Result<Vec<(Fingerprint, ErrorId)>, StoreError> {
        let mut items = self
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", s(errors_pk(project)))
            .into_paginator()
            .items()
            .send();
        let mut found = Vec::new();
        while let Some(item) = items.next().await {
            let error = read_error(&item?)?;
            if wanted(&error) {
                found.push((error.description.fingerprint, error.id));
            }
        }
        Ok(found)
    }
}

fn errors_pk(project: ProjectId) -> String {
    format!("errors#{project}")
}

fn error_key(project: ProjectId, id: ErrorId) -> Item {
    key(&errors_pk(project), &id.to_string())
}

fn fingerprint_key(project: ProjectId, fingerprint: Fingerprint) -> Item {
    key(&format!("fingerprints#{project}"), &fingerprint.to_string())
}

fn version_number(version: u64) -> AttributeValue {
    AttributeValue::N(version.to_string())
}

/// Where an error stands among those of its project: by when it was last seen, and by its id.
fn position(error: &ErrorRecord) -> String {
    format!("{}#{}", time_key(error.last_seen), error.id)
}

fn read_position(position: &str) -> Option<(&str, ErrorId)> {
    let (_, id) = position.split_once('#')?;
    Some((position, ErrorId::parse(id)?))
}

fn write_error(project: ProjectId, error: &ErrorRecord) -> Item {
    let position = position(error);
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
            ("version", version_number(error.version)),
            ("firstSeen", s(error.first_seen)),
            ("lastSeen", s(error.last_seen)),
            (BY_STATUS.1, s(format!("{}#{position}", error.status.as_str()))),
            (BY_LAST_SEEN.1, s(position)),
        ],
    );
    if let Some(resolved_at) = error.resolved_at {
        item.insert("resolvedAt".to_owned(), s(resolved_at));
    }
    item
}

fn read_error_id(item: &Item) -> Result<ErrorId, StoreError> {
    ItemReader { table: TABLE, item }.parsed("errorId", ErrorId::parse)
}

fn read_error(item: &Item) -> Result<ErrorRecord, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let version = reader.optional_count("version")?;
    Ok(ErrorRecord {
        id: reader.parsed("sk", ErrorId::parse)?,
        description: ErrorDescription {
            fingerprint: Fingerprint(reader.bytes("fingerprint")?),
            title: reader.text("title")?.to_owned(),
            error_type: reader.text("type")?.to_owned(),
            message: reader.text("message")?.to_owned(),
            culprit: reader.text("culprit")?.to_owned(),
        },
        status: reader.parsed("status", |text| ErrorStatus::parse(text).ok())?,
        resolved_at: reader.optional_time("resolvedAt")?,
        version: version.ok_or_else(|| reader.damaged("version"))?,
        first_seen: reader.time("firstSeen")?,
        last_seen: reader.time("lastSeen")?,
    })
}
