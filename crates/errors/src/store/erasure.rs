//! What a project that is erased leaves in table `errors`.
//!
//! Nothing leads to all of it: claims outlive their errors, and what a packer put in vain is named by
//! nobody. So the table is read from end to end.

use shared::dynamodb::item::{Item, ItemReader, key};
use shared::dynamodb::{StoreError, Sweep};
use shared::projects::project::ProjectId;

use super::ErrorStore;
use super::errors::TABLE;
use super::head::head_key;
use super::queue::entry_key;

impl ErrorStore<'_> {
    /// Ends the packing of a project's log: nobody begins to once it is not queued, and whoever has begun
    /// cannot move on without the log's head.
    pub async fn end_packing(self, project: ProjectId) -> Result<Sweep, StoreError> {
        self.db.sweep_away(TABLE, vec![entry_key(project), head_key(project)], None).await
    }

    /// Removes all of a project from the next page of the table.
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
            if is_of(&id, pk, sk) {
                found.push(key(pk, sk));
            }
        }
        self.db.sweep_away(TABLE, found, after).await
    }
}

/// Whether an item is of a project, by its key (`docs/data-model.md`, "errors").
fn is_of(project: &str, pk: &str, sk: &str) -> bool {
    pk.split('#').nth(1) == Some(project) || (pk.starts_with("packing-queue#") && sk == project)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_of_the_project_that_its_key_names() {
        let id = "019aa3c5-0000-7000-8000-000000000000";
        let of = |pk: &str, sk: &str| is_of(id, &pk.replace("ID", id), &sk.replace("ID", id));
        assert!(of("event#ID#0123", "claim") && of("log-head#ID", "head"));
        assert!(of("columns#ID#url#3", "2026-11-21#x#0") && of("packing-queue#07", "ID"));
        assert!(!of("errors#019aa3c5-0000-7000-8000-000000000001", "ID"));
        assert!(!of("event#other#ID", "claim") && !of("packing-queue#07", "other"));
    }
}
