//! Table `api-keys`, key `keyId`: one item per key, with the hash of its secret.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::TransactWriteItem;

use crate::projects::api_key::{ApiKeyRecord, KeyId, Scope, SecretHash, UserId};
use crate::projects::member::MemberId;
use crate::projects::project::Organization;
use crate::timestamp::Timestamp;

use crate::dynamodb::item::{Item, ItemReader, b, item, s, ss};
use crate::dynamodb::page::one_more_than;
use crate::dynamodb::request::IntoAction;
use crate::dynamodb::{Store, StoreError};
use crate::page::{Page, PageRequest};

pub(super) const TABLE: &str = "api-keys";
pub(super) const KEY: &str = "keyId";
/// The index by organization and user.
const BY_USER: &str = "byUser";
/// The index by organization and time of creation.
const BY_CREATION: &str = "byCreation";

/// The outcome of a revocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revocation {
    /// The key is revoked, since the time in its record.
    Revoked(Box<ApiKeyRecord>),
    /// There is no such key.
    UnknownKey,
}

impl Store {
    /// Stores a new key, in a transaction with more actions.
    pub async fn create_api_key(
        &self,
        record: &ApiKeyRecord,
        more: Vec<TransactWriteItem>,
    ) -> Result<(), StoreError> {
        let mut item = item([
            (KEY, s(&record.key_id)),
            ("secretHash", b(record.secret_hash.as_bytes())),
            ("organization", s(&record.organization)),
            ("user", s(&record.user)),
            ("createdAt", s(record.created_at)),
        ]);
        let sets = [
            ("scopes", ss(&record.scopes)),
            ("projects", record.projects.as_ref().and_then(ss)),
            ("expiresAt", record.expires_at.map(s)),
            ("revokedAt", record.revoked_at.map(s)),
            ("name", (!record.name.is_empty()).then(|| s(&record.name))),
            ("memberId", record.member.map(s)),
        ];
        for (attribute, value) in sets {
            item.extend(value.map(|value| (attribute.to_owned(), value)));
        }
        // A key id has 95 random bits. Even if one repeats, no key is overwritten.
        let put = self.put(TABLE, item).condition_expression("attribute_not_exists(keyId)");
        let actions = more.into_iter().chain([put.into_action()?]);
        let is_stored = self.commit_all(actions.collect::<Vec<_>>()).await?.is_none();
        is_stored.then_some(()).ok_or_else(|| StoreError::Rejected("the key's id is taken".into()))
    }

    /// Returns all keys of all organizations. Scans the table: for operator commands, not for
    /// requests.
    pub async fn list_api_keys(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        let mut pages = self.scan(TABLE).into_paginator().items().send();
        let mut keys = Vec::new();
        while let Some(item) = pages.next().await {
            let item = item?;
            keys.extend(self.unless_damaged(&item, read_api_key(&item))?);
        }
        keys.sort_by(|a, b| (a.created_at, &a.key_id).cmp(&(b.created_at, &b.key_id)));
        Ok(keys)
    }

    /// Returns the keys that act for a user. The index is eventually consistent. Each key is then
    /// read with strong consistency, so that no revoked key counts.
    pub async fn list_keys_of(
        &self,
        organization: &Organization,
        user: &UserId,
    ) -> Result<Vec<ApiKeyRecord>, StoreError> {
        let query = self
            .query(TABLE)
            .key_condition_expression("organization = :organization AND #user = :user")
            .expression_attribute_names("#user", "user")
            .expression_attribute_values(":organization", s(organization))
            .expression_attribute_values(":user", s(user));
        self.keys_found_by(query).await
    }

    /// Returns all keys of an organization, with the same consistency as [`Self::list_keys_of`].
    pub async fn list_keys_of_organization(
        &self,
        organization: &Organization,
    ) -> Result<Vec<ApiKeyRecord>, StoreError> {
        let query = self
            .query(TABLE)
            .key_condition_expression("organization = :organization")
            .expression_attribute_values(":organization", s(organization));
        self.keys_found_by(query).await
    }

    async fn keys_found_by(
        &self,
        query: QueryFluentBuilder,
    ) -> Result<Vec<ApiKeyRecord>, StoreError> {
        let query = query.index_name(BY_USER).projection_expression(KEY);
        let keys: Vec<Item> = self.get_all(TABLE, self.all(query).await?).await?;
        self.undamaged(&keys, read_api_key)
    }

