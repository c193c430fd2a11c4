//! Table `api-keys`, key `keyId`: one item per key, with the hash of its secret.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::TransactWriteItem;

use crate::projects::api_key::{ApiKeyRecord, KeyId, Scope, SecretHash, UserId};
use crate::projects::project::{Organization, ProjectId};
use crate::timestamp::Timestamp;

use crate::dynamodb::item::{Item, ItemReader, b, item, s, ss};
use crate::dynamodb::request::IntoAction;
use crate::dynamodb::{Store, StoreError};

pub(super) const TABLE: &str = "api-keys";
pub(super) const KEY: &str = "keyId";
/// The index by organization and user.
const BY_USER: &str = "byUser";

/// The outcome of a revocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revocation {
    /// The key is revoked, since the time in its record.
    Revoked(Box<ApiKeyRecord>),
    /// There is no such key.
    UnknownKey,
}

impl Store {
    /// Stores a new key, together with the action that notifies its user.
    pub async fn create_api_key(
        &self,
        record: &ApiKeyRecord,
        announcement: TransactWriteItem,
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
        ];
        for (attribute, value) in sets {
            item.extend(value.map(|value| (attribute.to_owned(), value)));
        }
        // A key id has 95 random bits. Even if one repeats, no key is overwritten.
        let put = self.put(TABLE, item).condition_expression("attribute_not_exists(keyId)");
        let is_stored = self.commit_all(vec![put.into_action()?, announcement]).await?.is_none();
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
        let mut found = query.into_paginator().items().send();
        let mut keys = Vec::new();
        while let Some(item) = found.next().await {
            keys.push(item?);
        }
        let keys: Vec<Item> = self.get_all(TABLE, keys).await?;
        self.undamaged(&keys, read_api_key)
    }

    /// Revokes a key at `now`. A key that is already revoked keeps its earlier time.
    pub async fn revoke_api_key(
        &self,
        key_id: &KeyId,
        now: Timestamp,
    ) -> Result<Revocation, StoreError> {
        let key = item([(KEY, s(key_id))]);
        match self.set_once(TABLE, key, "revokedAt", s(now)).await? {
            Some(item) => Ok(Revocation::Revoked(Box::new(read_api_key(&item)?))),
            None => Ok(Revocation::UnknownKey),
        }
    }
}

pub(super) fn read_api_key(item: &Item) -> Result<ApiKeyRecord, StoreError> {
    let reader = ItemReader { table: TABLE, item };
    let scopes = reader.text_set("scopes")?.iter().map(|scope| scope.parse::<Scope>());
    // A missing set means all projects; an unreadable set must not.
    let projects = item.contains_key("projects").then(|| {
        reader
            .text_set("projects")?
            .iter()
            .map(|id| ProjectId::parse(id).ok_or_else(|| reader.damaged("projects")))
            .collect::<Result<_, _>>()
    });
    Ok(ApiKeyRecord {
        key_id: reader.parsed(KEY, KeyId::parse)?,
        secret_hash: SecretHash::from_bytes(reader.bytes("secretHash")?),
        organization: reader.parsed("organization", |text| Organization::parse(text).ok())?,
        user: reader.parsed("user", |text| UserId::parse(text).ok())?,
        scopes: scopes.collect::<Result<_, _>>().map_err(|_| reader.damaged("scopes"))?,
        projects: projects.transpose()?,
        created_at: reader.time("createdAt")?,
        expires_at: reader.optional_time("expiresAt")?,
        revoked_at: reader.optional_time("revokedAt")?,
    })
}
