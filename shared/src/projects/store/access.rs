//! The credential and the project of a request, in the only read across tables.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::KeysAndAttributes;

use crate::projects::api_key::{ApiKeyRecord, KeyId};
use crate::projects::dsn::IngestId;
use crate::projects::limits::Limits;
use crate::projects::project::IdOrSlug;
use crate::projects::secret::SecretDigest;

use super::projects::ProjectIdentity;
use super::{Membership, StoredSession, api_keys, people, projects};
use crate::dynamodb::item::{Item, item, s};
use crate::dynamodb::{Store, StoreError};

/// A stored credential and project.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The key's record, if it was requested and exists.
    pub key: Option<ApiKeyRecord>,
    /// The session, if it was requested and exists.
    pub session: Option<StoredSession>,
    /// The membership behind the credential, once it is known.
    pub membership: Option<Membership>,
    /// The project, if it was requested and exists.
    pub project: Option<ProjectIdentity>,
    /// The limits of the stack, if they were requested.
    pub limits: Option<Limits>,
}

impl Store {
    /// Reads a key or session, a project, and the limits of the stack if `with_limits`, in one round
    /// trip. Each can be omitted.
    ///
    /// Strongly consistent: a new key or project works immediately. The time for which a revoked
    /// key can stay cached starts at its revocation, not at its replication.
    pub async fn find_access(
        &self,
        key_id: Option<&KeyId>,
        session: Option<&SecretDigest>,
        project: Option<&IdOrSlug>,
        with_limits: bool,
    ) -> Result<Access, StoreError> {
        let mut keys = HashMap::new();
        if let Some(key_id) = key_id {
            let key = item([(api_keys::KEY, s(key_id))]);
            keys.insert(self.table(api_keys::TABLE), consistent(vec![key])?);
        }
        if let Some(digest) = session {
            keys.insert(
                self.table(people::TABLE),
                consistent(people::session_keys(digest).into())?,
            );
        }
        let names = project.map(|project| item([(projects::KEY, s(project))])).into_iter();
        let names: Vec<_> = names.chain(with_limits.then(projects::stack_key)).collect();
        if !names.is_empty() {
            keys.insert(self.table(projects::TABLE), consistent(names)?);
        }
        let mut access = Access { limits: with_limits.then(Limits::default), ..Access::default() };
        for (table, items) in self.batch_get(keys).await? {
            if table == self.table(people::TABLE) {
                access.session = people::read_stored_session(&items)?;
                continue;
            }
            for item in &items {
                if table == self.table(api_keys::TABLE) {
                    access.key = Some(api_keys::read_api_key(item)?);
                } else if projects::is_of_stack(item) {
                    access.limits = Some(self.read_stack_limits(item)?);
                } else {
                    access.project = Some(projects::read_identity(item)?);
                }
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
        let _ = self.find_access(key_id.as_ref(), None, None, false).await;
    }

    /// Opens the connection with a read that the function for deliveries is permitted to make.
    pub async fn warm_up_delivery(&self) {
        if let Some(id) = IngestId::parse("1") {
            let _ = self.find_ingest_access(id, false).await;
        }
    }
}

fn consistent(keys: Vec<Item>) -> Result<KeysAndAttributes, StoreError> {
    let keys = KeysAndAttributes::builder().set_keys(Some(keys));
    Ok(keys.consistent_read(true).build()?)
}