    /// Returns a page of an organization's keys, newest first. The index is eventually consistent;
    /// the keys are not.
    pub async fn page_of_keys(
        &self,
        organization: &Organization,
        page_request: &PageRequest,
    ) -> Result<Page<ApiKeyRecord>, StoreError> {
        // A position is a time of creation and a key id.
        let start = page_request.after.as_deref().and_then(|after| after.split_once(' '));
        let start = start.map(|(created_at, key_id)| {
            let organization = s(organization);
            item([("organization", organization), ("createdAt", s(created_at)), (KEY, s(key_id))])
        });
        let query = self
            .query(TABLE)
            .index_name(BY_CREATION)
            .scan_index_forward(false)
            .key_condition_expression("organization = :organization")
            .expression_attribute_values(":organization", s(organization))
            .limit(one_more_than(page_request.limit))
            .set_exclusive_start_key(start);
        let response = query.send().await?;
        let mut found = Vec::new();
        for item in response.items.unwrap_or_default() {
            let reader = ItemReader { table: TABLE, item: &item };
            found.push((reader.text("createdAt")?.to_owned(), reader.text(KEY)?.to_owned()));
        }
        let limit = usize::try_from(page_request.limit).unwrap_or(usize::MAX);
        let more = found.len() > limit || response.last_evaluated_key.is_some();
        found.truncate(limit);
        let end = found.last().filter(|_| more).map(|(at, key_id)| format!("{at} {key_id}"));
        let keys = found.iter().map(|(_, key_id)| item([(KEY, s(key_id))])).collect();
        let mut items: Vec<ApiKeyRecord> =
            self.undamaged(&self.get_all(TABLE, keys).await?, read_api_key)?;
        items.sort_by(|a, b| (b.created_at, &b.key_id).cmp(&(a.created_at, &a.key_id)));
        Ok(Page { items, end })
    }

    /// Returns a key. Strongly consistent.
    pub async fn find_api_key(&self, key_id: &KeyId) -> Result<Option<ApiKeyRecord>, StoreError> {
        let found = self.get(TABLE, item([(KEY, s(key_id))])).await?;
        found.as_ref().map(read_api_key).transpose()
    }

    /// Revokes a key that is not revoked, in a transaction with more actions. Returns `false` if
    /// there is no such key.
    pub async fn revoke_active_key(
        &self,
        key_id: &KeyId,
        now: Timestamp,
        mut more: Vec<TransactWriteItem>,
    ) -> Result<bool, StoreError> {
        let update = self
            .update(TABLE, item([(KEY, s(key_id))]))
            .condition_expression("attribute_exists(keyId) AND attribute_not_exists(revokedAt)")
            .update_expression("SET revokedAt = :now")
            .expression_attribute_values(":now", s(now));
        more.push(update.into_action()?);
        Ok(self.commit_all(more).await?.is_none())
    }

    /// Revokes a key at `now`. A key that is already revoked keeps its earlier time.
    pub async fn revoke_api_key(
        &self,
        key_id: &KeyId,
        now: Timestamp,
    ) -> Result<Revocation, StoreError> {
        self.revoke_active_key(key_id, now, Vec::new()).await?;
        Ok(match self.find_api_key(key_id).await? {
            Some(key) => Revocation::Revoked(Box::new(key)),
            None => Revocation::UnknownKey,
        })
    }
}

pub(super) fn read_api_key(item: &Item) -> Result<ApiKeyRecord, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let scopes = reader.text_set("scopes")?.iter().map(|scope| scope.parse::<Scope>());
    Ok(ApiKeyRecord {
        key_id: reader.parsed(KEY, KeyId::parse)?,
        secret_hash: SecretHash::from_bytes(reader.bytes("secretHash")?),
        organization: reader.parsed("organization", |text| Organization::parse(text).ok())?,
        user: reader.parsed("user", |text| UserId::parse(text).ok())?,
        name: reader.optional_text("name")?.unwrap_or_default().to_owned(),
        member: reader.optional_parsed("memberId", MemberId::parse)?,
        scopes: scopes.collect::<Result<_, _>>().map_err(|_| reader.damaged("scopes"))?,
        projects: super::people::read_projects(reader)?,
        created_at: reader.time("createdAt")?,
        expires_at: reader.optional_time("expiresAt")?,
        revoked_at: reader.optional_time("revokedAt")?,
    })
}
