//! What a project that is erased leaves in tables `feature-flags` and `flag-changes`.

use shared::dynamodb::item::s;
use shared::dynamodb::{StoreError, Sweep};
use shared::projects::project::ProjectId;

use super::items::TABLE;
use super::{FlagStore, history};

/// How many items are looked up at a time.
const AT_ONCE: i32 = 1_000;

impl FlagStore<'_> {
    /// Removes some of a project's flags, segments and counts. Nothing is left where it removed nothing.
    pub async fn erase_flags(self, project: ProjectId) -> Result<Sweep, StoreError> {
        let answer = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("projectId = :project")
            .expression_attribute_values(":project", s(project))
            .projection_expression("projectId, #key")
            .expression_attribute_names("#key", "key")
            .limit(AT_ONCE)
            .send()
            .await?;
        self.db.sweep_away(TABLE, answer.items.unwrap_or_default(), None).await
    }

    /// Removes a project's changes of flags from the next page of the table: no flag leads to those of one
    /// that was deleted. To be carried out after its flags are removed.
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
