//! Who calls, and which project is meant: the one read that crosses two tables.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::KeysAndAttributes;

use crate::projects::api_key::{ApiKeyRecord, KeyId};
use crate::projects::dsn::IngestId;
use crate::projects::project::IdOrSlug;

use super::projects::ProjectIdentity;
use super::{api_keys, projects};
use crate::dynamodb::item::{Item, item, s};
use crate::dynamodb::{Store, StoreError};

/// What is stored of a key and a project.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The key's record, if it was asked for and is there.
    pub key: Option<ApiKeyRecord>,
    /// The project, if it was asked for and is there.
    pub project: Option<ProjectIdentity>,
}

impl Store {
    /// Reads a key and a project in one round trip; either may be left out.
    ///
    /// Strongly consistent: a key or project that was just made works at once, and the time for
    /// which a revoked key may still be remembered counts from the revocation, not from whenever a
    /// replica heard of it.
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

    /// The projects of up to 100 names. Strongly consistent, as [`Self::find_access`].
    pub async fn find_projects(
        &self,
        names: &[IdOrSlug],
    ) -> Result<Vec<(IdOrSlug, ProjectIdentity)>, StoreError> {
        let keys = names.iter().map(|name| item([(projects::KEY, s(name))])).collect();
        let items = self.get_all(projects::TABLE, keys).await?;
        items.iter().map(projects::read_named_identity).collect()
    }

    /// Opens the connection, by a read that every function which authenticates may make.
    pub async fn warm_up(&self) {
        let key_id = KeyId::parse("0000000000000000");
        // Only the connection matters; the first request tells what is wrong with it.
        let _ = self.find_access(key_id.as_ref(), None).await;
    }

    /// Opens the connection, by a read that the function may make which takes deliveries.
    pub async fn warm_up_delivery(&self) {
        if let Some(id) = IngestId::parse("1") {
            let _ = self.find_ingest_access(id).await;
        }
    }
}

fn consistent(key: Item) -> Result<KeysAndAttributes, StoreError> {
    Ok(KeysAndAttributes::builder().keys(key).consistent_read(true).build()?)
}
