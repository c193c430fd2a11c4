//! Erases a project's items in the table `replay-insights`.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use shared::dynamodb::item::{Item, ItemReader, key, s};
use shared::dynamodb::{StoreError, Sweep};
use shared::projects::project::ProjectId;
use shared::timestamp::Timestamp;

use super::InsightStore;
use super::insights::{TABLE, chunk_key, insight_key, project_pk, read_head};
use super::pain_points::{BatchId, batch_key};
use crate::InsightId;

/// Minimum age of abandoned batches that no running request can still meet.
const MIN_BATCH_AGE: Duration = Duration::from_hours(1);
/// Maximum number of insights removed per step, each with up to 91 chunks.
const MAX_INSIGHTS: i32 = 25;

impl InsightStore<'_> {
    /// Removes from the next page of the table a project's pain points, the records of their
    /// batches, and the project's split records. Must run before the project's insights are
    /// removed, since these show whether a split belongs to the project.
    ///
    /// Nothing shows the project of an abandoned batch without pain points, so all such batches
    /// older than an hour are removed. A request that meets a claim of such a batch abandons it
    /// again.
    pub async fn sweep_pain_points(
        self,
        project: ProjectId,
        now: Timestamp,
        after: Option<&str>,
    ) -> Result<Sweep, StoreError> {
        let (items, after) =
            self.db.scan_page(TABLE, &["pk", "sk", "batch", "made", "committed"], after).await?;
        let prefix = format!("pain-point#{project}#");
        let derived = [format!("replay#{project}#"), format!("signature#{project}#")];
        // Batches are removed before their pain points, which still lead to them if this is
        // interrupted.
        let (mut batches, mut abandoned) = (HashSet::new(), HashSet::new());
        let (mut found, mut splits) = (Vec::new(), HashMap::new());
        for item in &items {
            let reader = ItemReader { table: TABLE, item };
            let pk = reader.text("pk")?;
            if pk.starts_with(&prefix) {
                batches.extend(reader.optional_parsed("batch", BatchId::parse)?);
                found.push(key(pk, reader.text("sk")?));
            } else if derived.iter().any(|prefix| pk.starts_with(prefix)) {
                found.push(key(pk, reader.text("sk")?));
            } else if let Some(batch) = pk.strip_prefix("batch#").and_then(BatchId::parse) {
                let is_committed = reader.optional_boolean("committed")?.unwrap_or_default();
                if !is_committed && !batch.may_be_running(now.minus(MIN_BATCH_AGE)) {
                    abandoned.insert(batch);
                    found.push(batch_key(batch));
                }
            } else if pk.starts_with("split#") {
                let split_off = reader.parsed("made", InsightId::parse)?;
                splits.entry(split_off).or_insert_with(Vec::new).push(key(pk, reader.text("sk")?));
            }
        }
        let heads = splits.keys().map(|id| insight_key(project, *id)).collect();
        for head in self.db.get_all(TABLE, heads).await? {
            let sk = ItemReader { table: TABLE, item: &head }.text("sk")?;
            let id = sk.strip_prefix("insight#").and_then(InsightId::parse);
            found.extend(id.and_then(|id| splits.remove(&id)).into_iter().flatten());
        }
        // A request must not contain a key twice.
        let batches = batches.difference(&abandoned).copied().map(batch_key).collect();
        let of_batches = self.db.sweep_away(TABLE, batches, None).await?;
        let swept = self.db.sweep_away(TABLE, found, after).await?;
        Ok(Sweep { removed: swept.removed + of_batches.removed, ..swept })
    }

    /// Removes some of a project's insights and their chunks. The table has none left if it removes
    /// nothing.
    pub async fn erase_insights(self, project: ProjectId) -> Result<Sweep, StoreError> {
        let output = self
            .db
            .query(TABLE)
            .consistent_read(true)
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", s(project_pk(project)))
            .limit(MAX_INSIGHTS)
            .send()
            .await?;
        // Chunks are removed first, since only the insight leads to them.
        let (mut chunks, mut heads) = (HashSet::new(), Vec::new());
        for item in output.items.unwrap_or_default() {
            let head = self.db.unless_damaged(&item, read_head(project, &item))?;
            chunks.extend(head.into_iter().flat_map(|head| head.chunks).map(|chunk| chunk.id));
            let reader = ItemReader { table: TABLE, item: &item };
            heads.push(key(reader.text("pk")?, reader.text("sk")?));
        }
        let chunks: Vec<Item> = chunks.into_iter().map(chunk_key).collect();
        let of_chunks = self.db.sweep_away(TABLE, chunks, None).await?;
        let swept = self.db.sweep_away(TABLE, heads, None).await?;
        Ok(Sweep { removed: swept.removed + of_chunks.removed, ..swept })
    }
}
