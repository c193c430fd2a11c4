//! The key and the project of a request, in the only read across two tables.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::KeysAndAttributes;

use crate::projects::api_key::{ApiKeyRecord, KeyId};
use crate::projects::dsn::IngestId;
use crate::projects::project::IdOrSlug;

use super::projects::ProjectIdentity;
use super::{api_keys, projects};
use crate::dynamodb::item::{Item, item, s};
use crate::dynamodb::{Store, StoreError};

/// A stored key and project.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The key's record, if it was requested and exists.
    pub key: Option<ApiKeyRecord>,
    /// The project, if it was requested and exists.
    pub project: Option<ProjectIdentity>,
}

impl Store {
    /// Reads a key and a project in one round trip. Either can be omitted.
    ///
    /// Strongly consistent: a new key or project works immediately. The time for which a revoked
    /// key can stay cached starts at its revocation, not at its replication.
    pub async fn find_access(
        &self,
        key_id: Option<&KeyId>,
        project: Option<&IdOrSlug>,
    ) -> Result<Access, StoreError> {
        let mut keys = HashMap::new();
        if let Some(key_id) = key_id {
            let key = item([(api_keys::KEY, s(key_id))]);
            keys.insert(self.table(api_keys::TABLE), consistent(key)?);
        }
        if let Some(project) = project {
            let key = item([(projects::KEY, s(project))]);
            keys.insert(self.table(projects::TABLE), consistent(key)?);
        }
        let mut access = Access::default();
        for (table, items) in self.batch_get(keys).await? {
            let Some(item) = items.first() else { continue };
            if table == self.table(api_keys::TABLE) {
                access.key = Some(api_keys::read_api_key(item)?);
            } else {
                access.project = Some(projects::read_identity(item)?);
            }
        }
        Ok(access)
    }

    /// Returns the projects with up to 100 names. Strongly consistent, like [`Self::find_access`].
    pub async fn find_projects(
        &self,
        names: &[IdOrSlug],
    ) -> Result<Vec<(IdOrSlug, ProjectIdentity)>, StoreError> {
        let keys = names.iter().map(|name| item([(projects::KEY, s(name))])).collect();
        let items = self.get_all(projects::TABLE, keys).await?;
        items.iter().map(projects::read_named_identity).collect()
    }

    /// Opens the connection with a read that every authenticating function is permitted to make.
    pub async fn warm_up(&self) {
        let key_id = KeyId::parse("0000000000000000");
        // Only the connection matters. The first request reports any error.
        let _ = self.find_access(key_id.as_ref(), None).await;
    }

    /// Opens the connection with a read that the function for deliveries is permitted to make.
    pub async fn warm_up_delivery(&self) {
        if let Some(id) = IngestId::parse("1") {
            let _ = self.find_ingest_access(id).await;
        }
    }
}

fn consistent(key: Item) -> Result<KeysAndAttributes, StoreError> {
    Ok(KeysAndAttributes::builder().keys(key).consistent_read(true).build()?)
}
