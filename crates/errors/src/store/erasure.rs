//! Erases the data of a project from table `errors`.
//!
//! No key lists all items of a project: claims outlive their errors, and no manifest references the
//! columns of failed pack steps. So erasure scans the whole table.

use shared::dynamodb::item::{Item, ItemReader, key};
use shared::dynamodb::{StoreError, Sweep};
use shared::projects::project::ProjectId;

use super::ErrorStore;
use super::errors::TABLE;
use super::head::head_key;
use super::queue::entry_key;

impl ErrorStore<'_> {
    /// Ends the packing of a project's log by deleting its queue entry and log head. Without the
    /// entry, no packer starts. Without the head, a running packer cannot continue.
    pub async fn end_packing(self, project: ProjectId) -> Result<Sweep, StoreError> {
        self.db.sweep_away(TABLE, vec![entry_key(project), head_key(project)], None).await
    }

    /// Removes all items of a project from the next page of the table.
    pub async fn sweep_errors(
        self,
        project: ProjectId,
        after: Option<&str>,
    ) -> Result<Sweep, StoreError> {
        let (items, after) = self.db.scan_page(TABLE, &["pk", "sk"], after).await?;
        let id = project.to_string();
        let mut found: Vec<Item> = Vec::new();
        for item in &items {
            let reader = ItemReader { table: TABLE, item };
            let (pk, sk) = (reader.text("pk")?, reader.text("sk")?);
            if belongs_to(&id, pk, sk) {
                found.push(key(pk, sk));
            }
        }
        self.db.sweep_away(TABLE, found, after).await
    }
}

/// `true` if the key of an item belongs to a project (`docs/data-model.md`, "errors").
fn belongs_to(project: &str, pk: &str, sk: &str) -> bool {
    pk.split('#').nth(1) == Some(project) || (pk.starts_with("packing-queue#") && sk == project)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_belong_to_the_project_in_their_key() {
        let id = "019aa3c5-0000-7000-8000-000000000000";
        let belongs =
            |pk: &str, sk: &str| belongs_to(id, &pk.replace("ID", id), &sk.replace("ID", id));
        assert!(belongs("event#ID#0123", "claim") && belongs("log-head#ID", "head"));
        assert!(belongs("columns#ID#url#3", "2026-11-21#x#0") && belongs("packing-queue#07", "ID"));
        assert!(!belongs("errors#019aa3c5-0000-7000-8000-000000000001", "ID"));
        assert!(!belongs("event#other#ID", "claim") && !belongs("packing-queue#07", "other"));
    }
}
