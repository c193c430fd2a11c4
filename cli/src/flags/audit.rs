//! Audit entries of an import.

use shared::audit::{AuditAction, AuditEntry, AuditTarget};
use shared::dynamodb::{Store, StoreError};
use shared::projects::project::{IdOrSlug, ProjectId};

use crate::member::entry;

/// Returns the audit entry of a change in a project.
pub(super) async fn entry_in(
    project: ProjectId,
    action: AuditAction,
    target: AuditTarget,
    store: &Store,
) -> Result<AuditEntry, StoreError> {
    let found = store.find_project(&IdOrSlug::Id(project)).await?;
    let deleted = || StoreError::Rejected("the project was deleted".into());
    Ok(entry(&found.ok_or_else(deleted)?.organization, action, target))
}
