//! Erases a project's items in the tables `feature-flags` and `flag-changes`.

use shared::dynamodb::item::s;
use shared::dynamodb::{StoreError, Sweep};
use shared::projects::project::ProjectId;

use super::items::TABLE;
use super::{FlagStore, history};

/// Maximum number of items per step.
const MAX_ITEMS: i32 = 1_000;

impl FlagStore<'_> {
    /// Removes some of a project's flags, segments and counters. The table has none left if it
    /// removes nothing.
    pub async fn erase_flags(self, project: ProjectId) -> Result<Sweep, StoreError> {
        let output = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("projectId = :project")
            .expression_attribute_values(":project", s(project))
            .projection_expression("projectId, #key")
            .expression_attribute_names("#key", "key")
            .limit(MAX_ITEMS)
            .send()
            .await?;
        self.db.sweep_away(TABLE, output.items.unwrap_or_default(), None).await
    }

    /// Removes a project's flag changes from the next page of the table. Scans the table, since no
    /// flag leads to the changes of deleted flags. Must run after the project's flags are removed.
    pub async fn sweep_flag_changes(
        self,
        project: ProjectId,
        after: Option<&str>,
    ) -> Result<Sweep, StoreError> {
        let attributes = ["flagId", "version", "projectId"];
        let (items, after) = self.db.scan_page(history::TABLE, &attributes, after).await?;
        let keys = items
            .into_iter()
            .filter_map(|mut item| (item.remove("projectId")? == s(project)).then_some(item));
        self.db.sweep_away(history::TABLE, keys.collect(), after).await
    }
}
